"""Key logs: what lines are understood, and what becomes of those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tls_connections import Talk, heard, vector

from kwire.tls import KeyLog, keylog

RANDOM, MASTER, SECRET = "ab" * 32, "cd" * 48, "ef" * 32
LINE = f"CLIENT_RANDOM {RANDOM} {MASTER}\n".encode()


def master(keys: KeyLog) -> bytes | None:
    return keys.secret(keylog.MASTER, bytes.fromhex(RANDOM))


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        LINE.rstrip(),
        LINE.replace(b"\n", b"\r\n"),
        LINE.upper(),
        b"# a comment\n\n  " + LINE,
        LINE.replace(b" ", b"\t"),
        b"CLIENT_RANDOM 12 34\n" + LINE,
        LINE + LINE,
    ],
)
def test_a_line_is_understood(text: bytes) -> None:
    assert master(KeyLog(text)) == bytes.fromhex(MASTER)


def test_all_labels_of_tls_13_are_understood() -> None:
    for label in (
        keylog.EARLY,
        keylog.CLIENT_HANDSHAKE,
        keylog.SERVER_HANDSHAKE,
        keylog.CLIENT_TRAFFIC,
        keylog.SERVER_TRAFFIC,
    ):
        keys = KeyLog(b"%s %s %s" % (label, RANDOM.encode(), SECRET.encode()))
        assert keys.secret(label, bytes.fromhex(RANDOM)) == bytes.fromhex(SECRET)
        assert keys.secret(b"other", bytes.fromhex(RANDOM)) is None


def test_lines_that_are_passed_over_are_counted() -> None:
    keys = KeyLog(
        b"EXPORTER_SECRET %s %s\n" % (RANDOM.encode(), SECRET.encode())
        + b"CLIENT_RANDOM zz zz\nCLIENT_RANDOM\nhello\n\xff\xfe\0\n"
        + b"CLIENT_TRAFFIC_SECRET_0 %s 12\n" % RANDOM.encode()
        + LINE.replace(b"cd", b"ce")
        + LINE
        + b"x" * 5000
    )
    assert (keys.ignored, keys.damaged, keys.conflicting, len(keys)) == (1, 6, 1, 1)
    assert master(keys) == bytes.fromhex(MASTER)


def test_no_more_secrets_are_kept_than_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keylog, "MOST_SECRETS", 3)
    keys = KeyLog(b"".join(b"CLIENT_RANDOM %064x %096x\n" % (k, k) for k in range(10)))
    assert (len(keys), keys.dropped) == (3, 7)


def test_files_are_read_on(tmp_path: Path) -> None:
    path, other = tmp_path / "keys", tmp_path / "other"
    path.write_bytes(b"# begun\n" + LINE[:40])
    other.write_bytes(b"")
    keys = KeyLog.open(path, other)
    assert master(keys) is None
    with path.open("ab") as file:
        file.write(LINE[40:])
    assert master(keys) == bytes.fromhex(MASTER)
    assert (keys.damaged, keys.conflicting) == (0, 0)


def test_a_last_line_without_an_end_counts_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE[:-10])
    keys = KeyLog.open(path)
    assert (len(keys), keys.damaged) == (0, 0)
    path.write_bytes(LINE[:-1])
    assert master(keys) == bytes.fromhex(MASTER)
    path.write_bytes(LINE + LINE.replace(b"ab", b"ac"))
    assert keys.secret(keylog.MASTER, b"\xac" * 32) == bytes.fromhex(MASTER)
    assert (len(keys), keys.damaged) == (2, 0)


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(LINE * 3)
    keys = KeyLog.open(path)
    path.write_bytes(LINE.replace(b"ab", b"ac"))
    assert keys.secret(keylog.MASTER, b"\xac" * 32) == bytes.fromhex(MASTER)
    path.unlink()
    assert keys.secret(keylog.MASTER, b"\xad" * 32) is None


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        KeyLog.open(tmp_path / "none")


def test_the_lines_of_older_agents_name_sessions() -> None:
    name = "tls12-session-id"
    talk = vector(name)
    line = next(one for one in talk.keys.splitlines() if one.startswith(b"CLIENT_RANDOM"))
    hello = talk.wire[0][1]
    session = hello[44 : 44 + hello[43]]
    keys = KeyLog(b"RSA Session-ID:%s Master-Key:%s\n" % (session.hex().encode(), line.split()[2]))
    assert len(keys) == 1
    assert heard(talk, keys=keys).said == heard(talk).said


@pytest.mark.parametrize("name", ["tls12-rsa-aes128-gcm", "tls12-rsa-aes128-ccm8", "tls12-cbc-mac-then-encrypt"])
def test_premaster_secrets_of_rsa_will_do(name: str) -> None:
    # With an extended master secret, which is made of the handshake.
    talk = vector(name)
    lines = [line for line in talk.keys.splitlines() if line.startswith(b"RSA ")]
    assert len(lines) == 1
    assert heard(talk, keys=KeyLog(lines[0]), size=100).said == heard(talk).said
    # Also where the server's part was captured before it.
    late = Talk(sorted(talk.wire, key=lambda piece: piece[0] == 0), talk.keys)
    assert heard(late, keys=KeyLog(lines[0])).said == heard(talk).said
    assert heard(late, keys=KeyLog(lines[0].replace(lines[0][4:8], b"0000"))).plains == []


def test_a_file_that_has_not_grown_is_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys"
    file.write_bytes(LINE)
    keys = KeyLog.open(file)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", None)
        assert keys.secret(b"CLIENT_RANDOM", bytes(32)) is None
    with file.open("ab") as more:
        more.write(b"CLIENT_RANDOM %s %s\n" % (b"00" * 32, b"11" * 48))
    assert keys.secret(b"CLIENT_RANDOM", bytes(32)) == b"\x11" * 48
