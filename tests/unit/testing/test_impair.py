"""``kwire.testing.impair``: captures are impaired as the account of it says, and nothing else is done to them."""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from pathlib import Path

import pytest

from kwire import records
from kwire.kernels.engine import PYTHON, using
from kwire.testing.impair import KINDS, VALUES, Grade, impair
from kwire.testing.judge import rows
from kwire.testing.packets import (
    ACK,
    ETHERNET,
    FIN,
    RAW,
    RST,
    SYN,
    End,
    Flows,
    Packet,
    ip_packet,
    read,
    rebuilt,
    segment,
    wrap,
    write_pcap,
    write_pcapng,
)

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = {
    name: (GOLDEN / name).read_bytes()
    for name in ("kafka-4-telemetry/refusals.pcap", "kafka-4.4-kraft-raw/controller.pcap")
}
REFUSALS = CAPTURES["kafka-4-telemetry/refusals.pcap"]
PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "impairments.md").read_text(encoding="utf-8")

lossless = pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.grade is Grade.LOSSLESS])
lossy = pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.grade is Grade.LOSSY])


def streams(capture: bytes, hosts: dict[str, str] | None = None) -> dict[tuple[End, End], dict[int, int]]:
    """The bytes of each direction of each connection, by position; of copies the first."""
    flows = Flows(read(capture))
    found: dict[tuple[End, End], dict[int, int]] = defaultdict(dict)
    for part, side in zip(flows.segments, flows.sides, strict=True):
        if part is None or side is None or part.flags & RST:
            continue
        start = flows.flows[side.flow].starts[side.end]
        assert start is not None
        ends = [End((hosts or {}).get(end.host, end.host), end.port) for end in (part.source, part.target)]
        for at, byte in enumerate(part.payload, (part.seq - start) % (1 << 32)):
            if at < 1 << 31:
                found[ends[0], ends[1]].setdefault(at, byte)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_arguments_give_the_same_bytes(kind: str) -> None:
    with using(PYTHON):
        once, again = (impair(REFUSALS, kind, seed=3) for _ in range(2))
    assert once == again


def test_other_seeds_do_other_damage() -> None:
    for name in ("retransmitted", "reordered", "lost-some", "corrupted"):
        assert len({impair(REFUSALS, name, seed=seed).data for seed in range(5)}) == 5


@pytest.mark.wide(keep=30)
@lossless
@pytest.mark.parametrize("name", CAPTURES)
def test_where_nothing_is_lost_every_byte_is_there(kind: str, name: str) -> None:
    capture = CAPTURES[name]
    for seed in range(3):
        impaired = impair(capture, kind, seed=seed)
        account = impaired.account
        assert account.lossless
        assert not account.altered
        assert not account.cut
        if kind in ("fragmented", "corrupt-copies"):
            continue  # fragments are no segments; of copies a receiver takes the one with the right checksum
        before, after = streams(capture), streams(impaired.data, dict(account.hosts))
        assert {ends: after[ends] for ends in before} == before
        assert after == before or kind == "foreign-traffic"


def test_fragments_are_those_of_the_packets() -> None:
    impaired = impair(REFUSALS, "fragmented", seed=1)
    original = read(REFUSALS)
    bodies: dict[int, dict[int, bytes]] = defaultdict(dict)
    for packet, sources in zip(read(impaired.data), impaired.account.sources, strict=True):
        place = int.from_bytes(packet.data[20:22]) & 0x1FFF
        bodies[sources[0]][place] = packet.data[34 : 14 + int.from_bytes(packet.data[16:18])]
    assert any(len(parts) > 1 for parts in bodies.values())
    for source, parts in bodies.items():
        whole = b"".join(part for _, part in sorted(parts.items()))
        data = original[source].data
        assert whole == data[34 : 14 + int.from_bytes(data[16:18])]


def test_a_corrupt_copy_has_a_wrong_checksum_and_the_good_one_follows() -> None:
    impaired = impair(REFUSALS, "corrupt-copies", seed=1)
    packets = read(impaired.data)
    bad = [k for k, sources in enumerate(impaired.account.sources) if not sources]
    assert bad
    for k in bad:
        wrong, right = segment(packets[k]), segment(packets[k + 1])
        assert wrong is not None
        assert right is not None
        assert (wrong.seq, wrong.length) == (right.seq, right.length)
        assert rebuilt(right).data == right.packet.data
        assert rebuilt(wrong).data != wrong.packet.data


@lossy
@pytest.mark.parametrize("name", CAPTURES)
def test_the_account_says_what_is_missing(kind: str, name: str) -> None:
    capture = CAPTURES[name]
    before = read(capture)
    for seed in range(4):
        impaired = impair(capture, kind, seed=seed)
        account = impaired.account
        assert not account.lossless
        left = read(impaired.data) if len(impaired.data) >= 24 else []
        assert len(left) == len(account.sources)
        there = {source for sources in account.sources for source in sources}
        assert account.dropped == set(range(len(before))) - there
        for packet, (source,) in zip(left, account.sources, strict=True):
            original = before[source]
            assert packet.time == original.time
            if source in account.cut:
                assert packet.data == original.data[: account.cut[source]]
                assert len(packet.data) < len(original.data)
            elif source in account.jumped:
                now, then = segment(packet), segment(original)
                assert now is not None
                assert then is not None
                assert now.payload == then.payload
                assert (now.seq - then.seq) % (1 << 32) == account.jumped[source] % (1 << 32)
            elif source in account.altered:
                assert packet.data != original.data
            else:
                assert packet == original._replace(sources=packet.sources)


def test_connections_that_are_there_again_have_the_same_bytes() -> None:
    for kind in (name for name, kind in KINDS.items() if kind.grade is Grade.REPEATED):
        for seed in range(5):
            impaired = impair(REFUSALS, kind, seed=seed)
            assert impaired.account.repeated
            made_up = [k for k, sources in enumerate(impaired.account.sources) if not sources]
            carried = sum(part.length for k in made_up if (part := segment(read(impaired.data)[k])))
            again = [ends for pair in impaired.account.repeated for ends in (pair, pair[::-1])]
            assert carried == sum(len(streams(REFUSALS)[ends]) for ends in again)


def test_kinds_are_applied_one_after_the_other() -> None:
    impaired = impair(REFUSALS, "lost-some", "vlan", "nanoseconds", seed=2)
    assert [kind.name for kind in impaired.account.kinds] == ["lost-some", "vlan", "nanoseconds"]
    assert impaired.data[:4] == b"\x4d\x3c\xb2\xa1"
    packets = read(impaired.data)
    assert {packet.data[12:14] for packet in packets} == {b"\x81\x00"}
    assert len(packets) + len(impaired.account.dropped) == len(read(REFUSALS))


def test_unknown_kinds_and_other_files_are_refused() -> None:
    with pytest.raises(ValueError, match="no kind 'lost'"):
        impair(REFUSALS, "lost")
    with pytest.raises(ValueError, match="neither pcap nor pcapng"):
        impair(b"no capture at all, whatever it is", "vlan")


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("form", ["micro", "nano", "pcapng", "pcapng with an offset"])
def test_files_are_read_as_they_were_written(form: str, little: bool) -> None:
    unit = 1000 if form == "micro" else 1
    packets = [Packet(1_700_000_000_123_456_000 + k * unit, bytes([k] * k), k + 2, ETHERNET, (k,)) for k in range(5)]
    if form == "pcapng with an offset":
        data = write_pcapng(packets, resolution=10, offset=1000, interfaces=2, little=little)
    else:
        data = write_pcapng(packets, little=little) if form == "pcapng" else write_pcap(packets, little=little)
    assert read(data) == packets
    assert read(data[:-1])[:4] == packets[:4]


@pytest.mark.parametrize("hosts", [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")])
def test_what_is_rebuilt_has_right_lengths_and_checksums(hosts: tuple[str, str]) -> None:
    tcp = struct.pack(">HHIIBBHHH", 40000, 9092, 7, 9, 0x50, 16, 1000, 0, 0)
    data = wrap(ip_packet(End(hosts[0], 40000), End(hosts[1], 9092), 6, tcp + b"abc"), RAW)
    part = segment(Packet(0, data, len(data), RAW))
    assert part is not None
    assert (part.source, part.target, part.seq, part.ack, part.payload) == (
        End(hosts[0], 40000),
        End(hosts[1], 9092),
        7,
        9,
        b"abc",
    )
    made = rebuilt(part, seq=(1 << 32) + 5, payload=b"defgh")
    again = segment(made)
    assert again is not None
    assert (again.seq, again.payload, again.length) == (5, b"defgh", 5)
    head, addresses = (20, slice(12, 20)) if len(made.data) < 60 else (40, slice(8, 40))
    covered = made.data[addresses] + struct.pack(">II", 6, len(made.data) - head) + made.data[head:] + b"\0"
    # RFC 1071: with the checksum in it, the sum is all ones.
    total = sum(struct.unpack(f">{len(covered) // 2}H", covered[: len(covered) // 2 * 2]))
    assert (total & 0xFFFF) + (total >> 16) in (0xFFFF, 0x1FFFE)


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("kind", VALUES)
def test_values_are_frames(kind: str) -> None:
    capture = (GOLDEN / "kafka-4-telemetry" / "none.pcap").read_bytes()
    with using(PYTHON):
        made = impair(capture, kind, seed=1).data
        before, after = rows(capture), rows(made)
    assert [row.status for row in after] == ["ok"] * len(after)
    assert len(after) == sum(row.status == "ok" for row in before)
    assert {row.digest for row in before} != {row.digest for row in after}


@pytest.mark.parametrize("kind", ["values-at-borders", "values-acknowledged"])
def test_segments_begin_with_the_frames_that_are_values(kind: str) -> None:
    capture = (GOLDEN / "kafka-4-telemetry" / "none.pcap").read_bytes()
    with using(PYTHON):
        before = rows(capture)
        made = {name: impair(capture, name, seed=1).data for name in ("values-go-on", kind)}
    # Of frames of this capture, few are larger than a segment.
    segments = {
        name: sum(part is not None and part.length > 0 for part in map(segment, read(made[name]))) for name in made
    }
    assert segments["values-go-on"] < len(before) * 1.5
    assert segments[kind] > segments["values-go-on"] * 1.2


def test_both_ends_send_at_once_and_acknowledge_within_frames() -> None:
    capture = (GOLDEN / "kafka-4-telemetry" / "none.pcap").read_bytes()
    with using(PYTHON):
        made = impair(capture, "values-acknowledged", seed=1).data
        parts = [part for part in map(segment, read(made)) if part is not None]
    pure = sum(not part.length and part.flags == ACK for part in parts)
    assert pure > len(parts) / 10
    # Each end acknowledges only what has been sent, and no byte is sent twice.
    sent: dict[tuple[End, End], int] = {}
    for part in parts:
        way, back = (part.source, part.target), (part.target, part.source)
        assert part.seq == sent.get(way, part.seq)
        sent[way] = (part.seq + part.length + bool(part.flags & (SYN | FIN))) % (1 << 32)
        if part.flags & ACK:
            assert part.ack == sent[back]


def test_numbers_jump_ahead_and_are_acknowledged() -> None:
    """What an acknowledgement was behind the latest byte of the other end before, it is behind it still."""
    for seed in range(5):
        impaired = impair(REFUSALS, "lost-stretches", seed=seed)
        assert any(impaired.account.jumped.values())
        behind: list[list[int | None]] = []
        for capture in (REFUSALS, impaired.data):
            latest: dict[tuple[End, End], int] = {}
            behind.append([])
            for part in map(segment, read(capture)):
                assert part is not None
                latest[part.source, part.target] = part.seq + part.length + bool(part.flags & (SYN | FIN))
                heard = latest.get((part.target, part.source))
                known = heard is not None and part.flags & ACK
                behind[-1].append((heard - part.ack) % (1 << 32) if known and heard is not None else None)
        # A jump is between two packets of an end: it shows before the next one of that.
        same = sum(before == after for before, after in zip(*behind, strict=True))
        assert same > len(behind[0]) * 0.9


def test_values_in_batches_are_frames_of_the_capture() -> None:
    from kwire.testing.values import Level, _Values

    frame = struct.pack(">ihhih", 10, 3, 0, 1, -1)
    values = _Values([], random.Random(1), Level.OTHER_IDS)
    values._any = [frame]
    made = values.record_set(records.encode([records.Record(b"k", b"v")], compression="gzip"))
    (batch,) = records.decode(made, verify_crc=True)
    assert batch.compression == "none"
    assert batch.records[0].key == b"k"
    assert set(batch.records[0].value or b"") == set(frame)


def test_the_page_lists_every_kind() -> None:
    for kind in KINDS.values():
        assert f"| `{kind.name}` | {kind.grade.value} | {kind.about.rstrip('.').replace('``', '`')} |" in PAGE
