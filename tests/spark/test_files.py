"""Which files a path stands for: what is shown of URIs that have credentials in them."""

from __future__ import annotations

import base64
import os
import pickle
import re
import struct
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from kwire.capture import splits
from kwire.capture.parts import Part
from kwire.capture.tracker import Tracker
from kwire.errors import CaptureError, KwireError
from kwire.spark import files
from kwire.spark.checkpoint import StateFolder
from kwire.spark.options import Options
from kwire.spark.reader import FilePartition, SensorPartition
from kwire.spark.sensors import SensorFiles, by_sensor, sensor_of
from kwire.spark.source import KwireDataSource

SECRETS = ("AKIDEXAMPLE", "wJalr", "XUtn", "FEMI", "hunter2", "t0ken")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("s3://AKIDEXAMPLE:wJalrXUtnFEMI@bucket/a/b.pcap", "s3://bucket/a/b.pcap"),
        ("s3a://AKIDEXAMPLE:wJalr%2FXUtn%2FFEMI@bucket/*.pcap?region=eu-west-1", "s3a://bucket/*.pcap"),
        ("s3://AKIDEXAMPLE:wJalr/XUtn/FEMI@bucket/a@b.pcap", "s3://bucket/a@b.pcap"),
        ("s3://AKIDEXAMPLE:wJalr@XUtn@bucket/a", "s3://bucket/a"),
        ("s3://AKIDEXAMPLE:wJalr?XUtn=FEMI@bucket/a", "s3://"),
        ("s3://bucket/a@b.pcap", "s3://bucket/a@b.pcap"),
        ("s3://bucket/a?b.pcap", "s3://bucket/a?b.pcap"),
        ("s3://bucket/a.pcap?region=x&session_token=t0ken", "s3://bucket/a.pcap"),
        ("hdfs://hunter2@host:8020/a", "hdfs://host:8020/a"),
        ("hdfs://[::1]:8020/a", "hdfs://[::1]:8020/a"),
        ("abfs://container:hunter2@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a"),
        ("abfs://container@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a"),
        ("abfs://:hunter2@account.blob.core.windows.net/a", "abfs://@account.blob.core.windows.net/a"),
        ("nothing://AKIDEXAMPLE:hunter2@host/a", "nothing://host/a"),
        ("/data/a@b:c?d=e", "/data/a@b:c?d=e"),
        ("file:///data/a@b:c?d=e", "file:///data/a@b:c?d=e"),
    ],
)
@pytest.mark.parametrize("said", ["", "Cannot parse URI: '{path}'", "no access for '{decoded}'"])
def test_errors_name_a_uri_without_its_credentials(
    path: str, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(uri: str) -> None:
        raise pa.ArrowInvalid(said.format(path=uri, decoded=uri.replace("%2F", "/")))

    monkeypatch.setattr(files.fs, "FileSystem", type("FileSystem", (), {"from_uri": staticmethod(refused)}))
    with pytest.raises(CaptureError) as caught:
        files.find([path])
    assert caught.value.file == name
    shown = f"{caught.value} {caught.value!r} {caught.value.args}"
    assert not [one for one in SECRETS if one in shown]


@pytest.mark.parametrize(
    "path",
    [
        "nothing://AKIDEXAMPLE:hunter2@host/a",
        "s3://AKIDEXAMPLE:wJalr/XUtn/FEMI@bucket/a",
        "s3://AKIDEXAMPLE:hunter2@bucket/a?region=x&no_option=t0ken",
        "s3://AKIDEXAMPLE:hunter2@bu cket/a",
    ],
)
def test_what_arrow_says_of_a_uri_is_not_shown_with_its_credentials(path: str) -> None:
    with pytest.raises(CaptureError) as caught:
        files.find([path])
    shown = f"{caught.value} {caught.value!r} {caught.value.args}"
    assert not [one for one in SECRETS if one in shown]


def test_what_arrow_says_of_an_option_is_shown_where_nothing_is_secret() -> None:
    with pytest.raises(CaptureError, match="Unrecognized filesystem type"):
        files.find(["nothing://host/a"])


def test_files_are_named_without_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "a.pcap").write_bytes(b"x")
    local = fs.LocalFileSystem()
    below = fs.SubTreeFileSystem(str(tmp_path), local)
    for filesystem, base, folder, name in (
        (local, "", f"{tmp_path}/bucket", f"hdfs://host:8020{tmp_path}/bucket/a.pcap"),
        (below, "bucket", "", "hdfs://bucket/a.pcap"),
    ):
        given = filesystem, base
        opened = type("FileSystem", (), {"from_uri": staticmethod(lambda uri, given=given: given)})
        monkeypatch.setattr(files.fs, "FileSystem", opened)
        for path in ("a.pcap", "*.pcap"):
            (found,) = files.find([f"hdfs://hunter2:t0ken@host:8020{folder}/{path}"])
            assert found.name == name
            assert b"hunter2" not in pickle.dumps(found)


def test_a_name_that_is_not_utf_8_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "good.pcap").write_bytes(b"")
    odd = tmp_path / "od\udcffd.pcap"
    odd.write_bytes(b"")
    for path in (str(tmp_path), str(tmp_path / "*"), str(odd)):
        with pytest.raises(CaptureError, match="is not UTF-8"):
            files.find([path])


DIGITS = "9" * 5000
BRACKETS = "[" * 100_000


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *((option, DIGITS) for option in ("ports", "vxlan_ports", "maxFilesPerTrigger", "maxBytesPerTrigger")),
        *((option, DIGITS) for option in ("remember", "idle", "stateTimeout", "maxSplitBytes", "limits")),
        *((option, "9999-12-31T23:59:59-14:00") for option in ("modifiedAfter", "modifiedBefore")),
        *(("paths", value) for value in ("", "5", "null", "{}", "[5]", '"x"', DIGITS, BRACKETS)),
        ("series", "["),
    ],
)
def test_options_that_are_nothing_are_errors(option: str, value: str) -> None:
    with pytest.raises(KwireError, match=f"option '{option}'"):
        Options.of({"path": "x", option: value})


def test_long_digits_are_a_pattern_of_sensors() -> None:
    checked = Options.of({"path": "x", "across": "true", "sensor": DIGITS, "series": DIGITS})
    assert checked.values["sensor"] == checked.stream.series == DIGITS


@pytest.mark.parametrize("sensor", ["[", "(", "(?P<x>", "(x)?", DIGITS, 9_999_999_999])
def test_a_sensor_that_no_name_has_is_an_error(sensor: int | str) -> None:
    with pytest.raises(KwireError, match="the option 'sensor'"):
        sensor_of("/a/b/c.pcap", sensor)


def test_links_to_their_own_folder_are_listed_once(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).symlink_to(".")
    (tmp_path / "x.pcap").write_bytes(b"")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "y.pcap").write_bytes(b"")
    (tmp_path / "out").symlink_to(outside)
    os.mkfifo(tmp_path / "pipe.pcap")
    found = [str(tmp_path / one) for one in ("out/y.pcap", "x.pcap")]
    assert [one.name for one in files.find([str(tmp_path)])] == found
    assert [one.name for one in files.find([str(tmp_path / "**" / "*.pcap")])] == found


def test_what_is_no_file_beside_a_segment_says_nothing_of_it(tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(b"")
    (found,) = files.find([str(log)])
    assert found.beside("partition.metadata") is None
    os.mkfifo(tmp_path / "partition.metadata")
    assert found.beside("partition.metadata") is None
    (tmp_path / "partition.metadata").unlink()
    (tmp_path / "partition.metadata").symlink_to("/dev/zero")
    assert found.beside("partition.metadata") is None


CANARY = "5ec2e7" * 16


def test_no_repr_has_a_secret(tmp_path: Path) -> None:
    lines = f"CLIENT_RANDOM {'ab' * 32} {CANARY}\n"
    section = _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    head = section + _block(1, struct.pack("<HHI", 101, 0, 0))
    head += _block(10, struct.pack("<II", 0x544C534B, len(lines)) + lines.encode())
    packet = _block(6, struct.pack("<5I", 0, 400_000, 0, 1400, 1400) + bytes(1400))
    data = head + packet * 3_000
    tracker = Tracker()
    tracker.feed(head + packet)
    saved = tracker.save()
    assert CANARY not in f"{saved!r} {saved.schema!r} {saved.schema.metadata}"
    again = Tracker()
    again.restore(saved)
    assert again._keys.text() == lines.encode()
    split = splits.find(lambda offset, count: data[offset : offset + count], len(data), 1 << 20)[0]
    assert CANARY in base64.b64decode(split.container["secrets"]).decode()
    file = files.File(fs.LocalFileSystem(), "/x", "/x", 1, True, split=split)
    uri = f"s3://KEY:{CANARY}@bucket/x"
    options = Options.of(
        {"path": uri, "keylog": uri, "topic_ids": uri, "across": "true", "statelocation": uri, "s3.secret_key": CANARY}
    )
    for one in (
        *(
            split,
            file,
            FilePartition((file,)),
            SensorPartition(SensorFiles((file,), (0,))),
            Part(split=split, state=saved),
        ),
        *(options, options.stores, options.stream, StateFolder(uri, 0, options.stores)),
    ):
        assert CANARY not in repr(one), type(one)


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "2026-11-01/a.pcap",
        "2026-11-01/_SUCCESS",
        "2026-11-02/b.pcap",
        "2026-11-02/deep/c.pcap",
        "2026-12-01/d.pcap",
        "2026-11-top.pcap",
        "_temporary/e.pcap",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("2026-11-*", "a b c top"),
        ("2026-11-0*", "a b c"),
        ("2026-11-0*/", "a b c"),
        ("2026-*-01", "a d"),
        ("2026-1[12]-0{1,2}", "a b c d"),
        ("*", "a b c d top"),
        ("_temp*", "e"),
        # What a pattern names itself is taken whatever it is called.
        ("2026-11-*/*", "_SUCCESS a b c"),
        ("2026-11-*/d*", "c"),
        ("2026-11-0*/*.pcap", "a b"),
        ("2026-11-**", "_SUCCESS a b c top"),
        ("2025-*", ""),
    ],
)
def test_a_pattern_that_matches_folders_reads_them(
    tree: Path, pattern: str, names: str, store: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tree)
    if store:
        # Another file system than that of this machine, with the same files.
        filesystem = fs.SubTreeFileSystem(str(tree.parent), fs.LocalFileSystem())
        monkeypatch.setattr(files, "filesystem_of", lambda path, _stores: (filesystem, path.rstrip("/"), ""))
        root = tree.name
    if not names:
        with pytest.raises(CaptureError, match="no such file"):
            files.find([f"{root}/{pattern}"])
        return
    found = files.find([f"{root}/{pattern}"])
    shown = [Path(one.path).name.removesuffix(".pcap").removeprefix("2026-11-") for one in found]
    assert sorted(shown) == sorted(names.split())


def test_a_link_to_a_folder_above_is_no_endless_pattern(tree: Path) -> None:
    (tree / "2026-11-01" / "loop").symlink_to(tree)
    found = files.find([f"{tree}/2026-*/*/*"])
    assert all(Path(one.path).is_file() for one in found)
    assert len(found) < 50


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("capture", "a folder without captures$"),
        ("log", r"a folder without log segments, which are named like 0{18}42\.log$"),
    ],
)
def test_a_folder_without_files_says_so(tmp_path: Path, form: str, said: str) -> None:
    (tmp_path / "_hidden.log").touch()
    source = KwireDataSource({"path": str(tmp_path), "format": form})
    with pytest.raises(CaptureError, match=said):
        source.reader(source.schema()).partitions()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / f"{0:020}.log").touch()
    flat = KwireDataSource({"path": str(tmp_path), "format": form, "recursiveFileLookup": "false"})
    with pytest.raises(CaptureError, match="recursiveFileLookup=false leaves out its folders"):
        flat.reader(source.schema()).partitions()


def test_segments_that_are_read_as_captures_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / f"{0:020}.log").touch()
    with pytest.warns(UserWarning, match="like a log segment: format=log reads those"):
        Options.of({"path": str(tmp_path)}).files()
    (tmp_path / "a.pcap").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Options.of({"path": str(tmp_path)}).files()
        Options.of({"path": str(tmp_path), "format": "log"}).files()


@pytest.mark.parametrize(
    ("sensor", "folders", "said"),
    [
        (1, ["east/date=2026-11-22", "west/date=2026-11-23"], "finds dates .*: sensor=2 is 'east'"),
        (1, ["east/20261122", "east/20261123T10"], "sensor=2 is 'east'"),
        (2, ["east/date=2026-11-22/hour=07"], "sensor=3 is 'east'"),
        (1, ["east/2026/11/22", "east/2026/11/23"], "sensor=4 is 'east'"),
        (r"date=[^/]*", ["east/date=2026-11-22"], "give a pattern that finds the name of the sensor"),
        (2, ["east/date=2026-11-22", "west/date=2026-11-23"], None),
        (1, ["east", "2026-11-22"], None),
        (1, ["2026/east", "11/west"], None),
        (1, ["rack/10", "rack/11"], None),
        (1, ["20261322", "sensor-192168001101"], None),
        (None, ["date=2026-11-22"], None),
        (lambda name: "date=2026-11-22", ["date=2026-11-22"], None),
    ],
)
def test_sensors_that_are_dates_are_a_warning(
    tmp_path: Path, sensor: Any, folders: list[str], said: str | None
) -> None:
    for one in folders:
        (tmp_path / one).mkdir(parents=True)
        (tmp_path / one / "a.pcap").touch()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        by_sensor(files.find([str(tmp_path)]), sensor)
    assert len(caught) == (said is not None)
    assert said is None or re.search(said, str(caught[0].message))
