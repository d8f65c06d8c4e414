"""Connections of real ends, and of made ones, as ``kwire.tls.Decryptor`` hears them."""

from __future__ import annotations

import json
import random
import ssl

import pytest
from tls_connections import VECTORS, Talk, between, heard, made13, vector

from kwire.errors import CaptureError
from kwire.tls import Decryptor, KeyLog, Verdict
from kwire.tls.decryptor import Plain

LINES = (b"a first line from the client\n", b"and another one " + b"0123456789" * 4 + b"\n")
NAMES = sorted(one.stem for one in VECTORS.glob("*.json"))
UNSUPPORTED = {
    "tls10-cbc": "TLS 1.0 is not supported",
    "tls12-aria": "the cipher suite TLS_ECDHE_ECDSA_WITH_ARIA_128_GCM_SHA256 is not supported",
}
SAID: dict[str, tuple[bytes, ...]] = {
    "tls13-small-records": (b"x" * 3000 + b"\n",),
    "tls12-large": (b"x" * 20_000 + b"\n",),
    "tls13-key-update": (*LINES, LINES[0]),
}
EARLY = b"early data of the client\n"


def expected(name: str) -> tuple[bytes, bytes]:
    """What both ends said: the server sends each line back in reverse."""
    lines = SAID.get(name, LINES)
    if "early" in name:
        return (EARLY if name == "tls13-early-data" else b"") + b"".join(lines), b"the server says this\n" * 2
    if name == "tls12-large":
        # It takes no more than a record at a time.
        return lines[0], b"x" * 16_384 + b"\n" + b"x" * 3616 + b"\n"
    # To what comes after the last KeyUpdate there is no answer any more.
    return b"".join(lines), b"".join(line[-2::-1] + b"\n" for line in lines[:2])


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(UNSUPPORTED)))
@pytest.mark.parametrize("size", [1 << 30, 1000, 1])
def test_connections_of_openssl_are_read(name: str, size: int) -> None:
    found = heard(vector(name), size=size)
    assert found.decryptor.verdict is Verdict.DECRYPTED
    assert found.decryptor.why == "decrypted"
    assert found.said == expected(name)
    assert found.lost == (0, 0)
    assert found.decryptor.server_name == "broker.example"


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_supported_is_said_by_name(name: str) -> None:
    found = heard(vector(name))
    assert found.decryptor.verdict is (Verdict.VERSION if name == "tls10-cbc" else Verdict.SUITE)
    assert found.decryptor.why == UNSUPPORTED[name]
    assert found.plains == []


def test_there_are_vectors() -> None:
    assert len(NAMES) == 30


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("tls13-key-update", (4, 0, False)),
        ("tls12-renegotiation", (0, 1, False)),
        ("tls13-resumed", (0, 0, True)),
        ("tls13-early-data", (0, 0, True)),
        ("tls12-ticket", (0, 0, True)),
        ("tls12-session-id", (0, 0, True)),
        ("tls13-retry", (0, 0, False)),
    ],
)
def test_what_happened_in_a_connection_is_told(name: str, what: tuple[int, int, bool]) -> None:
    found = heard(vector(name)).decryptor
    assert (found.key_updates, found.renegotiations, found.resumed) == what
    assert found.client_side == 0


OTHERS = ("PSK", "SRP", "ADH", "AECDH", "DSS")
"""Those that, as those of DHE, need more than a certificate: there are recorded connections of some."""


def ciphers() -> list[str]:
    """The cipher suites of TLS 1.2 that this OpenSSL has and that need no more than a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    return [
        one["name"]
        for one in context.get_ciphers()
        if one["protocol"] in ("TLSv1.2", "TLSv1.0")
        and not one["name"].startswith("DHE")
        and not any(word in one["name"] for word in OTHERS)
    ]


@pytest.mark.parametrize("name", ciphers())
def test_every_cipher_suite_of_openssl_is_read_or_named(name: str) -> None:
    lines = [(0, b"question"), (1, b"answer" * 5000), (0, b"another"), (1, b"")]
    kind = "ec" if "ECDSA" in name else "rsa"
    talk = between(lines, ssl.TLSVersion.TLSv1_2, name, kind)
    found = heard(talk)
    if any(word in name for word in ("ARIA", "CAMELLIA", "NULL")):
        assert found.decryptor.verdict is Verdict.SUITE
        assert str(found.decryptor.cipher) in found.decryptor.why
    else:
        assert found.said == talk.said
        assert found.decryptor.why == "decrypted"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_ends_of_python_are_read(version: ssl.TLSVersion) -> None:
    talk = between([(0, b"a"), (1, bytes(200_000)), (0, bytes(100_000)), (1, b"b")], version)
    for size in (1 << 30, 4096, 77):
        found = heard(talk, size=size)
        assert found.said == talk.said
        assert found.lost == (0, 0)


@pytest.mark.parametrize("suite", [0x1301, 0x1302, 0x1303, 0x1304, 0x1305])
def test_records_that_were_made_by_the_letter(suite: int) -> None:
    lines = [(0, b"a"), (1, bytes(16384)), (0, b"b"), (1, b"c"), (0, b"d"), (1, b"e")]
    talk = made13(lines, suite, padding=5, updates=[1, 2, 4])
    found = heard(talk)
    assert found.said == talk.said
    assert found.decryptor.key_updates == 3
    assert found.decryptor.server_name == "broker"


def test_each_record_is_told_with_the_position_behind_it() -> None:
    talk = made13([(0, b"one"), (0, b"two"), (1, b"three")])
    found = heard(talk)
    length = sum(len(data) for side, data in talk.wire if side == 0)
    alert = 5 + 2 + 1 + 16
    (plain,) = [one for one in found.plains if one.side == 0 and b"two" in one.data]
    assert plain.lengths[-1] == 3
    assert plain.ends[-1] == length - alert


def test_the_directions_may_be_the_other_way_round() -> None:
    talk = made13([(0, b"question"), (1, b"answer")])
    found = heard(Talk([(1 - side, data) for side, data in talk.wire], talk.keys))
    assert found.said == (b"answer", b"question")
    assert found.decryptor.client_side == 1


def test_one_direction_alone_is_read_without_the_hello_of_the_server() -> None:
    talk = made13([(0, b"question"), (1, b"answer"), (0, b"more")], 0x1303)
    found = heard(talk, without=lambda side, position: side == 1)
    assert found.said == (b"questionmore", b"")
    assert found.decryptor.cipher == "TLS_CHACHA20_POLY1305_SHA256"


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(UNSUPPORTED) - {"tls12-renegotiation"}))
@pytest.mark.parametrize("first", [0, 1])
def test_directions_may_be_captured_one_behind_the_other(name: str, first: int) -> None:
    wire = sorted(vector(name).wire, key=lambda piece: piece[0] != first)
    found = heard(Talk(wire, vector(name).keys))
    assert (found.said, found.lost) == (expected(name), (0, 0))


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(UNSUPPORTED) - {"tls12-renegotiation"}))
@pytest.mark.parametrize("seed", range(5))
def test_directions_may_be_captured_out_of_step(name: str, seed: int) -> None:
    rng, left = random.Random(seed), [[data for side, data in vector(name).wire if side == which] for which in (0, 1)]
    wire: list[tuple[int, bytes]] = []
    while any(left):
        side = rng.choice([side for side in (0, 1) if left[side]])
        wire.append((side, left[side].pop(0)))
    found = heard(Talk(wire, vector(name).keys), size=rng.choice((1, 100, 1 << 30)))
    assert (found.said, found.lost) == (expected(name), (0, 0))


def test_a_server_without_its_client_is_not_waited_for_beyond_the_end() -> None:
    for name in NAMES:
        found = heard(vector(name), without=lambda side, position: side == 0)
        assert found.decryptor.verdict in (Verdict.NO_HANDSHAKE, Verdict.VERSION, Verdict.SUITE)
        assert found.plains == []


def test_bytes_that_come_twice_count_once() -> None:
    talk = made13([(0, b"question"), (1, b"answer")])
    decryptor = Decryptor(KeyLog(talk.keys))
    at, said = [0, 0], [b"", b""]
    before = [b"", b""]
    for side, data in talk.wire:
        again = before[side][-7:]
        for plain in decryptor.feed(side, again + data, at[side] - len(again)):
            said[plain.side] += plain.data
        at[side] += len(data)
        before[side] += data
    assert (said[0], said[1]) == talk.said


# --- losses -----------------------------------------------------------------------------------------------------------


def records_of(talk: Talk, side: int) -> list[tuple[int, int]]:
    """Where the records of a direction begin and end."""
    data = b"".join(one for which, one in talk.wire if which == side)
    found, at = [], 0
    while at < len(data):
        stop = at + 5 + int.from_bytes(data[at + 3 : at + 5], "big")
        found.append((at, stop))
        at = stop
    return found


LONG = [(k % 2, b"%06d" % k * (1 + k % 50)) for k in range(200)]


@pytest.mark.parametrize("name", ["tls13", "tls12-gcm", "tls12-cbc"])
@pytest.mark.parametrize("missing", [1, 3, 40])
def test_behind_a_hole_the_records_are_read_on(name: str, missing: int) -> None:
    if name == "tls13":
        talk = made13(LONG)
    else:
        cipher = {"tls12-gcm": "ECDHE-ECDSA-AES128-GCM-SHA256", "tls12-cbc": "ECDHE-ECDSA-AES128-SHA256"}[name]
        talk = between(LONG, ssl.TLSVersion.TLSv1_2, cipher)
    records = records_of(talk, 1)
    # Of the server's hundred lines, those from the thirtieth on; the hole begins and ends within a record.
    first, last = len(records) - 71, len(records) - 71 + missing
    begin, end = records[first][0] + 9, records[last][0] + 11
    lines = [line for side, line in LONG if side == 1]
    found = heard(talk, size=1, without=lambda side, at: side == 1 and begin <= at < end)
    assert found.said[0] == talk.said[0]
    gone = [k for k in range(100) if lines[k] not in found.said[1]]
    assert gone == list(range(gone[0], gone[0] + missing + 1))
    assert found.said[1] == b"".join(lines[: gone[0]] + lines[gone[-1] + 1 :])
    assert found.lost == (0, records[last][1] - records[first][0])


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(UNSUPPORTED)))
def test_a_record_that_no_key_opens_invents_nothing(name: str) -> None:
    """Also where the reader is saved and restored, as between two keys (``tls12-renegotiation``)."""
    talk, lines = vector(name), expected(name)
    keys = KeyLog(talk.keys)
    for side in (0, 1):
        for _, stop in records_of(talk, side):
            wire, at = [], 0
            for which, data in talk.wire:
                if which == side and at < stop <= at + len(data):
                    place = stop - at - 1
                    data = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
                at += len(data) * (which == side)
                wire.append((which, data))
            whole = heard(Talk(wire, talk.keys), size=200)
            assert all(plain.data in lines[plain.side] for plain in whole.plains)
            found = heard(
                Talk(wire, talk.keys),
                size=200,
                between=lambda one: Decryptor.restored(json.loads(json.dumps(one.state())), keys),
            )
            assert found.said == whole.said
            assert (found.decryptor.verdict, found.decryptor.why) == (whole.decryptor.verdict, whole.decryptor.why)


def test_a_key_update_that_is_missing_is_found() -> None:
    talk = made13(LONG, updates=[101])
    records = records_of(talk, 1)
    sizes = [stop - at for at, stop in records]
    update = max(k for k, size in enumerate(sizes) if size == 5 + 5 + 1 + 16)
    begin, end = records[update][0], records[update + 3][0]
    found = heard(talk, size=1, without=lambda side, at: side == 1 and begin <= at < end)
    assert found.said[1].endswith(LONG[-1][1])
    assert found.lost == (0, end - begin)


def test_a_hole_in_the_handshake_costs_the_handshake_alone() -> None:
    talk = made13(LONG, certificate=3000)
    begin = records_of(talk, 1)[2][0]
    found = heard(talk, size=1, without=lambda side, at: side == 1 and begin + 100 <= at < begin + 200)
    assert found.said == talk.said


def test_how_often_is_tried_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = made13(LONG)
    tried = 0
    # Nothing opens behind the hole: the key log has another secret for the direction.
    good = heard(talk)
    assert good.said == talk.said
    decryptor = Decryptor(KeyLog(talk.keys))
    at = [0, 0]
    for side, data in talk.wire[:20]:
        decryptor.feed(side, data, at[side])
        at[side] += len(data)
    (way,) = [way for way in decryptor._directions if way.end == 1]

    class Counting:
        def open(self, head: bytes, body: object, number: int) -> None:
            nonlocal tried
            tried += 1

    way.opener = Counting()  # type: ignore[assignment]
    junk = b"\x17\x03\x03\x00\x20" + bytes(32)
    decryptor.feed(1, junk * 2000, at[1] + (1 << 40))
    assert 1000 < tried < 40_000


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_without_a_key_nothing_is_read() -> None:
    for talk in (made13([(0, b"question")]), between([(0, b"question")], ssl.TLSVersion.TLSv1_2)):
        found = heard(talk, keys=KeyLog(b"# nothing\n"))
        assert found.decryptor.verdict is Verdict.NO_KEY
        assert found.decryptor.why == "no key for this connection in the key log"
        assert found.plains == []


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_key_that_is_wrong_is_said(version: ssl.TLSVersion) -> None:
    talk = between([(0, b"question"), (1, b"answer")], version)
    lines = [line.split() for line in talk.keys.splitlines() if not line.startswith(b"#")]
    wrong = b"\n".join(b" ".join([*line[:2], line[2][2:] + b"00"]) for line in lines)
    found = heard(talk, keys=KeyLog(wrong))
    assert found.decryptor.verdict is Verdict.WRONG_KEY
    assert found.plains == []


def test_a_connection_from_the_middle_is_said() -> None:
    talk = made13(LONG)
    for first in (4, 5):
        found = heard(Talk(talk.wire[first:], talk.keys))
        assert found.decryptor.verdict is Verdict.NO_HANDSHAKE
    cut = [(side, data[3:]) for side, data in talk.wire[6:]]
    assert heard(Talk(cut, talk.keys)).decryptor.verdict is Verdict.NO_HANDSHAKE


def test_a_handshake_whose_secrets_are_not_there_is_passed_over() -> None:
    talk = made13(LONG)
    keys = b"".join(line for line in talk.keys.splitlines(True) if b"HANDSHAKE" not in line)
    found = heard(talk, keys=KeyLog(keys))
    assert found.said == talk.said
    assert found.lost == (0, 0)


def test_one_direction_without_its_secret_leaves_the_other() -> None:
    talk = made13(LONG)
    keys = b"".join(line for line in talk.keys.splitlines(True) if b"SERVER_TRAFFIC" not in line)
    found = heard(talk, keys=KeyLog(keys))
    assert found.said == (talk.said[0], b"")
    assert found.decryptor.verdict is Verdict.DECRYPTED
    assert found.decryptor.why == "no key for this connection in the key log"
    assert found.lost[1] > sum(len(line) for side, line in LONG if side == 1)


def test_a_key_that_comes_late_is_waited_for() -> None:
    talk = made13(LONG)
    keys = KeyLog(growing=True)
    decryptor = Decryptor(keys)
    at, said = [0, 0], [b"", b""]
    for k, (side, data) in enumerate(talk.wire):
        if k == 20:
            keys.add(talk.keys)
        for plain in decryptor.feed(side, data, at[side]):
            said[plain.side] += plain.data
        at[side] += len(data)
    assert (said[0], said[1]) == talk.said


def test_what_is_held_for_a_key_is_bounded() -> None:
    talk = made13([(k % 2, bytes(8000)) for k in range(300)])
    decryptor = Decryptor(KeyLog(growing=True))
    at = [0, 0]
    most = 0
    for side, data in talk.wire:
        decryptor.feed(side, data, at[side])
        at[side] += len(data)
        most = max(most, *(len(way.held) for way in decryptor._directions))
    assert decryptor.verdict is Verdict.NO_KEY
    assert 200_000 < most < 300_000


def test_what_is_no_tls_is_said() -> None:
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x20" + bytes(32), b"\x16\x03\x01\x00\x04\x01\x00\x00\x00"):
        found = heard(Talk([(0, data)], b""))
        assert found.decryptor.verdict in (Verdict.NO_HANDSHAKE, Verdict.NOT_TLS)
        assert found.plains == []


# --- state ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [50, 200])
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(UNSUPPORTED)))
def test_a_state_goes_on_where_it_was(name: str, size: int) -> None:
    """Between two keys, too (``tls12-renegotiation``)."""
    talk = vector(name)
    keys = KeyLog(talk.keys)

    def through_json(decryptor: Decryptor) -> Decryptor:
        return Decryptor.restored(json.loads(json.dumps(decryptor.state())), keys)

    found, whole = heard(talk, size=size, between=through_json), heard(talk, size=size)
    assert found.said == expected(name)
    assert found.lost == (0, 0)
    for what in ("verdict", "why", "version", "cipher", "server_name", "resumed", "key_updates", "renegotiations"):
        assert getattr(found.decryptor, what) == getattr(whole.decryptor, what), what


@pytest.mark.parametrize("before", [3, [], {"hellos": ["", ""]}, "the whole state"])
def test_a_handshake_before_that_is_none_is_refused(before: object) -> None:
    talk = vector("tls12-renegotiation")
    keys = KeyLog(talk.keys)
    states = []
    heard(talk, size=200, between=lambda decryptor: states.append(decryptor.state()) or decryptor)
    (state, *_) = [one for one in states if one["agreed"]["before"] is not None]
    inner = state["agreed"]["before"]
    assert inner["before"] is None
    state["agreed"]["before"] = {**inner, "before": inner} if before == "the whole state" else before
    with pytest.raises(CaptureError, match="not the state of a TLS connection"):
        Decryptor.restored(state, keys)


def test_no_secret_is_shown() -> None:
    talk = made13(LONG)
    keys = KeyLog(talk.keys)
    secrets = [line.split()[2].decode() for line in talk.keys.splitlines()]
    found = heard(talk, keys=keys)
    shown = repr(keys) + repr(found.decryptor) + json.dumps(found.decryptor.state()) + found.decryptor.why
    assert not any(secret[:16] in shown for secret in secrets)
    assert repr(keys) == "<KeyLog: 4 secrets>"


def test_work_is_bounded_where_keys_are_renewed_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.tls import handshake

    count = 0
    real = handshake.next_generation

    def counted(secret: bytes, digest: str) -> bytes:
        nonlocal count
        count += 1
        return real(secret, digest)

    monkeypatch.setattr(handshake, "next_generation", counted)
    lines = [(0, b"x")] * 500
    talk = made13(lines, updates=range(500))
    assert heard(talk).said == talk.said
    assert count <= 2 * 500


def test_random_bytes_behind_a_handshake_never_become_text() -> None:
    talk = made13(LONG[:10])
    some = random.Random(4)
    junk = [(k % 2, some.randbytes(300)) for k in range(50)]
    found = heard(Talk([*talk.wire[:8], *junk], talk.keys))
    assert all(talk.said[side].startswith(found.said[side]) for side in (0, 1))


def test_what_cannot_be_read_at_the_end_of_a_direction_is_told() -> None:
    talk = made13(LONG[:10])
    decryptor = Decryptor(KeyLog(talk.keys))
    at = [0, 0]
    for side, data in talk.wire[:10]:
        decryptor.feed(side, data, at[side])
        at[side] += len(data)
    assert decryptor.end(0) == decryptor.end(1) == []
    # The beginning of a record, of which no more will come, and of one direction alone.
    side, data = talk.wire[10]
    assert decryptor.feed(side, data[:20], at[side]) == []
    assert decryptor.end(1 - side) == []
    assert decryptor.end(side) == [Plain(side, 20)]
    assert decryptor.end(side) == decryptor.finish() == []
