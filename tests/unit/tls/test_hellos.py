"""Hellos: what is read of them, and that any bytes are read or refused."""

from __future__ import annotations

import pytest
from tls_connections import hello13

from kwire.errors import DecodeError
from kwire.tls.hellos import accepts_early_data, client_hello, server_hello
from kwire.tls.suites import suite

CLIENT, SERVER = (record[9:] for record in hello13(0x1302, session=b"12345"))


def test_what_is_read() -> None:
    hello, answer = client_hello(CLIENT), server_hello(SERVER)
    assert (hello.suites, hello.versions, hello.server_name) == ((0x1302,), (0x0304,), "broker")
    assert (hello.session_id, hello.early_data, hello.resumes) == (b"12345", False, False)
    assert (answer.suite, answer.version, answer.retry) == (0x1302, 0x0304, False)


@pytest.mark.parametrize(("whole", "read"), [(CLIENT, client_hello), (SERVER, server_hello)])
def test_every_beginning_is_refused_with_an_offset(whole: bytes, read: object) -> None:
    assert callable(read)
    # Without extensions they are those of an older client.
    bare = whole.index(b"\0\x2b") - 2
    for end in range(len(whole)):
        if end == bare:
            assert read(whole[:end])
            continue
        with pytest.raises(DecodeError) as refused:
            read(whole[:end])
        assert refused.value.offset is not None


def test_a_name_that_is_no_text_is_shown_all_the_same() -> None:
    assert client_hello(CLIENT.replace(b"broker", b"br\xffker")).server_name == "br\\xffker"


def test_early_data_is_accepted_by_an_extension() -> None:
    assert accepts_early_data(b"\x00\x04\x00\x2a\x00\x00")
    assert not accepts_early_data(b"\x00\x00")
    with pytest.raises(DecodeError):
        accepts_early_data(b"\x00\x04\x00\x2a\x00\x01")


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (0x1301, ("TLS_AES_128_GCM_SHA256", True, "GCM", 16, 16, "sha256", 0)),
        (0x1305, ("TLS_AES_128_CCM_8_SHA256", True, "CCM", 16, 8, "sha256", 0)),
        (0xC030, ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", False, "GCM", 32, 16, "sha384", 0)),
        (0xCCA9, ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", False, "CHACHA20", 32, 16, "sha256", 0)),
        (0xC0A0, ("TLS_RSA_WITH_AES_128_CCM_8", False, "CCM", 16, 8, "sha256", 0)),
        (0x002F, ("TLS_RSA_WITH_AES_128_CBC_SHA", False, "CBC", 16, 0, "sha256", 20)),
        (0xC024, ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", False, "CBC", 32, 0, "sha384", 48)),
    ],
)
def test_a_suite_is_what_its_name_says(number: int, what: tuple[object, ...]) -> None:
    one = suite(number)
    assert (one.name, one.tls13, one.cipher, one.key, one.tag, one.digest, one.mac) == what


@pytest.mark.parametrize("number", [0x0001, 0x000A, 0x0005, 0xC050, 0x0041, 0xFFFF, 0x1306])
def test_other_suites_have_a_name_alone(number: int) -> None:
    assert suite(number).cipher == ""
    assert suite(number).name
