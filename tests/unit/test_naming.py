"""Names of files: credentials never leave a URI."""

from __future__ import annotations

import pickle

import pytest

from kwire.errors import CaptureError, KwireError, SchemaError
from kwire.naming import hidden, public, secrets_of


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("s3://AKIAX:CANARY@bucket/x.pcap", "s3://bucket/x.pcap"),
        ("s3://AKIAX:CANARY/CANARY@bucket/x.pcap", "s3://bucket/x.pcap"),
        ("s3://AKIAX:12/CANARY@bucket/x.pcap", "s3://bucket/x.pcap"),
        ("s3://AKIAX:CANARY?CANARY@bucket/x.pcap", "s3://bucket/x.pcap"),
        ("s3://AKIAX:CANARY?CANARY=CANARY@bucket/x.pcap", "s3://"),
        ("s3://AKIAX:CANARY#CANARY@bucket/x.pcap", "s3://bucket/x.pcap"),
        ("s3://AKIAX:CANARY CANARY@bucket/x.pcap", "s3://bucket/x.pcap"),
        ("s3://AKIAX:CANARY\tCANARY@bucket/x.pcap", "s3://bucket/x.pcap"),
        ("s3://AKIAX:CANARY@CANARY@bucket/x.pcap", "s3://bucket/x.pcap"),
        ("s3://AKIAX:CANARY", "s3://"),
        ("S3://AKIAX:CANARY/CANARY@bucket/x.pcap", "S3://bucket/x.pcap"),
        ("s3:/AKIAX:CANARY@bucket/x.pcap", "s3:/bucket/x.pcap"),
        ("file://user:CANARY@host/x.pcap", "file://host/x.pcap"),
        ("file:///home/a:b@c/x.pcap", "file:///home/a:b@c/x.pcap"),
        ("/home/me/s3:/AKIAX:CANARY/CANARY@bucket/x", "/home/me/s3:/bucket/x"),
        ("s3://bucket/x?access_key=CANARY&secret_key=CANARY&region=x", "s3://bucket/x"),
        ("abfs://cont:CANARY/CANARY==@acc.dfs.core.windows.net/x", "abfs://cont@acc.dfs.core.windows.net/x"),
        ("hdfs://CANARY:CANARY@host:9/x?user=x&token=CANARY", "hdfs://host:9/x"),
        ("hdfs://host:9/x@y", "hdfs://host:9/x@y"),
        ("s3://bucket/a@b:c.pcap", "s3://bucket/a@b:c.pcap"),
        ("/data/a@b:c?d=e", "/data/a@b:c?d=e"),
        ("C:/data/a@b", "C:/data/a@b"),
        ("file:///data/x:/a@b", "file:///data/x:/a@b"),
        ("", ""),
    ],
)
def test_a_uri_is_named_without_its_credentials(path: str, name: str) -> None:
    assert public(path) == name
    assert public(name) == name
    assert not secrets_of(name)
    assert ("CANARY" in path) == bool(secrets_of(path))
    for said in (f"{path}: no such file", f"{path!r} is nothing", f"[Errno 2] No such file: {path!r}, or {path}"):
        assert "CANARY" not in hidden(said, path)
        assert hidden(hidden(said, path), path) == hidden(said, path)
    if " " not in path and "\t" not in path:
        assert "CANARY" not in hidden(f"it is {path}, which is nothing")
    for made in (KwireError(f"{path} {path}"), CaptureError(f"{path!r} is bad", file=path), SchemaError("x", path, 3)):
        if type(made) is KwireError and (" " in path or "\t" in path):
            continue
        again = pickle.loads(pickle.dumps(made))
        assert str(again) == str(made)
        assert "CANARY" not in f"{made} {made!r} {made.args} {again!r}"


def test_what_others_say_of_a_uri_has_no_piece_of_its_secret() -> None:
    uri = "s3://AKIAX:wJal%2FrXUtn@bucket/x"
    for said in ("no access for wJal/rXUtn", "wJal%2FrXUtn", "s3:/AKIAX:wJal%2FrXUtn@bucket/x"):
        assert "rXUtn" not in hidden(said, uri)


def test_sentences_without_a_uri_stay_as_they_are() -> None:
    for said in ("a: b/c", "s3://bucket: no such file", "https://kafka.apache.org/protocol (a@b)", "x:/y z@w"):
        assert hidden(said) == said
        assert str(KwireError(said)) == said
