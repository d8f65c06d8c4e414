"""A Kerberos KDC on loopback, for recording: Debian's krb5-kdc with a database of its own, gone when it stops.

    with Kdc() as kdc:
        kdc.keytab("kafka/localhost")      # a principal, and the file with its keys
        kdc.java                           # the option of a JVM that makes it use this KDC

Needs krb5-kdc and krb5-admin-server (Debian). The realm is KWIRE.TEST; all its keys live as long as the KDC.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "broker"))

from kafka_cluster import free_port  # noqa: E402  (found through the path that the line above sets)

REALM = "KWIRE.TEST"
_PROGRAMS = "/usr/sbin"


class Kdc:
    """A context manager; ``java`` and ``keytab`` are what a Kafka client or broker needs."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kwire-kdc-")
        self.folder = Path(self._folder.name)
        self.port = free_port(set())
        self._process: subprocess.Popen[bytes] | None = None
        client, server = self.folder / "krb5.conf", self.folder / "kdc.conf"
        self.java = f"-Djava.security.krb5.conf={client}"
        self._environment = {**os.environ, "KRB5_CONFIG": str(client), "KRB5_KDC_PROFILE": str(server)}
        client.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            f" rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
            f"[domain_realm]\n localhost = {REALM}\n"
        )
        server.write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self.folder}/principals\n"
            f"  key_stash_file = {self.folder}/stash\n  acl_file = {self.folder}/acl\n"
            f"  supported_enctypes = aes256-cts-hmac-sha1-96:normal\n }}\n"
        )

    def _run(self, program: str, *arguments: str) -> None:
        command = [f"{_PROGRAMS}/{program}", *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr or done.stdout}")

    def keytab(self, principal: str) -> Path:
        """Adds ``principal`` (without the realm) with random keys; the file that holds them."""
        path = self.folder / (principal.replace("/", "-") + ".keytab")
        self._run("kadmin.local", "-q", f"addprinc -randkey {principal}@{REALM}")
        self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}@{REALM}")
        return path

    def login(self, principal: str, keytab: Path) -> str:
        """The JAAS module of a client or broker that logs in with a keytab."""
        return (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true doNotPrompt=true "
            f'keyTab="{keytab}" principal="{principal}@{REALM}";'
        )

    def __enter__(self) -> Self:
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", os.urandom(12).hex())
        command = [f"{_PROGRAMS}/krb5kdc", "-n", "-r", REALM]
        with (self.folder / "kdc.log").open("wb") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return self
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self.stop()
                    raise
                time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=10)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()
