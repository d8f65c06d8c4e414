"""Whatever a secret is, it is in nothing that is shown; and nothing else is missing there."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kwire import schema
from kwire.codec import registry
from kwire.codec.redacting import is_redacted
from kwire.protocol.describe import describe, to_json
from kwire.schema import model
from kwire.testing import strategies

CANARY = "Zq7Vx0Kp9Wm3Rt5Y"

MARKED = [
    (message, version)
    for message in map(schema.message, schema.names())
    if registry.message_class(message).SECRET_FIELDS
    for version in message.versions
]
"""Every message that has a secret field, in each version."""


@st.composite
def values_with_secrets(draw: st.DrawFn) -> tuple[Any, int, bytes]:
    """A message whose secret fields, where they are not null, hold a canary in random bytes."""
    message, version = draw(st.sampled_from(MARKED))
    value = draw(strategies.messages(message, version, unknown_tags=False))
    before, behind = draw(st.binary(max_size=20)), draw(st.binary(max_size=20))
    _fill(value, before + CANARY.encode() + behind)
    return value, version, before + CANARY.encode() + behind


def _fill(value: Any, secret: bytes) -> None:
    for field, _, inner in type(value).SECRET_FIELDS:
        found = getattr(value, field)
        if inner is not None:
            for one in found if isinstance(found, list) else [found] if found is not None else []:
                _fill(one, secret)
        elif found is not None:
            one = next(known for known in value.FIELDS if known.name == field)
            setattr(value, field, secret if one.type != model.Primitive("string") else _text(secret))
            if one.secret == "config":
                value.name = "listener.name.x.ssl.key.password"
            if one.secret == "topic":
                setattr(value, field, None)  # what its topic is, is said elsewhere


def _text(secret: bytes) -> str:
    return secret.decode("utf-8", "surrogateescape")


def _forms(secret: bytes) -> list[str]:
    return [CANARY, base64.b64encode(secret).decode(), secret.hex(), CANARY.encode().hex()]


@given(values_with_secrets())
def test_no_secret_is_shown_unless_asked_for(drawn: tuple[Any, int, bytes]):
    value, version, secret = drawn
    hidden = [to_json(value, version), value.to_json(version), repr(describe(value, version)), repr(value)]
    for text in hidden:
        assert not any(form in text for form in _forms(secret))
    plain = value.to_dict(version)
    assert _without(json.loads(to_json(value, version)), json.loads(to_json(value, version, secrets=True)))
    assert value.to_dict(version) == plain


def _without(hidden: Any, shown: Any) -> bool:
    """Whether ``hidden`` is ``shown`` but for what was left out."""
    if is_redacted(hidden):
        return shown not in (None, "")
    if isinstance(hidden, dict):
        return list(hidden) == list(shown) and all(_without(hidden[name], shown[name]) for name in hidden)
    if isinstance(hidden, list):
        return len(hidden) == len(shown) and all(map(_without, hidden, shown))
    return bool(hidden == shown or hidden != hidden)
