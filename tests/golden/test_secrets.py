"""Captures of brokers with every SASL mechanism, delegation tokens and configurations show none of their secrets."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest

from kwire import capture, log, tables
from kwire.capture.reading import Reading
from kwire.codec.objects import WireStruct
from kwire.kernels.layouts import Status
from kwire.protocol.secrets import sasl_user
from kwire.schema.configs import PASSWORD, is_secret
from kwire.tables.log_records import DEEP

HERE = Path(__file__).parent
AUTH = sorted(HERE.glob("*-auth/*.pcap"))
OTHERS = [HERE / "kafka-4.3-kraft-librdkafka", HERE / "kafka-4.3-kraft-java", HERE / "kafka-4.3-kraft-brokers"]
CAPTURES = AUTH + [file for folder in OTHERS for file in sorted(folder.glob("*.pcap*"))]
SEGMENTS = sorted(HERE.glob("segments/*/__cluster_metadata-0"))
KNOWN = (b"kwire-secret", b"not-a-secret", b"only-for-tests")
"""Passwords with which the captures were recorded (``kafka_cluster.py``, ``scenarios.py``)."""


def secrets_in(value: WireStruct) -> set[bytes]:
    """What the fields that are always secret hold, from six bytes on: shorter ones are elsewhere by chance."""
    found: set[bytes] = set()
    for name, kind, inner in value.SECRET_FIELDS:
        one = getattr(value, name)
        if inner is not None:
            for each in one if isinstance(one, (list, tuple)) else [one] if one is not None else []:
                found |= secrets_in(each)
        elif kind == "always" and one and len(one) >= 6:
            found.add(one.encode() if isinstance(one, str) else bytes(one))
    return found


def forms(secret: bytes) -> list[str]:
    inner = [base64.b64encode(bytes(shift) + secret)[4:-4].decode() for shift in range(3) if len(secret) >= 9]
    return [base64.b64encode(secret).decode(), repr(secret)[2:-1], secret.hex(), *inner]


def rows(data: bytes, table: str, **options: Any) -> str:
    return repr([batch.to_pylist() for batch in capture.read(io.BytesIO(data), table, **options)])


@pytest.mark.parametrize("file", CAPTURES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_captures_show_no_secret(file: Path) -> None:
    data = file.read_bytes()
    secrets: set[bytes] = set(KNOWN)
    shown = []
    for part in Reading(io.BytesIO(data)):
        for frame in part:
            if frame.status == Status.OK:
                secrets |= secrets_in(frame.body)
                shown.append(repr(frame.body))
            elif frame.status == Status.SASL and len(frame.data) >= 6:
                secrets.add(frame.data)
    shown += [rows(data, table) for table in ("messages", "records", "client_metrics", "frames")]
    text = "".join(shown)
    for secret in secrets:
        assert not any(form in text for form in forms(secret)), secret
    if file in AUTH:
        assert len(secrets) > len(KNOWN) + 10
        asked = rows(data, "messages", secrets=True)
        assert sum(base64.b64encode(secret).decode() in asked for secret in secrets) > 10


@pytest.mark.parametrize("file", AUTH, ids=lambda file: file.parent.name)
def test_users_are_found(file: Path) -> None:
    users = set()
    for part in Reading(io.BytesIO(file.read_bytes())):
        for frame in part:
            if frame.status == Status.OK and frame.api_key == 36 and not frame.is_response:
                users.add(sasl_user(frame.body.auth_bytes))
    assert users - {None}
    assert all(user is None or user.isalnum() or "-" in user for user in users), users


@pytest.mark.parametrize("folder", OTHERS, ids=lambda folder: folder.name)
def test_described_configurations_are_judged_as_the_brokers_do(folder: Path) -> None:
    """An entry that a broker calls neither sensitive nor a password is shown."""
    for file in sorted(folder.glob("*.pcap*")):
        for part in Reading(io.BytesIO(file.read_bytes())):
            for frame in part:
                if frame.status == Status.OK and frame.is_response and frame.api_key == 32:
                    for result in frame.body.results:
                        for entry in result.configs:
                            broker = entry.is_sensitive or entry.config_type == PASSWORD
                            ours = is_secret(entry.name, entry.value, resource_type=result.resource_type)
                            assert broker or not ours, entry.name


@pytest.mark.parametrize("folder", SEGMENTS, ids=lambda folder: folder.parent.name)
def test_segments_of_the_metadata_log_show_what_is_no_secret(folder: Path) -> None:
    (segment,) = [one for one in log.find(folder) if one.topic == "__cluster_metadata"][:1]
    for table in (tables.table("records", tables.LOG), DEEP):
        hidden = [row for batch in table.read(segment) for row in batch.to_pylist()]
        whole = [row for batch in table.read(segment, secrets=True) for row in batch.to_pylist()]
        changed = [(one, other) for one, other in zip(hidden, whole, strict=True) if one != other]
        assert all(b"redacted" in one["value"] for one, _ in changed)
        assert len(changed) < len(hidden)
