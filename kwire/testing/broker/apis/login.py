"""SaslHandshake and SaslAuthenticate: who a client is."""

from __future__ import annotations

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.authentication import RefusedLoginError

__all__ = ["authenticate", "handshake"]


def handshake(ask: Ask) -> WireMessage:
    """The client names a mechanism. A refusal says which ones there are."""
    code = ask.refused() or ask.login.handshake(ask.body.mechanism)
    sasl = ask.login.sasl
    return messages.SaslHandshakeResponse(error_code=code, mechanisms=[] if sasl is None else list(sasl.mechanisms))


def authenticate(ask: Ask) -> WireMessage:
    """A token of the client, and the broker's."""
    kind, code = messages.SaslAuthenticateResponse, ask.refused()
    if code:
        return kind(error_code=code, error_message="Authentication failed")
    if not ask.login.begun:
        text = "SaslAuthenticate request received after successful authentication"
        return kind(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=text)
    try:
        data, done = ask.login.token(bytes(ask.body.auth_bytes))
    except RefusedLoginError as error:
        return kind(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(error))
    sasl = ask.login.sasl
    assert sasl is not None
    return kind(auth_bytes=data, session_lifetime_ms=int(sasl.lifetime * 1000) if done else 0)
