"""Kinds of impairment after which every byte is still there: what networks, hosts and capture programs do to packets.

Order, copies, borders of segments, clocks, forms of files, links and tunnels, and traffic of others.
"""

from __future__ import annotations

import ipaddress
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kwire.testing.kinds import (
    LARGEST_SEGMENT,
    MICROSECOND,
    MILLISECOND,
    NAT64,
    SECOND,
    SEQUENCES,
    Grade,
    Work,
    kind,
    made_up,
    plain,
)
from kwire.testing.packets import (
    ACK,
    COOKED,
    ETHERNET,
    FIN,
    RAW,
    RST,
    SYN,
    End,
    Packet,
    Segment,
    Side,
    ip_packet,
    rebuilt,
    wrap,
    write_pcap,
    write_pcapng,
)

__all__: list[str] = []

# --- what is sent more than once --------------------------------------------------------------------------------------


@kind("retransmitted", Grade.LOSSLESS)
def _retransmitted(work: Work) -> None:
    """One segment in five is sent again, up to 300 ms later."""
    extra = []
    for index, part, flow, _ in work.some(0.2):
        time = min(part.packet.time + work.rng.randrange(MILLISECOND, 300 * MILLISECOND), work.until(flow))
        extra.append((index, part.packet._replace(time=time)))
    work.add(extra)


@kind("retransmitted-other-borders", Grade.LOSSLESS)
def _other_borders(work: Work) -> None:
    """Parts of two neighbouring segments are sent again as one."""
    extra = []
    before: dict[Side, tuple[int, Segment]] = {}
    for index, part, flow, side in work.data():
        former = before.get(side)
        before[side] = index, part
        if former is None or work.rng.random() > 0.3:
            continue
        first = former[1]
        if first.seq + first.length & SEQUENCES - 1 != part.seq:
            continue
        begin = work.rng.randrange(first.length)
        end = work.rng.randrange(1, part.length + 1)
        body = (first.payload[begin:] + part.payload[:end])[:LARGEST_SEGMENT]
        time = min(part.packet.time + work.rng.randrange(50_000, 200 * MILLISECOND), work.until(flow))
        sources = first.packet.sources + part.packet.sources
        extra.append((index, rebuilt(part, seq=first.seq + begin, payload=body, time=time, sources=sources)))
    work.add(extra)


@kind("overlapping", Grade.LOSSLESS)
def _overlapping(work: Work) -> None:
    """Segments begin with the last bytes of the one before."""
    changed = {}
    before: dict[Side, Segment] = {}
    for index, part, _, side in work.data():
        former = before.get(side)
        before[side] = part
        if former is None or former.seq + former.length & SEQUENCES - 1 != part.seq or work.rng.random() > 0.4:
            continue
        count = work.rng.randint(1, former.length)
        body = former.payload[-count:] + part.payload
        changed[index] = (rebuilt(part, seq=part.seq - count, payload=body),)
    work.change(changed)


@kind("late-duplicates", Grade.LOSSLESS)
def _late_duplicates(work: Work) -> None:
    """Segments arrive a second time, at any time until their connection ends."""
    extra = []
    for index, part, flow, _ in work.some(0.05):
        last = work.until(flow)
        if last > part.packet.time:
            extra.append((index, part.packet._replace(time=work.rng.randint(part.packet.time, last))))
    work.add(extra)


@kind("duplicates-of-any", Grade.LOSSLESS)
def _duplicates_of_any(work: Work) -> None:
    """Every packet is there twice, as the device ``any`` shows those that pass two devices."""
    work.packets = [
        made
        for packet in work.packets
        for made in (packet, packet._replace(time=packet.time + work.rng.randrange(50) * MICROSECOND))
    ]


@kind("keep-alives", Grade.LOSSLESS)
def _keep_alives(work: Work) -> None:
    """Keep-alives: segments of one byte that was sent already, or of none, and answers to them."""
    extra = []
    last = {side: part for _, part, _, side in work.found()}
    for index, part, flow, side in work.some(0.1):
        body = work.rng.choice((b"", b"\0"))
        time = min(part.packet.time + work.rng.randrange(10_000, 30 * MILLISECOND), work.until(flow))
        following = part.seq + part.length
        extra.append((index, made_up(part, seq=following - 1, payload=body, flags=ACK, time=time)))
        answer = last.get(Side(side.flow, 1 - side.end))
        if answer is not None:
            extra.append((index, made_up(answer, seq=part.ack, ack=following, flags=ACK, payload=b"", time=time)))
    work.add(extra)


@kind("window-probes", Grade.LOSSLESS)
def _window_probes(work: Work) -> None:
    """Probes of a closed window: the first byte of a segment is sent alone, then all of it."""
    changed = {}
    for index, part, _, _ in work.some(0.1):
        if part.length > 1:
            probe = rebuilt(part, payload=part.payload[:1], flags=ACK)
            changed[index] = (probe, part.packet)
    work.change(changed)


@kind("corrupt-copies", Grade.LOSSLESS)
def _corrupt_copies(work: Work) -> None:
    """In front of some segments stands a copy with wrong bytes, and so a wrong checksum; all others are right."""
    chosen = {index for index, _, _, _ in work.some(0.1)}
    changed: dict[int, Sequence[Packet]] = {}
    for index, part, _, _ in work.found():
        if len(part.payload) != part.length:
            continue
        # That of a SYN too: it says that checksums mean something, before anything else can.
        good = rebuilt(part)
        changed[index] = (good,)
        if index in chosen:
            bad = bytearray(good.data)
            for _ in range(3):
                bad[part.begin + work.rng.randrange(part.length)] ^= work.rng.randrange(1, 256)
            # Changes may cancel each other out in a sum that wraps around at 65535.
            if (int.from_bytes(bad) - int.from_bytes(good.data)) % 0xFFFF:
                changed[index] = (good._replace(data=bytes(bad), sources=()), good)
    work.change(changed)


# --- order ------------------------------------------------------------------------------------------------------------


def _moved(work: Work, chosen: Iterable[int], distance: int, nearest: int) -> None:
    """Moves packets up to so many places back; times stay.

    Never after the end of their connection, or one that was captured more than ``nearest`` nanoseconds later.
    """
    places = {float(index): packet for index, packet in enumerate(work.packets)}
    parsed = work.parsed
    for index in chosen:
        side = parsed.sides[index]
        if side is None:
            continue
        last = parsed.flows[side.flow].packets[-1]
        to = index + work.rng.randint(1, distance)
        while to >= last or (to > index and work.packets[to].time > work.packets[index].time + nearest):
            to -= 1
        if to > index:
            places[to + 0.1 + 0.8 * work.rng.random()] = places.pop(float(index))
    work.packets = [places[place] for place in sorted(places)]


@kind("reordered", Grade.LOSSLESS, times=False, order=False)
def _reordered(work: Work) -> None:
    """Segments arrive up to 5 ms late, behind others."""
    extra = []
    late = []
    for index, part, flow, _ in work.some(0.2):
        time = part.packet.time + work.rng.randrange(1000, 5 * MILLISECOND)
        if time < work.until(flow):
            late.append(index)
            extra.append((index, part.packet._replace(time=time)))
    kept = work.packets
    work.add(extra)
    gone = {id(kept[index]) for index in late}
    work.packets = [packet for packet in work.packets if id(packet) not in gone]


@kind("reordered-in-the-file", Grade.LOSSLESS, order=False)
def _reordered_in_the_file(work: Work) -> None:
    """Packets stand up to eight places and 1 ms later in the file than their times say, as with several queues."""
    chosen = [index for index, part, _, _ in work.found() if plain(part) and work.rng.random() < 0.2]
    _moved(work, chosen, 8, MILLISECOND)


@kind("syn-late", Grade.LOSSLESS, order=False)
def _syn_late(work: Work) -> None:
    """The first SYN of connections stands behind its answer, or behind the first data."""
    chosen = [index for index, part, _, _ in work.found() if part.flags & (SYN | ACK) == SYN]
    moves = {}
    parsed = work.parsed
    for index in chosen:
        side = parsed.sides[index]
        assert side is not None
        own = [k for k in parsed.flows[side.flow].packets if k > index]
        if len(own) > 4:
            moves[index] = work.rng.choice(own[:3])
    out: list[Packet] = []
    late: dict[int, list[Packet]] = {}
    for index, packet in enumerate(work.packets):
        if index in moves:
            late.setdefault(moves[index], []).append(packet)
        else:
            out.append(packet)
            out += [one._replace(time=packet.time) for one in late.get(index, ())]
    work.packets = out


@kind("syn-repeated", Grade.LOSSLESS)
def _syn_repeated(work: Work) -> None:
    """SYNs and their answers are there again, up to a second later."""
    extra = []
    for index, part, flow, _ in work.found():
        if part.flags & SYN and work.rng.random() < 0.7:
            time = min(part.packet.time + work.rng.randrange(SECOND), work.until(flow))
            extra.append((index, part.packet._replace(time=time)))
    work.add(extra)


@kind("fin-repeated", Grade.LOSSLESS)
def _fin_repeated(work: Work) -> None:
    """FINs are sent up to three times."""
    extra = []
    for index, part, flow, _ in work.found():
        if part.flags & FIN:
            for _ in range(work.rng.randint(1, 2)):
                time = min(part.packet.time + work.rng.randrange(200 * MILLISECOND), work.until(flow))
                extra.append((index, part.packet._replace(time=time)))
    work.add(extra)


def _early(work: Work, flag: int) -> None:
    """Moves packets with this flag and no data before the last data of their side. They move at most four segments
    ahead."""
    before: dict[int, int] = {}
    last: dict[Side, list[int]] = {}
    for index, part, _, side in work.found():
        if part.length:
            last.setdefault(side, []).append(index)
        elif part.flags & flag and side in last:
            before.setdefault(last[side][-min(len(last[side]), work.rng.randint(1, 4))], index)
    early = set(before.values())
    work.packets = [
        made
        for index, packet in enumerate(work.packets)
        if index not in early
        for made in ((work.packets[before[index]]._replace(time=packet.time), packet) if index in before else (packet,))
    ]


@kind("fin-early", Grade.LOSSLESS)
def _fin_early(work: Work) -> None:
    """FINs without data overtake the last data of their side, up to four segments."""
    _early(work, FIN)


@kind("rst-early", Grade.LOSSLESS)
def _rst_early(work: Work) -> None:
    """RSTs overtake the last data of their side, up to four segments."""
    _early(work, RST)


@kind("acks-repeated", Grade.LOSSLESS)
def _acks_repeated(work: Work) -> None:
    """Acknowledgements without data are there up to five times, later ones too."""
    extra = []
    for index, part, flow, _ in work.found():
        if not part.length and part.flags == ACK and work.rng.random() < 0.3:
            for _ in range(work.rng.randint(1, 4)):
                time = min(part.packet.time + work.rng.randrange(100 * MILLISECOND), work.until(flow))
                extra.append((index, part.packet._replace(time=time)))
    work.add(extra)


@kind("acks-early", Grade.LOSSLESS)
def _acks_early(work: Work) -> None:
    """Acknowledgements stand in front of the data that they acknowledge."""
    parsed = work.parsed
    ahead: dict[int, list[int]] = {}
    latest: dict[Side, int] = {}
    moved = set()
    for index, part, _, side in work.found():
        other = Side(side.flow, 1 - side.end)
        if part.length:
            latest[side] = index
        elif part.flags == ACK and other in latest and work.rng.random() < 0.5:
            ahead.setdefault(latest[other], []).append(index)
            moved.add(index)
    assert len(parsed.segments) == len(work.packets)
    work.packets = [
        made
        for index, packet in enumerate(work.packets)
        if index not in moved
        for made in (*(work.packets[k]._replace(time=packet.time) for k in ahead.get(index, ())), packet)
    ]


@kind("acks-missing", Grade.LOSSLESS)
def _acks_missing(work: Work) -> None:
    """There are no acknowledgements without data."""
    first: set[Side] = set()
    dropped = []
    for index, part, _, side in work.found():
        if not part.length and part.flags == ACK and side in first:
            dropped.append(index)
        first.add(side)
    work.drop(dropped)


@kind("rst-outside", Grade.LOSSLESS)
def _rst_outside(work: Work) -> None:
    """RSTs whose sequence number is far outside of the window, which a receiver ignores."""
    extra = []
    for index, part, flow, _ in work.some(0.03):
        if index != flow.packets[-1]:
            far = work.rng.choice((1 << 27, 1 << 28, 1 << 30, 1 << 31, -(1 << 20), -(1 << 27)))
            extra.append((index, made_up(part, seq=part.seq + far, flags=RST, payload=b"")))
    work.add(extra)


# --- segments ---------------------------------------------------------------------------------------------------------


def _cut_up(work: Work, size: Callable[[], int]) -> None:
    changed = {}
    for index, part, _, _ in work.data():
        body = part.payload
        parts = []
        at = 0
        while at < len(body):
            end = min(len(body), at + size())
            # What ends the connection is the last of them.
            flags = part.flags if end == len(body) else part.flags & ~FIN
            parts.append(rebuilt(part, seq=part.seq + at, payload=body[at:end], flags=flags))
            at = end
        changed[index] = parts
    work.change(changed)


@kind("resegmented", Grade.LOSSLESS)
def _resegmented(work: Work) -> None:
    """Segments are cut to another size, the same for all: 536, 100 or 48 bytes."""
    mss = work.rng.choice((536, 100, 48))
    _cut_up(work, lambda: mss)


@kind("resegmented-at-random", Grade.LOSSLESS)
def _resegmented_at_random(work: Work) -> None:
    """Segments are cut anywhere."""
    _cut_up(work, lambda: work.rng.choice((1, 3, 4, 5, 17, 100, 700, 5000)))


@kind("one-byte-segments", Grade.LOSSLESS)
def _one_byte_segments(work: Work) -> None:
    """Some segments are sent byte by byte."""
    chosen = {index for index, _, _, _ in work.some(0.1)}
    changed = {}
    for index, part, _, _ in work.data():
        if index in chosen and part.length <= 3000:
            body = part.payload
            changed[index] = [
                rebuilt(
                    part,
                    seq=part.seq + at,
                    payload=body[at : at + 1],
                    flags=part.flags if at + 1 == len(body) else part.flags & ~FIN,
                )
                for at in range(len(body))
            ]
    work.change(changed)


@kind("coalesced", Grade.LOSSLESS, times=False, order=False)
def _coalesced(work: Work) -> None:
    """Neighbouring segments of 1 ms are one packet of up to 64 kB, captured with the last of them, as after GRO."""
    changed: dict[int, list[Packet]] = {}
    open_: dict[int, tuple[Side, int, Packet, Segment, bytes]] = {}
    for index, part, _, side in work.found():
        held = open_.pop(side.flow, None)
        if not part.length or not plain(part):
            if held is not None and part.flags == ACK and side != held[0]:
                open_[side.flow] = held
            continue
        if held is not None:
            same, number, _, first, body = held
            follows = same == side and first.seq + len(body) & SEQUENCES - 1 == part.seq
            soon = part.packet.time - first.packet.time <= MILLISECOND
            if follows and soon and len(body) + part.length < LARGEST_SEGMENT:
                body += part.payload
                sources = changed[number][0].sources if changed.get(number) else first.packet.sources
                changed[number] = []
                merged = rebuilt(part, seq=first.seq, payload=body, sources=sources + part.packet.sources)
                changed[index] = [merged]
                if not part.flags & FIN:
                    open_[side.flow] = side, index, merged, first, body
                continue
        open_[side.flow] = side, index, part.packet, part, part.payload
    work.change(changed)


@kind("wrapped", Grade.LOSSLESS)
def _wrapped(work: Work) -> None:
    """Sequence numbers are others, and begin again at 0 within each direction."""
    shifts: dict[Side, int] = {}
    first: dict[Side, int] = {}
    total: dict[Side, int] = {}
    for _, part, _, side in work.found():
        first.setdefault(side, part.seq)
        total[side] = max(total.get(side, 0), (part.seq + part.length - first[side]) % SEQUENCES)
    for side, begin in first.items():
        length = total[side] if total[side] < 1 << 31 else 1000
        shifts[side] = (-begin - work.rng.randint(0, length)) % SEQUENCES
    if not all(len(part.payload) == part.length for _, part, _, _ in work.found()):
        return
    changed = {}
    for index, part, _, side in work.found():
        back = shifts.get(Side(side.flow, 1 - side.end), 0) if part.flags & ACK else 0
        changed[index] = (rebuilt(part, seq=part.seq + shifts[side], ack=part.ack + back),)
    work.change(changed)


# --- clocks and files -------------------------------------------------------------------------------------------------


def _retimed(work: Work, times: Iterable[int]) -> None:
    work.packets = [packet._replace(time=time) for packet, time in zip(work.packets, times, strict=True)]


@kind("clock-jitter", Grade.LOSSLESS, times=False)
def _clock_jitter(work: Work) -> None:
    """The time of every packet is up to 5 ms wrong."""
    spread = 5_000
    _retimed(work, [one.time + work.rng.randint(-spread, spread) * MICROSECOND for one in work.packets])


def _stepped(work: Work, step: int) -> None:
    steps = sorted(work.rng.randrange(len(work.packets)) for _ in range(work.rng.randint(1, 3))) if work.packets else []
    _retimed(work, [one.time - step * bisect_right(steps, k) for k, one in enumerate(work.packets)])


@kind("clock-back-50ms", Grade.LOSSLESS, times=False)
def _clock_back_50ms(work: Work) -> None:
    """The clock steps back by 50 ms, up to three times."""
    _stepped(work, 50 * MILLISECOND)


@kind("clock-back-2s", Grade.LOSSLESS, times=False)
def _clock_back_2s(work: Work) -> None:
    """The clock steps back by 2 s, up to three times."""
    _stepped(work, 2 * SECOND)


@kind("nanoseconds", Grade.LOSSLESS)
def _nanoseconds(work: Work) -> None:
    """A pcap file with nanoseconds."""
    work.write = lambda packets: write_pcap(packets, nano=True)


@kind("big-endian", Grade.LOSSLESS)
def _big_endian(work: Work) -> None:
    """A file in the other byte order."""
    work.write = lambda packets: write_pcap(packets, little=False)


@kind("pcapng", Grade.LOSSLESS)
def _pcapng(work: Work) -> None:
    """A pcapng file."""
    little = work.rng.random() < 0.5
    work.write = lambda packets: write_pcapng(packets, little=little)


@kind("pcapng-clock", Grade.LOSSLESS)
def _pcapng_clock(work: Work) -> None:
    """A pcapng file whose times have another unit, and an offset."""
    fine = any(packet.time % 1000 for packet in work.packets)
    resolution = work.rng.choice((9, 10) if fine else (6, 7, 9, 10))
    offset = work.rng.choice((0, 3600, 1_000_000_000))
    work.write = lambda packets: write_pcapng(packets, resolution=resolution, offset=offset)


@kind("interfaces", Grade.LOSSLESS)
def _interfaces(work: Work) -> None:
    """A pcapng file with packets of several interfaces."""
    work.write = lambda packets: write_pcapng(packets, interfaces=3)


# --- packets ----------------------------------------------------------------------------------------------------------


def _relinked(work: Work, link: int, tags: Sequence[tuple[int, int]] = ()) -> None:
    changed = {}
    for index, part, _, _ in work.found():
        packet = part.packet
        data = wrap(packet.data[part.network :], link, tags)
        size = packet.size + len(data) - len(packet.data)
        changed[index] = (packet._replace(data=data, size=size, link=link),)
    others = [index for index, part in enumerate(work.parsed.segments) if part is None]
    # What is no TCP segment goes: its link type would be another one.
    work.change({**changed, **dict.fromkeys(others, ())} if link != ETHERNET else changed)


@kind("vlan", Grade.LOSSLESS)
def _vlan(work: Work) -> None:
    """Ethernet frames with a VLAN tag."""
    _relinked(work, ETHERNET, [(0x8100, work.rng.randrange(1, 4095))])


@kind("vlan-twice", Grade.LOSSLESS)
def _vlan_twice(work: Work) -> None:
    """Ethernet frames with two VLAN tags (802.1ad)."""
    _relinked(work, ETHERNET, [(0x88A8, work.rng.randrange(1, 4095)), (0x8100, work.rng.randrange(1, 4095))])


@kind("cooked", Grade.LOSSLESS)
def _cooked(work: Work) -> None:
    """Packets with Linux's cooked header, as of the device ``any``."""
    _relinked(work, COOKED)


@kind("raw", Grade.LOSSLESS)
def _raw(work: Work) -> None:
    """Packets that begin with the IP header."""
    _relinked(work, RAW)


@kind("padded", Grade.LOSSLESS)
def _padded(work: Work) -> None:
    """Bytes behind the IP packet: short Ethernet frames are filled up to 60, and some have a checksum behind them."""
    made = []
    parsed = work.parsed
    for packet, part in zip(work.packets, parsed.segments, strict=True):
        if (
            part is not None
            and len(packet.data) == packet.size
            and int.from_bytes(
                packet.data[part.network + 2 : part.network + 4] if packet.data[part.network] >> 4 == 4 else b"\1"
            )
        ):
            data = packet.data + work.rng.randbytes(max(0, 60 - len(packet.data)))
            data += work.rng.randbytes(work.rng.choice((0, 4)))
            packet = packet._replace(data=data, size=len(data))
        made.append(packet)
    work.packets = made


@kind("ipv6", Grade.LOSSLESS)
def _ipv6(work: Work) -> None:
    """IPv4 packets are IPv6 packets, their addresses within 64:ff9b::/96."""
    changed = {}
    for index, part, _, _ in work.found():
        packet = part.packet
        if packet.data[part.network] >> 4 != 4:
            continue
        addresses = packet.data[part.network + 12 : part.network + 20]
        source, target = addresses[:4], addresses[4:]
        for old in (source, target):
            work.hosts[str(ipaddress.ip_address(NAT64 + old))] = str(ipaddress.ip_address(old))
        tcp = packet.data[part.transport :]
        length = part.begin - part.transport + part.length
        head = struct.pack(">IHBB", 6 << 28, length if length < 65536 else 0, 6, 64)
        link = packet.link if packet.link in (ETHERNET, COOKED, RAW) else ETHERNET
        data = wrap(head + NAT64 + source + NAT64 + target + tcp, link)
        changed[index] = (packet._replace(data=data, size=packet.size + len(data) - len(packet.data), link=link),)
    work.change(changed)


@kind("checksums-wrong", Grade.LOSSLESS)
def _checksums_wrong(work: Work) -> None:
    """Checksums of TCP that the network card would have computed."""
    changed = {}
    for index, part, _, _ in work.found():
        data = bytearray(part.packet.data)
        data[part.transport + 16 : part.transport + 18] = work.rng.randbytes(2)
        changed[index] = (part.packet._replace(data=bytes(data)),)
    work.change(changed)


@kind("lengths-zero", Grade.LOSSLESS)
def _lengths_zero(work: Work) -> None:
    """IP headers whose length is 0, as segmentation offload leaves it."""
    changed = {}
    for index, part, _, _ in work.found():
        packet = part.packet
        if packet.data[part.network] >> 4 == 4 and part.begin + part.length == packet.size == len(packet.data):
            data = bytearray(packet.data)
            data[part.network + 2 : part.network + 4] = bytes(2)
            changed[index] = (packet._replace(data=bytes(data)),)
    work.change(changed)


@kind("fragmented", Grade.LOSSLESS)
def _fragmented(work: Work) -> None:
    """Large IPv4 packets are fragmented, some of them with the last fragment first."""
    changed = {}
    for index, part, _, _ in work.some(0.1):
        packet = part.packet
        head = bytearray(packet.data[part.network : part.transport])
        body = packet.data[part.transport : part.begin + part.length]
        if head[0] >> 4 != 4 or len(body) < 64:
            continue
        step = work.rng.choice((32, 576, 1480)) & ~7
        step = min(step, len(body) // 2 & ~7)
        head[4:6] = work.rng.randbytes(2)
        pieces = []
        for at in range(0, len(body), step):
            more = 0x2000 if at + step < len(body) else 0
            head[2:4] = (len(head) + len(body[at : at + step])).to_bytes(2)
            head[6:8] = (more | at // 8).to_bytes(2)
            data = packet.data[: part.network] + bytes(head) + body[at : at + step]
            pieces.append(packet._replace(data=data, size=len(data)))
        if work.rng.random() < 0.3:
            pieces.reverse()
        changed[index] = pieces
    work.change(changed)


# --- other traffic ----------------------------------------------------------------------------------------------------

_OTHERS: Final = (
    (80, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    (6379, b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
    (5432, bytes.fromhex("0000000804d2162f"), b"N"),
    (4222, b"PING\r\n", b"PONG\r\n"),
    (22, b"SSH-2.0-OpenSSH_9.6\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"),
    (443, bytes.fromhex("1603010020") + bytes(32), bytes.fromhex("1603030020") + bytes(32)),
)
"""Port, and what client and server begin with."""


@kind("foreign-traffic", Grade.LOSSLESS, order=False)
def _foreign_traffic(work: Work) -> None:
    """Packets that are not Kafka between the others: ARP, ICMP, UDP, and connections of other protocols."""
    if not work.packets:
        return
    link = work.packets[0].link
    if link not in (ETHERNET, COOKED, RAW):
        return
    extra: list[tuple[int, Packet]] = []
    count = len(work.packets)

    def put(index: int, ip: bytes) -> None:
        data = wrap(ip, link)
        extra.append((index, Packet(work.packets[index].time, data, len(data), link)))

    for number in range(4):
        port, asked, answered = work.rng.choice(_OTHERS)
        client, server = End("198.51.100.7", 50_000 + number), End("203.0.113.9", port)
        places = sorted(work.rng.randrange(count) for _ in range(9))
        seqs = [work.rng.randrange(SEQUENCES), work.rng.randrange(SEQUENCES)]
        plan = [(0, SYN, b""), (1, SYN | ACK, b""), (0, ACK, b"")]
        plan += [(0, ACK, asked), (1, ACK, answered)] * 2 + [(0, FIN | ACK, b""), (1, FIN | ACK, b"")]
        for index, (side, flags, body) in zip(places, plan, strict=True):
            ends = (client, server) if side == 0 else (server, client)
            tcp = struct.pack(
                ">HHIIBBHHH", ends[0].port, ends[1].port, seqs[side], seqs[1 - side], 0x50, flags, 65535, 0, 0
            )
            put(index, ip_packet(*ends, 6, tcp + body))
            seqs[side] = (seqs[side] + len(body) + (1 if flags & (SYN | FIN) else 0)) % SEQUENCES
    for _ in range(max(3, count // 20)):
        index = work.rng.randrange(count)
        ends = End("198.51.100.7", 53), End("203.0.113.9", 53)
        body = work.rng.randbytes(work.rng.randrange(8, 200))
        put(index, ip_packet(*ends, work.rng.choice((1, 17, 47, 132)), body))
        if link == ETHERNET:
            arp = bytes(12) + b"\x08\x06" + work.rng.randbytes(28)
            extra.append((index, Packet(work.packets[index].time, arp, len(arp), link)))
    work.add(extra)
