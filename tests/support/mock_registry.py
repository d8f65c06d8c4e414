"""A schema registry on loopback: Confluent's API over schemas that a test puts in, and what it was asked for."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class MockRegistry:
    """``schemas`` are answers to ``GET /schemas``. ``failures``: how many requests are answered with 503 first.

    ``user``: who may ask, ``name:password``. ``moved``: a path that every request is sent on to. ``registers``: makes
    the GUID of a schema that a serializer registers (None: it may not).
    """

    def __init__(self, schemas: list[dict[str, Any]]) -> None:
        self.schemas = schemas
        self.asked: list[str] = []
        self.failures = 0
        self.user: str | None = None
        self.moved: str | None = None
        self.answers: dict[str, bytes] = {}
        self.registers: Callable[[str, str], str] | None = None
        self.url = ""

    def answer(self, path: str) -> tuple[int, Any]:
        parts = [unquote(one) for one in urlsplit(path).path.strip("/").split("/")]
        match parts:
            case ["schemas"]:
                return 200, self.schemas
            case ["schemas", "ids", number]:
                found = [one for one in self.schemas if str(one.get("id")) == number]
            case ["schemas", "guids", guid]:
                found = [one for one in self.schemas if one.get("guid") == guid]
            case ["subjects", subject, "versions"]:
                versions = [one["version"] for one in self.schemas if one.get("subject") == subject]
                return (200, versions) if versions else (404, {"error_code": 40401})
            case ["subjects", subject, "versions", version]:
                found = [one for one in self.schemas if one.get("subject") == subject]
                if version != "latest":
                    found = [one for one in found if str(one["version"]) == version]
                found = found[-1:]
            case _:
                found = []
        return (200, found[0]) if found else (404, {"error_code": 40403})

    def register(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        """The schema as it is registered: once, whatever how often."""
        assert self.registers is not None
        own = [one for one in self.schemas if one["subject"] == subject]
        for one in own:
            if one["schema"] == body["schema"]:
                return one
        made = {"subject": subject, "version": len(own) + 1, "id": len(self.schemas) + 1, **body}
        made["guid"] = self.registers(subject, body["schema"])
        self.schemas.append(made)
        return made


@contextlib.contextmanager
def serving(schemas: list[dict[str, Any]]) -> Iterator[MockRegistry]:
    registry = MockRegistry(schemas)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            status, body = 200, b""
            if registry.moved is not None:
                self.send_response(302)
                self.send_header("Location", registry.moved)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            wanted = None if registry.user is None else base64.b64encode(registry.user.encode()).decode()
            if wanted is not None and self.headers.get("Authorization") != f"Basic {wanted}":
                status = 401
            elif registry.failures:
                registry.failures -= 1
                status = 503
            elif self.path in registry.answers:
                body = registry.answers[self.path]
            else:
                status, found = registry.answer(self.path)
                body = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            subject = unquote(urlsplit(self.path).path.split("/")[2])
            body = json.dumps(registry.register(subject, sent)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    registry.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
