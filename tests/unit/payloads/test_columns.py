"""What may be a column of payloads: arrays of any form, what gives arrays, and one sentence for anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import kwire
import kwire.messages
from kwire.errors import KwireError
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.payloads import decode_records, decode_requests, decode_responses, request_records, types
from kwire.records import Record, encode

pytestmark = pytest.mark.usefixtures("engine")

FRAME = kwire.encode_request(kwire.messages.MetadataRequest(), api_version=1, correlation_id=7, client_id="billing")
ANSWER = kwire.encode_response(kwire.messages.HeartbeatResponse(), api_version=0, correlation_id=1)
SET = encode([Record(b"k", b"v", offset=1)])
PLAIN = pa.array([FRAME, None, b"no", FRAME])


class Stream:
    """What Polars and others have."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._column.__arrow_c_stream__(requested_schema)


class Series:
    """What pandas has."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __arrow_array__(self, type: object = None) -> Any:  # noqa: A002 - the protocol of Arrow
        return self._column


class DataFrame(Stream):
    """What has several columns."""


FORMS: dict[str, Callable[[], Any]] = {
    "dictionary": lambda: PLAIN.dictionary_encode(),
    "slice of a dictionary": lambda: pa.array([b"x", *PLAIN.to_pylist()]).dictionary_encode()[1:],
    "runs": lambda: pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4], PLAIN),
    "a type of its own": lambda: pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "frame", "test"), PLAIN),
    "views": lambda: PLAIN.cast(pa.binary_view()),
    "a stream of Arrow": lambda: Stream(pa.chunked_array([PLAIN[:1], PLAIN[1:]])),
    "an array of another library": lambda: Series(PLAIN),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_column_is_the_same_in_any_form(form: str) -> None:
    assert decode_requests(FORMS[form]()).to_pylist() == decode_requests(PLAIN).to_pylist()


WRONG: dict[str, tuple[Any, str]] = {
    "a list": ([FRAME], r"not list: pa\.array\(values\) makes one"),
    "bytes": (FRAME, r"not bytes: pa\.array\(values\) makes one"),
    "a table": (pa.table({"payload": PLAIN}), "not Table: give one of its columns"),
    "a frame of columns": (DataFrame(pa.chunked_array([PLAIN])), "not DataFrame: give one of its columns"),
    "text": (pa.array(["00"]), "not of the type string: make bytes of the text first"),
    "text in a dictionary": (pa.array(["00"]).dictionary_encode(), "make bytes of the text first"),
    "views of text": (pa.array(["00"]).cast(pa.string_view()), "make bytes of the text first"),
    "a struct": (pa.array([{"payload": FRAME}]), "give one of its fields"),
    "numbers": (pa.array([1]), "not of the type int64"),
    "a Series of what is none": (Series([1]), "this Series gives no array of bytes"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_column_is_one_sentence(kind: str) -> None:
    given, said = WRONG[kind]
    for function in (decode_requests, decode_records, request_records):
        with pytest.raises(KwireError, match=said):
            function(given)


def test_keys_and_versions_of_any_form() -> None:
    column = pa.array([ANSWER, ANSWER])
    plain = decode_responses(column, 12, 0).to_pylist()
    assert [one["body"] for one in plain] == ['{"error_code":"NONE"}'] * 2
    twelve = pa.array([12, 12], pa.int8())
    for keys in (
        pa.scalar(12).as_py(),
        twelve,
        twelve.dictionary_encode(),
        pa.chunked_array([[12], [12]]),
        Series(twelve),
    ):
        assert decode_responses(column, keys, pa.array([0, 0], pa.uint16())).to_pylist() == plain
    assert decode_responses(pa.chunked_array([[ANSWER], [ANSWER]]), twelve, 0).to_pylist() == plain
    odd = decode_responses(column, pa.array([12, 2**64 - 5], pa.uint64()), pa.array([None, 0], pa.int32())).to_pylist()
    assert [one["status"] for one in odd] == ["unsupported"] * 2
    assert decode_responses(column, pa.nulls(2), -1).to_pylist()[0]["status"] == "unsupported"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("Heartbeat", "a number, not str"),
        (None, "a number, not NoneType"),
        (True, "a number, not bool"),
        ([12, 12], "a number, not list"),
        (1 << 80, "numbers of 16 bits"),
        (pa.array([12.0, None]), "not of the type double: cast it first"),
        (pa.array(["12", "12"]), "not of the type string: cast it first"),
        (pa.array([12]), "there are 2 payloads and 1 values"),
        (pa.array([12, 12, 12]), "there are 2 payloads and 3 values"),
    ],
)
def test_keys_that_are_none_are_one_sentence(keys: Any, said: str) -> None:
    for given in ((keys, 0), (12, keys)):
        with pytest.raises(KwireError, match=f"API keys and versions are .*{said}"):
            decode_responses(pa.array([ANSWER, None]), *given)


def test_which_sets_are_of_the_metadata_log_is_a_column_of_bools() -> None:
    sets = pa.array([SET, SET, SET])
    values = [
        [one["value"] for one in rows]
        for rows in decode_records(sets, metadata=pa.array([True, None, False])).to_pylist()
    ]
    assert values == [[b'{"redacted": 1}'], [b"v"], [b"v"]]
    assert decode_records(sets, metadata=pa.nulls(3)).to_pylist() == decode_records(sets).to_pylist()
    for metadata in ([True] * 3, pa.array(["__cluster_metadata"] * 3), pa.array([1, 0, 1]), pa.array([True])):
        wrong: Any = metadata
        with pytest.raises(KwireError, match="metadata is a column of bools, one for each payload, or a bool"):
            decode_records(sets, metadata=wrong)


@pytest.mark.parametrize("name", ["secrets", "several", "payloads"])
def test_a_flag_is_a_bool(name: str) -> None:
    wrong: Any = {name: "no"}
    with pytest.raises(KwireError, match=f"{name} is True or False, not 'no'"):
        decode_requests(PLAIN, **wrong)


def test_flags_of_records_fields_and_topic_ids_are_what_they_should_be() -> None:
    for name in ("secrets", "strict"):
        wrong: Any = {name: "no"}
        with pytest.raises(KwireError, match=f"{name} is True or False, not 'no'"):
            decode_records(PLAIN, **wrong)
    with pytest.raises(KwireError, match=r"fields is a list of names, not 'status': fields=\['status'\]"):
        decode_requests(PLAIN, fields="status")
    for given, said in (
        (["orders"], "as a dict, not list"),
        ({"zz": "orders"}, "'zz' is no topic id"),
        ({b"1": "orders"}, "b'1' is no topic id"),
        ({3: "orders"}, "3 is no topic id"),
        ({b"1" * 16: 5}, "the name of a topic is text, not 5"),
    ):
        topic_ids: Any = given
        with pytest.raises(KwireError, match=f"topic_ids.*{said}"):
            request_records(PLAIN, topic_ids=topic_ids)


def _produce(records: bytes) -> bytes:
    kind = kwire.messages.ProduceRequest
    data = kind.PartitionProduceData(index=0, records=records)
    body = kind(acks=1, topic_data=[kind.TopicProduceData(name="orders", partition_data=[data])])
    return kwire.encode_request(body, api_version=9, correlation_id=1)


@pytest.mark.parametrize("total", [DEFAULT_LIMITS.total, 50_000])
def test_what_a_payload_decompresses_to_does_not_depend_on_others(monkeypatch: pytest.MonkeyPatch, total: int) -> None:
    monkeypatch.setattr(types, "TOGETHER", 70_000)
    limits = Limits(total=total)
    large = [encode([Record(b"k", bytes(size))], compression="gzip") for size in (30_000, 60_000, 10, 45_000)]
    damaged = large[1][:-30] + bytes(30)
    sets: list[bytes | None] = [SET, *large, None, damaged, large[3] + large[3], *large, b""]
    frames = [None if one is None else _produce(one) for one in sets]
    for function, payloads in ((decode_records, sets), (request_records, frames)):
        alone = [function(pa.array([one], pa.binary()), limits=limits).to_pylist()[0] for one in payloads]
        assert function(pa.array(payloads, pa.binary()), limits=limits).to_pylist() == alone
        found = [one and [each["status"] for each in one] for one in alone]
        assert found[1] == ["ok"]
        assert found[2] == (["ok"] if total > 60_000 else ["too_large"])
        assert found[7] == (["ok", "ok"] if total > 90_000 else ["ok", "too_large"])
