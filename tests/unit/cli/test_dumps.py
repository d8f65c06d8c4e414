"""Bytes out of what tools print of them."""

from __future__ import annotations

import random

import pytest

from kwire.cli.dumps import bytes_of
from kwire.errors import DecodeError

MOST = 1 << 20


def characters(data: bytes) -> str:
    return "".join(chr(one) if 32 <= one < 127 else "." for one in data)


def xxd(data: bytes, group: int = 2, columns: int = 16) -> str:
    """As ``xxd`` prints it."""
    lines = []
    for at in range(0, len(data), columns):
        part = data[at : at + columns]
        groups = " ".join(part[one : one + group].hex() for one in range(0, len(part), group))
        width = 2 * columns + (columns + group - 1) // group - 1
        lines.append(f"{at:08x}: {groups:<{width}}  {characters(part)}\n")
    return "".join(lines)


def hexdump(data: bytes, *, wireshark: bool = False) -> str:
    """As ``hexdump -C`` prints it, or Wireshark."""
    lines = []
    last = b""
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        if part == last and not wireshark:
            lines += [] if lines[-1] == "*\n" else ["*\n"]
            continue
        last = part
        if wireshark:
            lines.append(f"{at:04x}   {part.hex(' '):<47}   {characters(part)}\n")
        else:
            halves = f"{part[:8].hex(' '):<23}  {part[8:].hex(' '):<23}"
            lines.append(f"{at:08x}  {halves}  |{characters(part)}|\n")
    return "".join(lines) + ("" if wireshark else f"{len(data):08x}\n")


def array(data: bytes) -> str:
    """As ``xxd -i`` prints it."""
    rows = (data[at : at + 12] for at in range(0, len(data), 12))
    body = ",\n".join("  " + ", ".join(f"0x{one:02x}" for one in row) for row in rows)
    return f"unsigned char frame[] = {{\n{body}\n}};\nunsigned int frame_len = {len(data)};\n"


@pytest.mark.parametrize("size", [1, 3, 8, 15, 16, 17, 31, 32, 33, 500])
@pytest.mark.parametrize("seed", range(4))
def test_bytes_come_back_from_every_form(size: int, seed: int) -> None:
    # What looks like hex, like offsets and like borders among the characters.
    data = bytes(random.Random(seed).choices(b"\0\xffab7 |>.", k=size))
    for text in (
        xxd(data),
        xxd(data, 1),
        xxd(data, 4),
        xxd(data, 2, 8),
        xxd(data).replace(": ", ":  "),
        hexdump(data),
        hexdump(data, wireshark=True),
        array(data),
        array(data).partition("{")[2].partition("}")[0] + ", ",
        ", ".join(f"(byte) 0x{one:X}" for one in data) + ",",
        '"' + "".join(f"\\x{one:02x}" for one in data) + '"',
        data.hex(),
        data.hex(" "),
    ):
        assert bytes_of(text, MOST) == data, text


def test_lines_that_are_left_out_are_those_of_the_line_before() -> None:
    data = b"head" * 4 + bytes(4096) + b"end"
    assert "*" in hexdump(data)
    assert bytes_of(hexdump(data), MOST) == data
    with pytest.raises(DecodeError, match="a dump of more than 1000 bytes"):
        bytes_of(hexdump(data), 1000)


def test_hex_that_is_no_dump_stays_hex() -> None:
    for text in ("0000 0012 0000 0001", "0012 0000\n0001 0002", "00000000", "0000"):
        assert bytes_of(text, MOST) == bytes.fromhex(text), text


@pytest.mark.parametrize(
    "text",
    [
        "00000000: 0012 zz\n",
        "*\n00000000: 0012\n",
        "unsigned char x[] = { 0x00, 0x123 };",
        "{ }",
        "0x00 0x123",
        "",
    ],
)
def test_what_does_not_go_on_is_no_dump(text: str) -> None:
    assert bytes_of(text, MOST) is None


def test_a_dump_with_a_hole_is_refused() -> None:
    with pytest.raises(DecodeError, match="offset 10 follows 4 bytes from 0"):
        bytes_of("00000000: 0012 0000\n00000010: 0001\n", MOST)


@pytest.mark.parametrize(
    "text", ["0000000 1200 0000\n0000004\n", "0000000 1200 0000 0001 0002\n", "000000 2062 0063\n000003\n"]
)
def test_words_in_the_order_of_the_machine_are_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="words of two bytes"):
        bytes_of(text, MOST)
