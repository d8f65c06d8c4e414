"""Which files a path stands for: what is shown of URIs that have credentials in them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from kwire.errors import CaptureError, KwireError
from kwire.spark import files
from kwire.spark.across import sensor_of
from kwire.spark.source import Options

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
    assert checked.sensor == checked.stream.series == DIGITS


@pytest.mark.parametrize("sensor", ["[", "(", "(?P<x>", "(x)?", DIGITS, 9_999_999_999])
def test_a_sensor_that_no_name_has_is_an_error(sensor: int | str) -> None:
    with pytest.raises(KwireError, match="the option 'sensor'"):
        sensor_of("/a/b/c.pcap", sensor)
