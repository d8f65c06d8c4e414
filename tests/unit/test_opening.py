"""The one way to open a user's file: regular, without links on the way, and new where it is written."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest

from kwire import capture, log
from kwire.opening import below, create_file, is_regular, open_file, place, replaced

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="about files of POSIX")


@pytest.mark.parametrize("planted", ["pipe", "device", "folder", "linked pipe", "nothing"])
def test_only_a_regular_file_is_opened(planted: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if planted == "pipe":
        os.mkfifo(path)
    elif planted == "device":
        path.symlink_to("/dev/zero")
    elif planted == "folder":
        path.mkdir()
    elif planted == "linked pipe":
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to(tmp_path / "pipe")
    assert not is_regular(path)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - which one is asked for below
        open_file(path)
    assert caught.value.filename == str(path)
    expected = {"folder": errno.EISDIR, "nothing": errno.ENOENT}.get(planted, errno.EINVAL)
    assert caught.value.errno == expected


def test_what_takes_the_place_of_a_file_after_the_look_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pipe = tmp_path / "x", tmp_path / "pipe"
    path.write_bytes(b"x")
    os.mkfifo(pipe)
    looked = os.stat

    def stat(one: str | Path) -> os.stat_result:
        found = looked(one)
        if Path(one) == path:
            pipe.replace(path)
        return found

    monkeypatch.setattr(os, "stat", stat)
    with pytest.raises(OSError, match="not a file"):
        open_file(path)


def test_a_link_to_a_file_is_read_and_a_name_may_be_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with open_file(tmp_path / "link") as file:
        assert file.read() == b"x"
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(writer, b"y")
    with open_file(tmp_path / "pipe", named=True, buffering=0) as file:
        assert file.read(1) == b"y"
    os.close(writer)


def test_errors_have_no_credentials() -> None:
    for named in (False, True):
        with pytest.raises(FileNotFoundError) as caught:
            open_file("s3://KEY:CANARY@bucket/x", named=named)
        assert "CANARY" not in f"{caught.value} {caught.value!r}"
    with pytest.raises(FileNotFoundError) as caught, replaced("s3://KEY:CANARY@bucket/x") as (new, _):
        create_file(new)
    assert "CANARY" not in f"{caught.value} {caught.value!r}"


@pytest.mark.parametrize("planted", ["pipe", "link", "link to nothing", "file"])
def test_an_output_takes_the_place_of_what_has_its_name(planted: str, tmp_path: Path) -> None:
    out, treasure = tmp_path / "out", tmp_path / "treasure"
    if planted == "pipe":
        os.mkfifo(out)
    elif planted == "file":
        out.write_text("old")
    else:
        out.symlink_to(treasure)
        if planted == "link":
            treasure.write_text("gold")
    with replaced(out) as (new, mode):
        assert (mode, new.parent) == ("x", tmp_path)
        with create_file(new) as file:
            file.write(b"rows")
    assert not out.is_symlink()
    assert is_regular(out)
    assert out.read_text() == "rows"
    assert not treasure.exists() or treasure.read_text() == "gold"


def test_what_the_system_has_put_there_is_written_to() -> None:
    read, write = os.pipe()
    for path in ("/dev/null", f"/dev/fd/{write}"):
        with replaced(path) as (same, mode):
            assert (str(same), mode) == (path, "w")
    os.close(read)
    os.close(write)


def test_no_device_is_made_of_a_name_in_shared_memory(tmp_path: Path) -> None:
    name = Path("/dev/shm") / f"kwire-{os.getpid()}"
    if not name.parent.is_dir():
        pytest.skip("no shared memory")
    os.mkfifo(name)
    try:
        with replaced(name) as (new, mode):
            assert mode == "x"
            new.write_bytes(b"")
        assert is_regular(name)
    finally:
        name.unlink()


@pytest.mark.parametrize("planted", ["a", "a/b"])
@pytest.mark.parametrize("to", ["folder", "nothing", "file"])
def test_no_link_on_the_way_is_followed(planted: str, to: str, tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    (root / planted).parent.mkdir(parents=True)
    if to == "folder":
        other.mkdir()
    elif to == "file":
        other.write_text("")
    (root / planted).symlink_to(other)
    (tmp_path / "rows").write_text("rows")
    with pytest.raises(OSError, match="a link, or no folder") as caught:
        place(str(tmp_path / "rows"), str(root), "a/b/c")
    assert caught.value.filename == str(root / planted)
    assert (tmp_path / "rows").read_text() == "rows"
    assert not other.is_dir() or not list(other.iterdir())


def test_a_file_takes_its_place(tmp_path: Path) -> None:
    root = tmp_path / "new" / "root"
    (tmp_path / "treasure").write_text("gold")
    for number in range(2):
        (tmp_path / "rows").write_text(str(number))
        place(str(tmp_path / "rows"), str(root), "a=1/b=2/x")
        assert (root / "a=1" / "b=2" / "x").read_text() == str(number)
        (root / "a=1" / "b=2" / "x").unlink()
        (root / "a=1" / "b=2" / "x").symlink_to(tmp_path / "treasure")
    assert (tmp_path / "treasure").read_text() == "gold"


def test_each_folder_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_text("")
    os.mkfifo(tmp_path / "a" / "pipe")
    (tmp_path / "z").symlink_to(".")
    (tmp_path / "0").symlink_to(tmp_path / "a" / "b")
    (tmp_path / "a" / "up").symlink_to("..")
    (tmp_path / "a" / "broken").symlink_to("nothing")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "y").write_text("")
    (tmp_path / "out").symlink_to(outside)
    inside = ["a/b/x", "a/broken", "a/pipe"]
    assert sorted(os.path.relpath(one, tmp_path) for one in below(tmp_path)) == inside
    assert sorted(os.path.relpath(one, tmp_path) for one in below(tmp_path, links=True)) == [*inside, "out/y"]
    assert sorted(os.path.relpath(one, tmp_path) for one in below(tmp_path, links=True, recursive=False)) == []
    with pytest.raises(FileNotFoundError):
        list(below(tmp_path / "none"))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"abc", "is a path or a file that is open in binary mode, not bytes: io.BytesIO(data) makes a file of bytes"),
        (None, "is a path or a file that is open in binary mode, not NoneType"),
        (7, "is a path or a file that is open in binary mode, not int"),
    ],
)
def test_what_is_neither_a_path_nor_a_file_is_refused_before_it_is_read(source: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"^a capture {re.escape(said)}$"):
        capture.read(source)
    with pytest.raises(TypeError, match=f"^a capture {re.escape(said)}$"):
        capture.read([source])
    with pytest.raises(TypeError, match=f"^a segment {re.escape(said)}$"):
        list(log.read(source))
