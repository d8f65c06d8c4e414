"""Messages for people: error codes by name, what Kafka embeds in bytes fields decoded as well, and no secrets.

``describe(message, version)`` is ``to_dict`` with some differences; ``undescribe`` takes back the first two:

- A field named ``error_code`` holds the name (``"NOT_COORDINATOR"``); a code without a name stays a number.
- Where the group protocol is ``consumer`` or ``connect``, members send each other messages inside JoinGroup, SyncGroup
  and DescribeGroups. These are a dict instead of bytes (``kwire.protocol.embedded``). Bytes that are not what they
  should be stay bytes. They belong to the group's members, and brokers do not look at them either. The request in an
  ``Envelope`` is a dict of ``header`` and ``body``.
- Passwords, tokens and the like are left out: ``{"redacted": 26}`` stands in place of 26 bytes
  (``kwire.protocol.secrets``). ``secrets=True`` leaves them in. ``undescribe`` refuses what was left out.
- With ``payloads=False`` record sets are left out as well: ``{"bytes": 13225}``.

``kwire.protocol.bodies`` makes programs that write the same as text: what is changed here is changed there.

An embedded schema begins with an int16 version. A version newer than the newest known is read as that one. What is left
over is ignored, as Kafka's own ConsumerProtocol does. In some layouts the protocol type is missing: it is in the
request, or not on the wire at all. There the bytes must fit exactly to be taken for what they seem to be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kwire import schema
from kwire.codec import registry
from kwire.codec.objects import WireMessage, WireStruct, dump_json
from kwire.codec.redacting import SIZE
from kwire.errors import EncodeError
from kwire.protocol import secrets as rules
from kwire.protocol.embedded import (
    ASSIGNMENT,
    CONSUMER,
    SUBSCRIPTION,
    decode_embedded,
    encode_embedded,
    member_bytes,
    member_data,
)
from kwire.protocol.error_codes import ErrorCode, error_name
from kwire.protocol.headers import encode_request, request_header_version
from kwire.schema import model

__all__ = [
    "CONSUMER",
    "EMBEDDED",
    "Place",
    "Shown",
    "decode_embedded",
    "describe",
    "described",
    "encode_embedded",
    "show",
    "to_json",
    "undescribe",
]

Place = dict[str, Any]
"""Type: fields of a message by name. The value is a ``Place`` of the fields below, or says what the bytes hold."""

EMBEDDED: Final[dict[str, Place]] = {
    "JoinGroupRequest": {"protocols": {"metadata": SUBSCRIPTION}},
    "JoinGroupResponse": {"members": {"metadata": SUBSCRIPTION}},
    "SyncGroupRequest": {"assignments": {"assignment": ASSIGNMENT}},
    "SyncGroupResponse": {"assignment": ASSIGNMENT},
    "DescribeGroupsResponse": {
        "groups": {"members": {"member_metadata": SUBSCRIPTION, "member_assignment": ASSIGNMENT}}
    },
}
"""Message -> fields (through arrays) -> the schema inside, where consumers are the members."""

_ASSIGNORS: Final = ("protocol_name", "protocol_data", "name")
"""Fields that name the protocol of a group, which is its assignor.

They are fields of the responses, of DescribeGroups, and of a protocol that JoinGroup offers.
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """What of a body is shown, and how.

    - ``secrets``: secrets too.
    - ``payloads``: record sets as bytes, not their size.
    - ``typed``: each field has one type whatever it holds, as the columns of a table do. So bytes are not decoded. An
      error code without a name is text, and so is the word in place of a secret.
    """

    secrets: bool = False
    payloads: bool = True
    typed: bool = False


def describe(message: WireMessage, version: int, *, secrets: bool = False, payloads: bool = True) -> dict[str, Any]:
    """``message.to_dict(version)`` with names for error codes, with embedded schemas decoded, and without secrets.

    ``secrets``: they are left in. Without ``payloads``, record sets are left out.
    """
    return described(message, version, Shown(secrets, payloads))


def described(message: WireMessage, version: int, shown: Shown) -> dict[str, Any]:
    """``describe``, as it is ``shown``."""
    values = message.to_dict(version)
    if not shown.typed:
        place = EMBEDDED.get(message.SCHEMA.name)
        if place is not None:
            _expand(type(message), values, place, shown)
        if message.SCHEMA.name == rules.ENVELOPE:
            _open_envelope(values, shown)
    show(type(message), values, shown, errors=_has_error_code(model.ByIdentity(message.SCHEMA)))
    return values


def show(kind: type[WireStruct], values: dict[str, Any], shown: Shown, *, errors: bool) -> None:
    """Leaves out of ``values``, which ``to_dict`` of a ``kind`` gave, what is not shown.

    ``errors``: error codes have their names."""
    if shown.typed and not shown.payloads:
        # A size is all that is shown of a secret, and here the column cannot hold anything else.
        _measure(kind, values, True)
    if not shown.secrets:
        rules.redact(kind, values)
    if not shown.payloads and not shown.typed:
        _measure(kind, values, shown.secrets)
    if errors:
        _name_errors(values)
    if shown.typed:
        _settle(values)


def to_json(
    message: WireMessage, version: int, *, indent: int | None = None, secrets: bool = False, payloads: bool = True
) -> str:
    """``describe`` as JSON text: bytes as base64, uuids in Kafka's text form, what is not UTF-8 as U+FFFD."""
    return dump_json(describe(message, version, secrets=secrets, payloads=payloads), indent=indent)


def undescribe(name: str, values: Mapping[str, Any]) -> WireMessage:
    """The message ``name`` of what ``describe`` (or ``to_json``, parsed) made of it.

    Raises ``EncodeError``, also where a secret was left out: with ``secrets=True`` it is not.
    """
    plain = _copy(values)
    if name == rules.ENVELOPE:
        _close_envelope(plain)
    place = EMBEDDED.get(name)
    if place is not None:
        _collapse(plain, place)
    _number_errors(plain)
    return registry.message_class(schema.message(name)).from_dict(plain)


def _open_envelope(values: dict[str, Any], shown: Shown) -> None:
    request = rules.embedded(values["request_data"])
    if request is not None:
        version = request.header.request_api_version
        header = request.header.to_dict(request_header_version(request.header.request_api_key, version))
        values["request_data"] = {"header": header, "body": described(request.body, version, shown)}


def _close_envelope(values: dict[str, Any]) -> None:
    inside = values.get("request_data")
    if not isinstance(inside, Mapping) or rules.is_redacted(inside):
        return
    head = inside.get("header")
    header: Any = registry.message_class(schema.message("RequestHeader")).from_dict(head if head is not None else {})
    message = schema.request(header.request_api_key) if isinstance(header.request_api_key, int) else None
    if message is None or set(inside) != {"header", "body"} or not isinstance(inside["body"], Mapping):
        raise EncodeError("expected the header and the body of a request", layout=rules.ENVELOPE, path="$.request_data")
    values["request_data"] = encode_request(
        undescribe(message.name, inside["body"]),
        api_version=header.request_api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
    )


@lru_cache(maxsize=1024)
def _has_error_code(key: model.ByIdentity) -> bool:
    message = key.message
    every = [*message.fields, *(field for struct in message.structs.values() for field in struct.fields)]
    return any(field.name == "error_code" for field in every)


_WITH_RECORDS: Final[dict[tuple[type[WireStruct], bool], tuple[tuple[str, type[WireStruct] | None], ...]]] = {}


def _with_records(kind: type[WireStruct], secrets: bool) -> tuple[tuple[str, type[WireStruct] | None], ...]:
    """The fields of a class that are record sets, or structs with such: name, class of the struct."""
    known = _WITH_RECORDS.get((kind, secrets))
    if known is not None:
        return known
    found: list[tuple[str, type[WireStruct] | None]] = []
    for field in kind.FIELDS:
        inner = kind.STRUCTS.get(field.name)
        if inner is not None and _with_records(inner, secrets):
            found.append((field.name, inner))
        elif field.type == model.Primitive("records") and (secrets or field.secret not in ("always", "frame")):
            found.append((field.name, None))
    return _WITH_RECORDS.setdefault((kind, secrets), tuple(found))


def _measure(kind: type[WireStruct], values: dict[str, Any], secrets: bool) -> None:
    for name, inner in _with_records(kind, secrets):
        value = values.get(name)
        if inner is None:
            if isinstance(value, bytes):
                values[name] = {SIZE: len(value)}
        elif value:
            for one in value if isinstance(value, list) else (value,):
                _measure(inner, one, secrets)


def _settle(values: dict[str, Any]) -> None:
    """What ``Shown.typed`` says, of names and secrets."""
    for name, value in values.items():
        if name == "error_code" and isinstance(value, int):
            values[name] = str(value)
        elif rules.is_redacted(value):
            values[name] = json.dumps(value)
        elif isinstance(value, dict):
            _settle(value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for one in value:
                _settle(one)


def _expand(
    kind: type[WireStruct],
    values: dict[str, Any],
    place: Place,
    shown: Shown,
    protocol_type: str | None = None,
    assignor: str | None = None,
) -> None:
    # What is secret stays bytes, in whose place a size will stand.
    hidden = () if shown.secrets else [name for name, secret, _ in kind.SECRET_FIELDS if secret]
    protocol_type = values.get("protocol_type", protocol_type)
    assignor = next((values[one] for one in _ASSIGNORS if one in values), assignor)
    for name, inside in place.items():
        value = values.get(name)
        if isinstance(value, list):
            for one in value:
                _expand(kind.STRUCTS[name], one, inside, shown, protocol_type, assignor)
        elif isinstance(value, bytes) and value and name not in hidden:
            values[name] = member_data(inside, value, protocol_type, assignor)


def _collapse(values: dict[str, Any], place: Place) -> None:
    for name, inside in place.items():
        value = values.get(name)
        if isinstance(value, list):
            for one in value:
                if isinstance(one, dict):
                    _collapse(one, inside)
        elif isinstance(value, dict) and not rules.is_redacted(value):
            values[name] = member_bytes(inside, value)


def _name_errors(values: Any) -> None:
    if isinstance(values, list):
        for one in values:
            if not isinstance(one, (dict, list)):
                return
            _name_errors(one)
        return
    for name, value in values.items():
        if name == "error_code":
            values[name] = error_name(value) or value
        elif isinstance(value, (dict, list)):
            _name_errors(value)


def _number_errors(values: Any) -> None:
    if isinstance(values, list):
        for one in values:
            _number_errors(one)
    elif isinstance(values, dict):
        for name, value in values.items():
            if name == "error_code" and isinstance(value, str):
                try:
                    values[name] = int(ErrorCode[value])
                except KeyError:
                    raise EncodeError(f"no error code is named {value!r}", path=f"$..{name}") from None
            else:
                _number_errors(value)


def _copy(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {name: _copy(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_copy(value) for value in values]
    return values
