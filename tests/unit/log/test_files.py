"""Segments on disk: finding them, and what their names say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire import log
from kwire.errors import CaptureError
from kwire.log.files import with_topic
from kwire.records import CONTROL_TYPES, Record, control_key, encode

pytestmark = pytest.mark.usefixtures("engine")


def test_segments_are_found_with_what_their_names_say(partition: Path) -> None:
    for path in (partition, partition.parent):
        first, second = log.find(path)
        assert (first.topic, first.partition, first.topic_id) == ("my-topic", 7, "AAAAAAAAAAAAAAAAAAAAAQ")
        assert [first.base_offset, second.base_offset] == [0, 1000]
    (one,) = log.find(partition / f"{1000:020}.log")
    assert one == second


@pytest.mark.parametrize(
    ("name", "topic", "number"),
    [
        ("a-b-0", "a-b", 0),
        ("t-3.0123456789abcdef0123456789abcdef-delete", "t", 3),
        ("t-3.0123456789abcdef0123456789abcdef-future", "t", 3),
        ("plain", None, None),
    ],
)
def test_directory_names_say_topic_and_partition(tmp_path: Path, name: str, topic: str, number: int) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / f"{5:020}.log").write_bytes(b"")
    (one,) = log.find(folder)
    assert (one.topic, one.partition, one.base_offset, one.topic_id) == (topic, number, 5, None)


def test_a_directory_without_segments_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no log segments"):
        log.find(tmp_path)
    with pytest.raises(FileNotFoundError):
        log.find(tmp_path / "nothing")


def test_segments_are_told_from_other_files() -> None:
    for magic in (0, 1, 2):
        head = encode([Record(b"", b"")], magic=magic)[:17]
        assert log.is_segment(head)
        assert not log.is_segment(head[:16])
    assert not log.is_segment(b"\xd4\xc3\xb2\xa1\2\0\4\0" + bytes(16))
    assert not log.is_segment(b"\x0a\x0d\x0d\x0a" + b"\x1c\0\0\0\x4d\x3c\x2b\x1a\1\0\0\0\xff\xff")
    assert not log.is_segment(b"")
    assert log.is_segment(b"", "00000000000000000000.log")
    assert log.is_segment(bytes(17), "00000000000000000000.log")


@pytest.mark.parametrize("name", ["99999999999999999999.log", "\N{ARABIC-INDIC DIGIT ZERO}" * 20 + ".log"])
def test_a_file_name_that_is_no_offset_names_no_segment(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t-4294967295" / name
    path.parent.mkdir()
    path.write_bytes(encode([Record(b"k", b"v", timestamp=1)]))
    path.with_suffix(".index").write_bytes(bytes(8))
    (found,) = log.find(path)
    assert (found.base_offset, found.partition) == (None, None)
    assert sum(batch.num_rows for batch in log.read(found)) == 1
    with pytest.raises(ValueError, match="not named by its first offset"):
        log.check_indexes(found)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"{0:020}.index", "the offset index"),
        (f"{0:020}.timeindex", "the time index"),
        (f"{0:020}.txnindex", "the aborted transactions"),
        (f"{0:020}.snapshot", "the state of producers"),
        ("leader-epoch-checkpoint", "the epochs of leaders"),
        ("replication-offset-checkpoint", "offsets of partitions"),
        ("partition.metadata", "the id of a topic"),
        ("meta.properties", "the id of a broker"),
        ("notes.txt", "no batch begins there"),
    ],
)
@pytest.mark.parametrize("content", [b"", bytes(17), b"version: 0\nmore of it\n"])
def test_a_file_that_is_no_segment_is_refused_and_named(tmp_path: Path, name: str, said: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=f"no log segment.*{said}"):
        log.find(path)


def test_a_segment_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "copy.index"
    path.write_bytes(encode([Record(b"a", b"b")]))
    (one,) = log.find(path)
    assert (one.topic, one.base_offset) == (None, None)


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", "copy", f"{0:020}.log"])
@pytest.mark.parametrize("kind", CONTROL_TYPES)
def test_a_log_of_the_metadata_is_known_by_how_it_begins(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    path.write_bytes(encode([Record(control_key(kind), b"\0\0")], is_control=True) + encode([Record(None, b"v")]))
    (one,) = log.find(path)
    # Transactions end in any partition.
    known = kind not in ("abort", "commit")
    assert (one.topic, one.partition) == (("__cluster_metadata", 0) if known else (None, None))
    # What a folder says counts more.
    folder = tmp_path / "orders-3"
    folder.mkdir()
    (one,) = log.find(path.rename(folder / f"{0:020}.log"))
    assert (one.topic, one.partition) == ("orders", 3)


def test_a_topic_that_no_folder_names_may_be_given(tmp_path: Path) -> None:
    (tmp_path / f"{5:020}.log").write_bytes(encode([Record(b"k")]))
    (one,) = log.find(tmp_path)
    given = with_topic(one, "orders", 3)
    assert (given.topic, given.partition, given.has_given_topic) == ("orders", 3, True)
    # Secrets of the metadata log are left out of what was given as it, as of what is it.
    assert not with_topic(one, "__cluster_metadata", 0).has_given_topic
    assert with_topic(given, "orders") is given
    for topic in ("", ".", "..", "a b", "a" * 250):
        with pytest.raises(CaptureError, match="no topic is called"):
            with_topic(one, topic)
    with pytest.raises(CaptureError, match="the segment is one of orders-3, not of other"):
        with_topic(given, "other")
    with pytest.raises(CaptureError, match="the segment is one of orders-3, not of orders-4"):
        with_topic(given, "orders", 4)


@pytest.mark.parametrize("content", [b"", b"\0" * 16, b"no batch at all, but a text that is long enough"])
def test_a_segment_without_a_batch_is_none_of_the_metadata_log(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{0:020}.log").write_bytes(content)
    (one,) = log.find(tmp_path)
    assert one.topic is None
