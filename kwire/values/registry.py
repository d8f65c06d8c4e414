"""A schema registry over REST: Confluent's API, and Apicurio's own.

    Registry("https://registry.example:8081", auth=("user", "password"))
    Registry("https://registry.example/apis/registry/v3", token="...")

Which API it is, the path says: ``/apis/registry/v2`` and ``v3`` are Apicurio's own. All else is Confluent's, which
Apicurio has under ``/apis/ccompat/v7``.

Rules kept here:

- A registry is asked for what somebody asks of this object. Answers are remembered, "there is no such" too.
- Each request has a time limit, and a few tries where the server is busy or the connection breaks. No redirect is
  followed: it could lead credentials elsewhere.
- An answer has a limit of bytes.
- User, password and token are in no name, no ``repr``, no error and no pickle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from kwire import stored
from kwire.errors import KwireError, needed
from kwire.naming import hidden, public
from kwire.values.catalog import Catalog
from kwire.values.framing import Space
from kwire.values.written import LONGEST, Reference, Written, format_of

__all__ = ["Registry"]

TIMEOUT: Final = 10.0
"""Seconds that a connection, and then an answer, may take."""
TRIES: Final = 3
"""Further tries after one that failed."""
LARGEST: Final = 64 * LONGEST
"""Bytes of an answer, at most."""
_BUSY: Final = (429, 502, 503, 504)
_OWN: Final = ("/apis/registry/v2", "/apis/registry/v3")
_TOKEN: Final = re.compile(r"[!-~]+")
_GROUP: Final = "groups/default/artifacts"


class Registry:
    """A registry that a user has named.

    ``auth``: user and password, which may stand in the URL too. ``token``: for ``Authorization: Bearer``. ``ca``: a
    file with certificates to trust besides those of the system. ``timeout``: seconds. ``asked``: the paths that were
    requested, in their order. Raises ``KwireError`` for what is no URL, ``MissingExtraError``.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: tuple[str, str] | None = None,
        token: str | None = None,
        ca: str | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        with needed("a schema registry", "values"):
            import urllib3
        token = token.strip() if isinstance(token, str) else token
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if host is None or parts.scheme not in ("http", "https"):
            raise KwireError(f"{public(url)} is no URL of a registry, such as https://registry:8081")
        if auth is None and parts.username is not None:
            auth = unquote(parts.username), unquote(parts.password or "")
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json;q=0.9, */*;q=0.5"}
        if token is not None:
            headers["Authorization"] = f"Bearer {_sendable(token)}"
        elif auth is not None:
            headers["Authorization"] = f"Basic {_basic(auth)}"
        place = f"[{host}]" if ":" in host else host
        self._root = urlunsplit((parts.scheme, f"{place}:{port}" if port else place, parts.path.rstrip("/"), "", ""))
        self._secrets = [*(auth or ()), *([token] if token else [])]
        self._own = parts.path.rstrip("/").endswith(_OWN)
        self._known: dict[str, Any] = {}
        self.asked: list[str] = []
        retries = urllib3.Retry(
            total=TRIES, redirect=False, status_forcelist=_BUSY, backoff_factor=0.1, raise_on_status=False
        )
        self._pool = urllib3.PoolManager(
            headers=headers, retries=retries, timeout=urllib3.Timeout(connect=timeout, read=timeout), ca_certs=ca
        )

    def __repr__(self) -> str:
        return f"Registry({public(self._root)!r})"

    def __reduce__(self) -> Any:
        raise KwireError("a registry is asked by one process: give others what Schemas.fetched() returns")

    # -- as a source

    def named(self, space: Space, name: int | str) -> Sequence[Written]:
        """``kwire.values.catalog.Source.named``. Raises ``KwireError`` where the registry cannot be asked."""
        if self._own:
            return self._own_named(space, name)
        if space is Space.GUID:
            found = self._schema(f"schemas/guids/{_quoted(name)}", guid=name)
        elif space in (Space.ID, Space.GLOBAL_ID, Space.CONTENT_ID):
            found = self._schema(f"schemas/ids/{_quoted(name)}", id=name)
        else:
            found = None
        return () if found is None else (found,)

    def versions(self, subject: str) -> Sequence[Written]:
        """``kwire.values.catalog.Source.versions``."""
        if self._own:
            listed = self._json(f"{_GROUP}/{_quoted(subject)}/versions")
            with _unfit(self):
                numbers = [stored.number(one["globalId"], 0) for one in (listed or {}).get("versions", ())]
            found = [one for number in sorted(numbers) for one in self._own_named(Space.GLOBAL_ID, number)]
            return [
                Written(one.format, one.text, one.id, one.guid, subject, at, one.references)
                for at, one in enumerate(found, 1)
            ]
        with _unfit(self):
            numbers = sorted(stored.number(one, 0) for one in self._json(f"subjects/{_quoted(subject)}/versions") or ())
        return [one for one in (self.version(subject, number) for number in numbers) if one is not None]

    def version(self, subject: str, version: int) -> Written | None:
        """``kwire.values.catalog.Source.version``."""
        if self._own:
            found = self.versions(subject)
            if version < 0:
                return next(reversed(found), None)
            return next((one for one in found if one.version == version), None)
        named = "latest" if version < 0 else str(version)
        # Values that were written with a deleted version are still there.
        more = "" if version < 0 else "?deleted=true"
        return self._schema(f"subjects/{_quoted(subject)}/versions/{named}{more}", subject=subject)

    def fetched(self, subjects: Iterable[str] | None) -> Catalog:
        """``kwire.values.catalog.Source.fetched``, with what they refer to."""
        if subjects is None and not self._own:
            with _unfit(self):
                return Catalog(Written.of(one) for one in self._json("schemas?deleted=true") or ())
        if subjects is None:
            listed = self._json("search/artifacts?limit=1000") or {}
            with _unfit(self):
                subjects = [stored.text(one.get("artifactId") or one["id"]) for one in listed.get("artifacts", ())]
        made = Catalog()
        waiting = [one for subject in subjects for one in self.versions(subject)]
        seen: set[tuple[str | None, int | None]] = set()
        while waiting:
            one = waiting.pop(0)
            if (one.subject, one.version) in seen:
                continue
            seen.add((one.subject, one.version))
            made.add(one)
            found = (self.version(other.subject, other.version) for other in one.references)
            waiting += [other for other in found if other is not None]
        return made

    # -- Apicurio's own API

    def _own_named(self, space: Space, name: int | str) -> Sequence[Written]:
        kinds = {
            Space.ID: ("contentIds", "globalIds"),
            Space.CONTENT_ID: ("contentIds",),
            Space.GLOBAL_ID: ("globalIds",),
            Space.CONTENT_HASH: ("contentHashes",),
        }.get(space, ())
        for kind in kinds:
            path = f"ids/{kind}/{_quoted(name)}"
            text = self._get(path)
            if text is None:
                continue
            references = self._json(f"{path}/references") or ()
            with _unfit(self):
                several = tuple(
                    Reference(stored.text(one["name"]), stored.text(one["artifactId"]), int(one["version"]))
                    for one in references
                )
                decoded = text.decode()
                number = None if isinstance(name, str) else name
                return (Written(format_of(decoded), decoded, id=number, references=several),)
        return ()

    # -- requests

    def _schema(self, path: str, **more: Any) -> Written | None:
        found = self._json(path)
        if found is None:
            return None
        with _unfit(self):
            return Written.of(found, **more)

    def _json(self, path: str) -> Any:
        text = self._get(path)
        if text is None:
            return None
        with _unfit(self):
            return stored.parsed(text)

    def _get(self, path: str) -> bytes | None:
        """What the registry answers. None: there is no such thing."""
        if path not in self._known:
            self.asked.append(path)
            self._known[path] = self._request(path)
        found: bytes | None = self._known[path]
        return found

    def _request(self, path: str) -> bytes | None:
        import urllib3

        try:
            answer = self._pool.request("GET", f"{self._root}/{path}", preload_content=False, redirect=False)
            try:
                data = answer.read(LARGEST + 1)
            finally:
                answer.release_conn()
        except urllib3.exceptions.HTTPError as error:
            raise self._error(path, str(getattr(error, "reason", None) or error)) from None
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise self._error(path, f"it answers with the status {answer.status}")
        if len(data) > LARGEST:
            raise self._error(path, f"an answer of more than {LARGEST} bytes")
        found: bytes = data
        return found

    def _error(self, path: str, said: str) -> KwireError:
        for one in sorted(self._secrets, key=len, reverse=True):
            said = said.replace(one, "***") if one else said
        return KwireError(hidden(f"the registry {public(self._root)} cannot be asked for {path}: {said}"))


class _unfit:  # noqa: N801 - it is used like a function
    """Makes one error of what is wrong with an answer."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, stored.UNFIT):
            where = public(self._registry._root)
            raise KwireError(f"the registry {where} answers with what is no schema: {error}") from None


def _sendable(token: str) -> str:
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise KwireError("credentials of a registry: a token is a text of ASCII characters without spaces")
    return token


def _basic(auth: tuple[str, str]) -> str:
    """User and password as a header has them: in Latin-1 where that has them, otherwise in UTF-8."""
    if not isinstance(auth, str):
        try:
            user, password = auth
            both = f"{stored.text(user)}:{stored.text(password)}"
            return stored.as_text(both.encode("utf-8" if max(both) > "\xff" else "latin-1"))
        except (TypeError, ValueError):
            pass
    raise KwireError("credentials of a registry: auth is a pair of texts, user and password")


def _quoted(name: int | str) -> str:
    return quote(str(name), safe="")
