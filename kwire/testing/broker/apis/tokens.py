"""Delegation tokens (KIP-48), of which there are none: a broker as installed has no key to make them with."""

from __future__ import annotations

from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.apis.refusing import refuse
from kwire.testing.broker.asking import Ask

__all__ = ["refuse_tokens"]


def refuse_tokens(ask: Ask) -> WireMessage:
    """The error of Kafka: one for clients that have not logged in, and one for a broker without a key."""
    code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if ask.login.sasl is None:
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return refuse(ask, ask.refused() or code)
