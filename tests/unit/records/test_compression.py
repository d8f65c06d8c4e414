"""The codecs, their odd framings, and the limit on what comes out of them."""

from __future__ import annotations

import gzip
import random
import struct

import lz4.frame
import pytest
import zstandard
from cramjam import snappy
from record_sets import GZIP, LZ4, SNAPPY, ZSTD, bomb

from kwire.errors import DecodeError, EncodeError, LimitError
from kwire.events.telemetry import unpack
from kwire.records.compression import CODECS, compress, decompress, xxh32

TEXT = b"".join(b"line %d\n" % each for each in range(20_000))
LIMIT = 1 << 20


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("data", [b"", b"x", TEXT])
def test_each_codec_gives_back_what_it_was_given(codec: int, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), LIMIT) == data
    assert decompress(codec, memoryview(compress(codec, memoryview(data))), LIMIT) == data


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_the_limit_is_exact(codec: int) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(
        LimitError, match=f"{CODECS[codec]} data decompresses to more than the limit of {len(TEXT) - 1}"
    ):
        decompress(codec, packed, len(TEXT) - 1)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_data_of_a_codec_cut_anywhere_is_an_error(codec: int) -> None:
    noise = random.Random(1).randbytes(3000)
    for data in (b"", TEXT[:5000], noise + bytes(200_000) + noise):
        packed = compress(codec, data)
        for cut in range(0, len(packed), 1 if len(packed) < 5000 else 7):
            try:
                made = decompress(codec, packed[:cut], LIMIT)
            except DecodeError:
                continue
            # xerial snappy can end between two blocks without a sign of it.
            assert codec == SNAPPY
            assert packed[:8] == b"\x82SNAPPY\0"
            assert len(made) % (32 << 10) == 0
            assert data.startswith(made)


@pytest.mark.wide
def test_large_gzip_cut_near_its_end_is_an_error() -> None:
    packed = compress(GZIP, bytes(20 << 20))
    for cut in range(len(packed) - 10, len(packed)):
        with pytest.raises(DecodeError, match="gzip"):
            decompress(GZIP, packed[:cut], 32 << 20)


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("sized", [False, True])
def test_zstd_frames_of_any_form_are_whole_or_an_error(sized: bool, checksum: bool) -> None:
    for data in (b"", b"x", TEXT[:300], bytes(300), TEXT[:5000], bytes(70_000), random.Random(2).randbytes(140_000)):
        packer = zstandard.ZstdCompressor(write_content_size=sized, write_checksum=checksum)
        packed = packer.compress(data)
        assert decompress(ZSTD, packed, LIMIT) == data
        for cut in {*range(1, min(len(packed), 400)), *range(max(1, len(packed) - 300), len(packed))}:
            with pytest.raises(DecodeError, match="zstd data is cut off"):
                decompress(ZSTD, packed[:cut], LIMIT)
        # Frames that readers skip, and a second frame: whole, or cut off.
        more = packed + b"\x53\x2a\x4d\x18\x03\0\0\0abc" + packed
        assert decompress(ZSTD, more, LIMIT) == data * 2
        for cut in range(len(packed) + 1, min(len(packed) + 30, len(more))):
            if cut != len(packed) + 11:
                with pytest.raises(DecodeError, match="zstd data is cut off"):
                    decompress(ZSTD, more[:cut], LIMIT)


def test_a_zstd_frame_cut_between_its_blocks_is_an_error() -> None:
    """It was 100,010 of 300,000 bytes, and no error."""
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    noise = random.Random(3).randbytes(300_000)
    first = packer.compress(noise[:100_010]) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    whole = first + packer.compress(noise[100_010:]) + packer.flush()
    assert decompress(ZSTD, whole, LIMIT) == noise
    with pytest.raises(DecodeError, match="zstd data is cut off"):
        decompress(ZSTD, first, LIMIT)
    with pytest.raises(DecodeError, match="zstd data is cut off"):
        unpack(ZSTD, first)


@pytest.mark.parametrize("versions", [struct.pack(">ii", 1, 1), struct.pack("<ii", 1, 1), struct.pack(">ii", 99, 7)])
def test_xerial_snappy_is_read_whatever_its_version_says(versions: bytes) -> None:
    blocks = [bytes(snappy.compress_raw(part)) for part in (TEXT[:100], TEXT[100:9000])]
    framed = b"\x82SNAPPY\0" + versions + b"".join(struct.pack(">i", len(each)) + each for each in blocks)
    assert decompress(SNAPPY, framed, LIMIT) == TEXT[:9000]
    assert decompress(SNAPPY, framed + framed, LIMIT) == TEXT[:9000] * 2


def test_bare_snappy_is_read() -> None:
    assert decompress(SNAPPY, bytes(snappy.compress_raw(TEXT)), LIMIT) == TEXT


def test_snappy_is_written_in_xerial_framing_of_32_kib_blocks() -> None:
    packed = compress(SNAPPY, TEXT)
    assert packed[:16] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    (size,) = struct.unpack_from(">i", packed, 16)
    assert len(bytes(snappy.decompress_raw(packed[20 : 20 + size]))) == 32 * 1024


@pytest.mark.parametrize(
    "bad",
    [
        b"\x82SNAPPY\0",
        b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\0\0",
        b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\x7f\xff\xff\xff",
        b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\xff\xff\xff\xff",
        b"\xff\xff\xff\xff\xff\xff",
        b"",
    ],
)
def test_bad_snappy_is_a_decode_error(bad: bytes) -> None:
    with pytest.raises(DecodeError, match="snappy"):
        decompress(SNAPPY, bad, LIMIT)


def test_lz4_of_magic_0_has_the_checksum_of_kafka_3160() -> None:
    old, right = compress(LZ4, TEXT, magic=0), compress(LZ4, TEXT, magic=1)
    assert [at for at, (one, two) in enumerate(zip(old, right, strict=True)) if one != two] == [6]
    assert old[6] == xxh32(old[:6]) >> 8 & 0xFF
    assert decompress(LZ4, old, LIMIT, magic=0) == TEXT
    assert decompress(LZ4, right, LIMIT, magic=0) == TEXT, "both are read in magic 0"
    with pytest.raises(DecodeError):
        decompress(LZ4, old, LIMIT, magic=1)


def test_the_old_lz4_checksum_is_found_behind_a_content_size() -> None:
    right = lz4.frame.compress(TEXT, store_size=True)
    old = right[:14] + bytes([xxh32(right[:14]) >> 8 & 0xFF]) + right[15:]
    assert old != right
    assert decompress(LZ4, old, LIMIT, magic=0) == TEXT


@pytest.mark.parametrize("store_size", [False, True])
def test_the_old_lz4_checksum_is_found_behind_a_dictionary_id(store_size: bool) -> None:
    plain = lz4.frame.compress(TEXT, store_size=store_size)
    at = 14 if store_size else 6
    head = plain[:4] + bytes([plain[4] | 1]) + plain[5:at] + b"\0\0\0\0"
    assert decompress(LZ4, head + bytes([xxh32(head[4:]) >> 8 & 0xFF]) + plain[at + 1 :], LIMIT, magic=1) == TEXT
    assert decompress(LZ4, head + b"\0" + plain[at + 1 :], LIMIT, magic=0) == TEXT


@pytest.mark.parametrize("store_size", [False, True])
def test_the_lz4_header_checksum_of_magic_0_does_not_matter(store_size: bool) -> None:
    right = lz4.frame.compress(TEXT, store_size=store_size)
    at = 14 if store_size else 6
    for byte in range(0, 256, 15):
        other = right[:at] + bytes([byte]) + right[at + 1 :]
        assert decompress(LZ4, other, LIMIT, magic=0) == TEXT
        if other != right:
            with pytest.raises(DecodeError):
                decompress(LZ4, other, LIMIT, magic=1)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_xxh32_gives_the_published_values(data: bytes, value: int) -> None:
    assert xxh32(data) == value


def test_zstd_with_and_without_content_size_and_in_several_frames() -> None:
    with_size = zstandard.ZstdCompressor().compress(TEXT)
    without = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert zstandard.frame_content_size(without) in (-1, 0)
    for data in (with_size, without):
        assert decompress(ZSTD, data, LIMIT) == TEXT
    assert decompress(ZSTD, with_size + without, LIMIT) == TEXT * 2
    assert zstandard.frame_content_size(compress(ZSTD, TEXT)) in (-1, 0)


def test_gzip_members_follow_each_other_and_other_bytes_behind_them_are_ignored() -> None:
    assert decompress(GZIP, gzip.compress(b"a") + gzip.compress(b"b") + b"???", LIMIT) == b"ab"
    large = b"abc" * (4 << 20)
    for behind in (b"", b"???", gzip.compress(b"b"), b"\x1f\x8b"):
        data = gzip.compress(large, 1) + behind
        if behind == b"\x1f\x8b":
            with pytest.raises(DecodeError):
                decompress(GZIP, data, 1 << 25)
        else:
            assert decompress(GZIP, data, 1 << 25) == large + (b"b" if len(behind) > 3 else b"")


def test_gzip_of_very_many_members_is_refused() -> None:
    """Each costs a copy of all that follow it."""
    assert decompress(GZIP, gzip.compress(b"a") * 100, LIMIT) == b"a" * 100
    with pytest.raises(DecodeError, match="more than 100 members"):
        decompress(GZIP, gzip.compress(b"") * 101, LIMIT)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_large_data_has_the_same_limit(codec: int) -> None:
    data = TEXT * 100
    assert len(data) > 18 << 20
    packed = compress(codec, data)
    assert decompress(codec, packed, len(data)) == data
    with pytest.raises(LimitError):
        decompress(codec, packed, len(data) - 1)
    if codec != ZSTD:
        # The library does not tell where a zstd stream stops; the record count does.
        with pytest.raises(DecodeError):
            decompress(codec, packed[:-3], len(data))


@pytest.mark.parametrize("codec", [0, *range(len(CODECS), 8)])
def test_a_codec_that_is_not_defined_is_refused(codec: int) -> None:
    with pytest.raises(DecodeError, match="not defined"):
        decompress(codec, b"", LIMIT)
    with pytest.raises(EncodeError, match="not defined"):
        compress(codec, b"")


def test_zstd_is_refused_before_magic_2() -> None:
    with pytest.raises(DecodeError, match="magic 1"):
        decompress(ZSTD, compress(ZSTD, b"x"), LIMIT, magic=1)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_bomb_is_stopped_at_the_limit(codec: int) -> None:
    data = bomb(codec, 1 << 20)
    with pytest.raises(LimitError):
        decompress(codec, data, 4 << 20)
