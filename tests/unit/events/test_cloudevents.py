"""The Kafka protocol binding of CloudEvents: a test per requirement, named after its section."""

from __future__ import annotations

import base64
import copy
import json
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings import kafka as sdk
from cloudevents.core.v1.event import CloudEvent
from event_samples import ATTRIBUTES, BINARY, SAMPLES, STRUCTURED, TIMES, structured, without

from kwire.errors import DecodeError, EncodeError, MissingExtraError
from kwire.events import cloudevents, media
from kwire.events.columns import http_events
from kwire.records import Record
from kwire.records.arrow_types import HEADERS

ATTRS = {"specversion": "1.0", "type": "com.example.someevent", "source": "/mycontext/subcontext", "id": "1234"}
TIME = datetime(2018, 4, 5, 3, 56, 24, tzinfo=UTC)
NOT_AN_EVENT = "no CloudEvent"
NOT_JSON = "value is not a JSON object, or repeats a name"
UNKNOWN = "content-type is not an event format that is known"
NO_VALUE = "is not a boolean, a 32-bit integer or a string"


def event(data: Any = None, **more: Any) -> CloudEvent:
    """An event without the time that the package would give it."""
    made = CloudEvent({**ATTRS, "time": TIME, **more}, data)
    if "time" not in more:
        del made.get_attributes()["time"]
    return made


def headers(record: Record) -> dict[str, bytes | None]:
    """The headers of a record, each of which is there once."""
    assert len({name for name, _ in record.headers}) == len(record.headers)
    return dict(record.headers)


def same(one: BaseCloudEvent, other: BaseCloudEvent) -> bool:
    return one.get_attributes() == other.get_attributes() and one.get_data() == other.get_data()


# --- 1.3 content modes, 1.4 event formats ---------------------------------------------------------------------


def test_1_3_binary_value_is_the_data_as_is_and_the_rest_is_headers() -> None:
    record = cloudevents.to_record(event(b"\x00\xff avro", datacontenttype="application/avro", ext="x"))
    assert record.value == b"\x00\xff avro"
    assert headers(record) == {
        "ce_specversion": b"1.0",
        "ce_type": b"com.example.someevent",
        "ce_source": b"/mycontext/subcontext",
        "ce_id": b"1234",
        "content-type": b"application/avro",
        "ce_ext": b"x",
    }


def test_1_3_both_modes_carry_the_same_event() -> None:
    made = event({"a": 1}, datacontenttype="application/json", time=TIME, subject="s")
    for mode in ("binary", "structured"):
        got = cloudevents.from_record(cloudevents.to_record(made, mode=mode))
        assert got.get_attributes() == made.get_attributes()
        data = got.get_data()
        assert (json.loads(data) if isinstance(data, bytes) else data) == {"a": 1}


def test_1_3_batch_content_mode_is_refused() -> None:
    record = Record(value=b"[]", headers=[("content-type", b"application/cloudevents-batch+json")])
    with pytest.raises(DecodeError, match="batch content mode, which Kafka's binding does not have") as raised:
        cloudevents.from_record(record)
    assert raised.value.path == "$.headers.content-type"
    assert not isinstance(raised.value, cloudevents.UnknownFormatError)


@pytest.mark.parametrize("magic", [0, 1])
def test_1_3_message_formats_without_headers_must_use_structured_mode(magic: int) -> None:
    with pytest.raises(EncodeError, match=f"message format {magic} has no headers: only structured mode"):
        cloudevents.to_record(event(), magic=magic)
    record = cloudevents.to_record(event({"a": 1}), mode="structured", magic=magic)
    assert record.headers == []
    assert same(cloudevents.from_record(record, magic=magic), event({"a": 1}))
    with pytest.raises(DecodeError, match="no ce_ header"):
        cloudevents.from_record(record, magic=2)


def test_1_3_message_formats_without_headers_take_no_other_headers() -> None:
    for more in ({"headers": [("a", b"b")]}, {"attribute_headers": True}):
        with pytest.raises(EncodeError, match="has no headers"):
            cloudevents.to_record(event(), mode="structured", magic=1, **more)  # type: ignore[arg-type]


def test_1_4_structured_mode_supports_the_JSON_event_format() -> None:  # noqa: N802
    record = cloudevents.to_record(event("text", datacontenttype="text/plain"), mode="structured")
    assert json.loads(record.value or b"") == {**ATTRS, "datacontenttype": "text/plain", "data": "text"}


def test_2_1_data_declared_as_JSON_is_UTF_8_encoded_JSON_text() -> None:  # noqa: N802
    record = cloudevents.to_record(event({"ä": [1.5, None]}, datacontenttype="application/json;charset=utf-8"))
    assert record.value == '{"ä":[1.5,null]}'.encode()
    assert cloudevents.to_record(event("a", datacontenttype="application/json")).value == b'"a"'


# --- 3 which mode -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/cloudevents+json",
        b"application/cloudevents+json; charset=UTF-8",
        b"application/cloudevents+json;charset=UTF-8",
        b"application/cloudevents+avro",
        b"application/cloudevents",
        b"Application/CLOUDEVENTS+Json",
    ],
)
def test_3_a_content_type_with_the_CloudEvents_prefix_is_structured(content_type: bytes) -> None:  # noqa: N802
    assert cloudevents.content_mode([("content-type", content_type)]) == "structured"
    assert cloudevents.content_mode([*BINARY, ("content-type", content_type)]) == "structured"


@pytest.mark.parametrize("content_type", [b"application/json", b"application/cloudevent+json", b"x", b"", None])
def test_3_any_other_content_type_defaults_to_binary(content_type: bytes | None) -> None:
    assert cloudevents.content_mode([("content-type", content_type), *BINARY]) == "binary"
    assert cloudevents.content_mode(BINARY) == "binary"


def test_3_what_has_neither_is_no_event() -> None:
    assert cloudevents.content_mode([("content-type", b"application/json"), ("trace", b"1")]) is None
    with pytest.raises(DecodeError, match="no ce_ header and no CloudEvents content type"):
        cloudevents.from_record(Record(value=b"x"))


@pytest.mark.parametrize(
    "headers",
    [
        [("ce-id", b"1"), ("ce-source", b"/me")],
        [("CE-Type", b"ping")],
        [("Ce_Specversion", b"1.0")],
        [("Content-Type", b"Application/CloudEvents+json")],
    ],
)
def test_3_headers_of_the_HTTP_binding_make_no_event_and_are_named(headers: Any) -> None:  # noqa: N802
    assert cloudevents.content_mode(headers) is None
    with pytest.raises(DecodeError, match="it has the headers of CloudEvents over HTTP"):
        cloudevents.from_record(Record(value=b"x", headers=headers))
    assert http_events(pa.array([headers, [], headers], HEADERS)) == 2


@pytest.mark.parametrize(
    "headers",
    [[("ce-trace", b"1")], [("Content-Type", b"application/json")], [("content-type", b"x")], [("Content-Type", None)]],
)
def test_3_other_headers_are_not_those_of_the_HTTP_binding(headers: Any) -> None:  # noqa: N802
    with pytest.raises(DecodeError, match="no ce_ header and no CloudEvents content type"):
        cloudevents.from_record(Record(value=b"x", headers=headers))
    assert http_events(pa.array([headers, []], HEADERS)) == 0


def test_3_an_unknown_format_is_refused_or_treated_as_binary_and_forwarded_as_it_is() -> None:
    avro = ("content-type", b"application/cloudevents+avro")
    record = Record(b"k", b"\x01\xff", headers=[*BINARY, avro])
    with pytest.raises(cloudevents.UnknownFormatError, match="not an event format that is known"):
        cloudevents.from_record(record)
    got = cloudevents.from_record(record, unknown_formats="binary")
    assert got.get_datacontenttype() == "application/cloudevents+avro"
    again = cloudevents.to_record(got, key=record.key)
    assert (again.key, again.value, headers(again)) == (record.key, record.value, headers(record))
    with pytest.raises(DecodeError, match="id is missing"):
        cloudevents.from_record(Record(b"k", b"\x01", headers=[avro]), unknown_formats="binary")


@pytest.mark.parametrize("missing", ["id", "source", "type", "specversion"])
def test_3_without_a_mandatory_attribute_it_is_not_a_valid_event(missing: str) -> None:
    record = Record(value=b"", headers=without(BINARY, f"ce_{missing}"))
    with pytest.raises(DecodeError, match=f"{missing} is missing") as raised:
        cloudevents.from_record(record)
    assert raised.value.path == f"$.{missing}"
    members = {name: value for name, value in ATTRIBUTES.items() if name != missing}
    with pytest.raises(DecodeError, match=f"{missing} is missing"):
        cloudevents.from_record(Record(value=json.dumps(members).encode(), headers=STRUCTURED))


# --- 3.1 keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_3_1_the_users_key_is_the_record_key_by_default(mode: Any) -> None:
    made = event(partitionkey="p")
    assert cloudevents.to_record(made, mode=mode, key=b"mykey").key == b"mykey"
    assert cloudevents.to_record(made, mode=mode, key="mykey").key == b"mykey"
    assert cloudevents.to_record(made, mode=mode).key is None


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_3_1_the_opt_in_mapper_takes_partitionkey_if_present(mode: Any) -> None:
    made = event(partitionkey="pä")
    assert cloudevents.to_record(made, mode=mode, key_mapper=cloudevents.partitionkey).key == "pä".encode()
    absent = cloudevents.to_record(event(), mode=mode, key=b"own", key_mapper=cloudevents.partitionkey)
    assert absent.key == b"own"


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_3_1_a_mapper_does_not_change_the_event(mode: Any) -> None:
    made = event(b"x", partitionkey="p")
    before = copy.deepcopy(made)

    def hostile(one: BaseCloudEvent) -> str:
        one.get_attributes().clear()
        return "out of band"

    record = cloudevents.to_record(made, mode=mode, key_mapper=hostile)
    assert record.key == b"out of band"
    assert same(made, before)
    # The attribute is still sent, and the key has not become one.
    assert same(cloudevents.from_record(record), before)


def test_3_1_reading_a_record_makes_no_attribute_of_its_key() -> None:
    for record in (Record(b"k", None, headers=BINARY), Record(b"k", structured(), headers=STRUCTURED)):
        assert "partitionkey" not in cloudevents.from_record(record).get_attributes()


# --- 3.2 binary mode --------------------------------------------------------------------------------------------


def test_3_2_1_content_type_maps_to_datacontenttype_both_ways() -> None:
    value = 'text/plain; charset="utf-8"'
    record = cloudevents.to_record(event(b"x", datacontenttype=value))
    assert headers(record)["content-type"] == value.encode()
    assert "ce_datacontenttype" not in headers(record)
    assert cloudevents.from_record(record).get_datacontenttype() == value
    wrong = Record(value=b"x", headers=[*BINARY, ("ce_datacontenttype", b"text/plain")])
    with pytest.raises(DecodeError, match="must travel as content-type"):
        cloudevents.from_record(wrong)


def test_3_2_2_data_bytes_are_the_value() -> None:
    every = bytes(range(256))
    assert cloudevents.to_record(event(every)).value == every
    assert cloudevents.from_record(Record(value=every, headers=BINARY)).get_data() == every
    assert cloudevents.to_record(event("größe", datacontenttype="text/plain")).value == "größe".encode()


def test_3_2_2_no_data_is_no_value() -> None:
    assert cloudevents.to_record(event()).value is None
    assert cloudevents.from_record(Record(value=None, headers=BINARY)).get_data() is None
    # No bytes are data all the same.
    assert cloudevents.to_record(event(b"")).value == b""
    assert cloudevents.from_record(Record(value=b"", headers=BINARY)).get_data() == b""


def test_3_2_3_all_attributes_and_extensions_are_mapped_to_and_from_headers() -> None:
    made = event(b"x", subject="s", time=TIME, dataschema="urn:a", datacontenttype="a/b", ext1="e", n=5, flag=True)
    record = cloudevents.to_record(made)
    assert {name for name, _ in record.headers} == {
        "content-type",
        *(f"ce_{name}" for name in (*ATTRS, "subject", "time", "dataschema", "ext1", "n", "flag")),
    }
    got = cloudevents.from_record(record).get_attributes()
    assert got == {**made.get_attributes(), "n": "5", "flag": "true"}


def test_3_2_3_header_values_are_UTF_8() -> None:  # noqa: N802
    record = cloudevents.to_record(event(subject="Größe 🎈"))
    assert headers(record)["ce_subject"] == "Größe 🎈".encode()
    assert cloudevents.from_record(record).get_subject() == "Größe 🎈"
    with pytest.raises(DecodeError, match="header ce_subject is not UTF-8") as raised:
        cloudevents.from_record(Record(value=b"", headers=[*BINARY, ("ce_subject", b"\xff")]))
    assert raised.value.path == "$.headers.ce_subject"
    with pytest.raises(EncodeError, match="subject has characters that are not allowed"):
        cloudevents.to_record(event(subject="\ud800"))


def test_3_2_3_1_names_have_the_prefix_ce() -> None:
    got = headers(cloudevents.to_record(event(time=TIME)))
    assert (got["ce_time"], got["ce_id"], got["ce_specversion"]) == (b"2018-04-05T03:56:24Z", b"1234", b"1.0")
    with pytest.raises(DecodeError, match="header ce_Id is no name of an attribute"):
        cloudevents.from_record(Record(value=b"", headers=[*BINARY, ("ce_Id", b"1")]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, b"true"),
        (False, b"false"),
        (-5, b"-5"),
        (b"\x00\x01", b"AAE="),
        (datetime(2020, 1, 2, 3, 4, 5, 600, timezone(timedelta(hours=-2))), b"2020-01-02T03:04:05.000600-02:00"),
        (datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(seconds=1))), b"2020-01-02T03:04:04Z"),
    ],
)
def test_3_2_4_2_values_have_their_canonical_text(value: Any, text: bytes) -> None:
    assert headers(cloudevents.to_record(event(ext=value)))["ce_ext"] == text
    structured_ = json.loads(cloudevents.to_record(event(ext=value), mode="structured").value or b"")
    assert structured_["ext"] == (value if isinstance(value, int) else structured_["ext"])


@pytest.mark.parametrize("value", [1.5, 1 << 31, [], {}, datetime(2020, 1, 1)])
def test_3_2_4_2_other_values_have_none(value: Any) -> None:
    for mode in ("binary", "structured"):
        with pytest.raises(EncodeError, match="ext has no text"):
            cloudevents.to_record(event(ext=value), mode=mode)


def test_3_2_5_example() -> None:
    record = Record(
        b"mykey",
        b"\x06avro",
        headers=[
            ("ce_specversion", b"1.0"),
            ("ce_type", b"com.example.someevent"),
            ("ce_source", b"/mycontext/subcontext"),
            ("ce_id", b"1234-1234-1234"),
            ("ce_time", b"2018-04-05T03:56:24Z"),
            ("content-type", b"application/avro"),
        ],
    )
    got = cloudevents.from_record(record)
    assert got.get_attributes() == {
        "specversion": "1.0",
        "type": "com.example.someevent",
        "source": "/mycontext/subcontext",
        "id": "1234-1234-1234",
        "time": TIME,
        "datacontenttype": "application/avro",
    }
    assert got.get_data() == b"\x06avro"
    assert cloudevents.to_record(got, key=b"mykey") == record


# --- 3.3 structured mode ----------------------------------------------------------------------------------------


def test_3_3_1_content_type_is_the_media_type_of_the_event_format() -> None:
    record = cloudevents.to_record(event(b"x", datacontenttype="a/b"), mode="structured")
    assert record.headers == [("content-type", b"application/cloudevents+json; charset=UTF-8")]


def test_3_3_2_no_data_is_no_tombstone() -> None:
    record = cloudevents.to_record(event(), mode="structured")
    assert json.loads(record.value or b"") == ATTRS
    assert cloudevents.from_record(record).get_data() is None
    with pytest.raises(DecodeError, match="value is null: a structured event has a value"):
        cloudevents.from_record(Record(value=None, headers=STRUCTURED))


def test_3_3_3_the_headers_of_binary_mode_may_be_there_too() -> None:
    made = event({"a": 1}, datacontenttype="application/json")
    record = cloudevents.to_record(made, mode="structured", attribute_headers=True)
    assert headers(record) == {
        "content-type": b"application/cloudevents+json; charset=UTF-8",
        **{f"ce_{name}": value.encode() for name, value in ATTRS.items()},
    }
    assert same(cloudevents.from_record(record), made)


def test_3_3_4_example() -> None:
    value = b"""{
        "specversion" : "1.0",
        "type" : "com.example.someevent",
        "source" : "/mycontext/subcontext",
        "id" : "1234-1234-1234",
        "time" : "2018-04-05T03:56:24Z",
        "datacontenttype" : "application/xml",
        "data" : "<much wow=\\"xml\\"/>"
    }"""
    got = cloudevents.from_record(Record(b"mykey", value, headers=STRUCTURED))
    assert got.get_type() == "com.example.someevent"
    assert got.get_time() == TIME
    assert got.get_data() == '<much wow="xml"/>'
    again = cloudevents.to_record(got, mode="structured", key=b"mykey")
    assert json.loads(again.value or b"") == json.loads(value)
    assert (again.key, again.headers) == (b"mykey", STRUCTURED)


# --- the JSON event format --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "content_type", "value"),
    [
        (
            {"datacontenttype": "application/vnd.apache.thrift.binary", "data_base64": "AAEC/w=="},
            b"application/vnd.apache.thrift.binary",
            b"\x00\x01\x02\xff",
        ),
        (
            {"datacontenttype": "application/xml", "data": '<much wow="xml"/>', "unsetextension": None},
            b"application/xml",
            b'<much wow="xml"/>',
        ),
        (
            {"datacontenttype": "application/json", "data": {"appinfoA": "abc", "appinfoB": 123, "appinfoC": True}},
            b"application/json",
            b'{"appinfoA":"abc","appinfoB":123,"appinfoC":true}',
        ),
        ({"subject": None, "data": "I'm just a string"}, b"application/json", b'"I\'m just a string"'),
    ],
    ids=["binary", "xml", "json", "implied json"],
)
def test_JSON_format_3_2_examples_re_encoded_in_binary_mode(  # noqa: N802
    members: dict[str, Any], content_type: bytes, value: bytes
) -> None:
    more = {"time": "2018-04-05T17:31:00Z", "comexampleextension1": "value", "comexampleothervalue": 5}
    got = cloudevents.from_record(Record(value=structured(**more, **members), headers=STRUCTURED))
    binary = cloudevents.to_record(got)
    assert binary.value == value
    assert headers(binary) == {
        **{f"ce_{name}": text.encode() for name, text in ATTRIBUTES.items()},
        "ce_time": b"2018-04-05T17:31:00Z",
        "ce_comexampleextension1": b"value",
        "ce_comexampleothervalue": b"5",
        "content-type": content_type,
    }
    again = json.loads(cloudevents.to_record(got, mode="structured").value or b"")
    wanted = {**ATTRIBUTES, **more, **{name: one for name, one in members.items() if one is not None}}
    assert again == wanted


def test_JSON_format_3_1_an_explicit_null_is_data() -> None:  # noqa: N802
    got = cloudevents.from_record(Record(value=structured(data=None), headers=STRUCTURED))
    assert got.get_data() == b"null"
    assert cloudevents.to_record(got).value == b"null"


@pytest.mark.parametrize("declared", ["Application/JSON", "image/x+json", "application/json ; a=b"])
def test_JSON_format_3_1_data_of_every_JSON_type_is_written(declared: str) -> None:  # noqa: N802
    record = cloudevents.to_record(event({"a": 1}, datacontenttype=declared), mode="structured")
    found = cloudevents.row(record.headers, record.value)
    assert found is not None
    assert (found["error"], json.loads(found["data"])) == (None, {"a": 1})


@pytest.mark.parametrize(
    ("data", "declared"),
    [({"a": 1}, "text/plain"), ({"a": float("nan")}, None), (object(), "application/json"), ("\ud800", "text/plain")],
)
def test_JSON_format_3_1_data_that_cannot_be_written_is_refused(data: Any, declared: str | None) -> None:  # noqa: N802
    more = {} if declared is None else {"datacontenttype": declared}
    for mode in ("binary", "structured"):
        with pytest.raises(EncodeError, match="data"):
            cloudevents.to_record(event(data, **more), mode=mode)


def test_writing_an_event_that_is_not_valid_is_refused() -> None:
    made = event()
    for name, value, said in (
        ("source", "a b", "source is not a URI-reference"),
        ("Name", "x", "attribute Name is no name of an attribute"),
        ("data", "x", "data is a reserved name"),
        ("specversion", "0.3", "specversion is not 1.0"),
    ):
        wrong = copy.deepcopy(made)
        wrong.get_attributes()[name] = value
        with pytest.raises(EncodeError, match=said):
            cloudevents.to_record(wrong)
    for name in ("content-type", "ce_x"):
        with pytest.raises(EncodeError, match="is the event's own"):
            cloudevents.to_record(made, headers=[(name, b"x")])


# --- the SDK ----------------------------------------------------------------------------------------------------


EVENTS = [
    event({"a": ["ä", 1, None]}, datacontenttype="application/json", time=TIME, ext="x"),
    event("text", datacontenttype="text/plain", subject="s"),
    event(b"\x00\xff", datacontenttype="application/octet-stream", partitionkey="p"),
    event(time=TIME),
]


@pytest.mark.parametrize("made", EVENTS)
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_events_written_by_the_SDK_decode_here(made: CloudEvent, mode: str) -> None:  # noqa: N802
    message = sdk.to_binary_event(made) if mode == "binary" else sdk.to_structured_event(made)
    got = cloudevents.from_record(Record(None, message.value, headers=message.headers.items()))
    assert got.get_attributes() == made.get_attributes()
    data = got.get_data()
    if mode == "binary":
        data = sdk.JSONFormat().read_data(data or b"", made.get_datacontenttype())  # type: ignore[arg-type]
    assert data == made.get_data()


@pytest.mark.parametrize("made", EVENTS)
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_events_written_here_decode_in_the_SDK(made: CloudEvent, mode: Any) -> None:  # noqa: N802
    record = cloudevents.to_record(made, mode=mode)
    message = sdk.KafkaMessage({name: value or b"" for name, value in record.headers}, None, record.value or b"")
    got = sdk.from_kafka_event(message)
    # The SDK gives the current time to what has none.
    invented = {} if "time" in made.get_attributes() else {"time": got.get_time()}
    assert got.get_attributes() == made.get_attributes() | invented
    assert got.get_data() == made.get_data()


def test_reading_invents_no_id_and_no_time() -> None:
    assert cloudevents.from_record(Record(value=None, headers=BINARY)).get_time() is None


def test_without_the_extra_objects_say_what_to_install_and_rows_work(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cloudevents.core.exceptions", "cloudevents.core.v1.event"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"kwire\[events\]"):
        cloudevents.from_record(Record(value=b"", headers=BINARY))
    found = cloudevents.row(BINARY, b"x")
    assert found is not None
    assert found["error"] is None


# --- everything that can be wrong, as rows -----------------------------------------------------------------------

ERRORS = {
    "no event": NOT_AN_EVENT,
    "no headers": NOT_AN_EVENT,
    "no value": NOT_AN_EVENT,
    "old format, not an event": NOT_AN_EVENT,
    "old format, broken": NOT_JSON,
    "case of a header name": NOT_AN_EVENT,
    "upper-case attribute": "; ".join(
        f"header ce_{name} is no name of an attribute" for name in ("Subject", "sub-ject", "")
    ),
    "avro": UNKNOWN,
    "avro without headers": UNKNOWN,
    "avro with bad headers": UNKNOWN,
    "no format": UNKNOWN,
    "a longer name": UNKNOWN,
    "batch": "content-type is batch content mode, which Kafka's binding does not have",
    "content type twice": "header content-type appears more than once",
    "structured twice": "header content-type appears more than once",
    "second content type": NOT_AN_EVENT,
    "content type null": "header content-type is null",
    "content type not UTF-8": "header content-type is not UTF-8",
    "structured not UTF-8": "header content-type is not UTF-8",
    "content type is none": "datacontenttype is not a media type",
    "content type line break": "datacontenttype is not a media type",
    "content type empty": "datacontenttype is empty",
    "header null": "header ce_subject is null",
    "header empty": "subject is empty",
    "header not UTF-8": "header ce_subject is not UTF-8; header ce_ext is not UTF-8",
    "header twice": "header ce_id appears more than once",
    "id null": "header ce_id is null",
    "id empty": "id is empty",
    "nothing but one header": "id is missing; source is missing; type is missing; specversion is missing",
    "data as header": "header ce_data is a reserved name; header ce_datacontenttype must travel as content-type",
    "version": "specversion is not 1.0",
    "source with blank": "source is not a URI-reference",
    "source with bad percent": "source is not a URI-reference",
    "dataschema relative": "dataschema is not a URI",
    "dataschema bad percent": "dataschema is not a URI",
    "control characters": "; ".join(f"{name} has characters that are not allowed" for name in ("subject", "a", "b")),
    "control character in type": "type has characters that are not allowed",
    "structured with attribute headers": "; ".join(
        f"header ce_{name} is not what the event has" for name in ("id", "source", "type")
    ),
    "no value, structured": "value is null: a structured event has a value",
    **dict.fromkeys(
        (
            "no JSON",
            "empty value, structured",
            "an array",
            "a number",
            "null",
            "not UTF-8, structured",
            "trailing bytes",
            "two values",
            "single quotes",
            "NaN",
            "comma",
            "line break in a string",
            "half a surrogate pair",
            "name twice",
            "name twice in data",
            "deep",
        ),
        NOT_JSON,
    ),
    "nothing in it": "id is missing; source is missing; type is missing; specversion is missing",
    "required null": "id is missing",
    "id a number": "id is not a string",
    "subject an object": "subject is not a string",
    "name with capital": "; ".join(f"member {name} is no name of an attribute" for name in ("Extension", "", "a-b")),
    "extensions wrong": "; ".join(f"{name} {NO_VALUE}" for name in ("i", "f", "g", "o", "a", "big")),
    "data object, XML": "data is not a string, although datacontenttype is not JSON",
    "data base64 wrong": "data_base64 is not base64",
    "data base64 a number": "data_base64 is not base64",
    "data base64 line break": "data_base64 is not base64",
    "data both": "value has both data and data_base64",
    "data type wrong": "datacontenttype is not a string",
}
VALID_TIMES = TIMES[:9]
for _text in TIMES:
    _error = None if _text in VALID_TIMES else "time is not an RFC 3339 timestamp" if _text else "time is empty"
    if _error is not None:
        ERRORS |= {f"time {_text!r}": _error, f"JSON time {_text!r}": _error}


def test_numbers_beyond_a_float_are_no_json() -> None:
    text = b'{"specversion":"1.0","id":"1","source":"/a","type":"t","data":%s}'
    headers = [("content-type", b"application/cloudevents+json")]
    for number, error in ((b"1e308", None), (b"1e400", NOT_JSON), (b"[-1e999]", NOT_JSON), (b"9" * 400, None)):
        row = cloudevents.row(headers, text % number)
        assert row is not None
        assert row["error"] == error


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (b"[" * 500 + b"]" * 500, True),
        (b"[" * 501 + b"]" * 501, False),
        (b'{"a":' * 501 + b"1" + b"}" * 501, False),
        (b"[" + b"[]," * 5_000 + b"[]]", True),
        (b'["' + b"[" * 5_000 + b'\\"[["]', True),
        (b'["' + b"[" * 600 + b'\\"' * 200_000, False),
    ],
)
def test_json_is_read_to_the_same_depth_everywhere(text: bytes, read: bool) -> None:
    assert (cloudevents.parse_json(text) is not None) == read


@pytest.mark.parametrize("sample", SAMPLES, ids=[name for name, *_ in SAMPLES])
def test_a_row_says_exactly_what_is_wrong(sample: tuple[str, Any, bytes | None, int]) -> None:
    name, given, value, magic = sample
    found = cloudevents.row(given, value, magic=magic)
    error = NOT_AN_EVENT if found is None else found["error"]
    assert error == ERRORS.get(name)
    record = Record(value=value, headers=given)
    if error is None:
        got = cloudevents.from_record(record, magic=magic)
        assert found is not None
        assert (got.get_id(), got.get_source(), got.get_time()) == (found["id"], found["source"], found["time"])
        # A valid event can be written in every mode, and means the same.
        for mode in ("binary", "structured"):
            again = cloudevents.to_record(got, mode=mode)
            row = cloudevents.row(again.headers, again.value)
            assert row is not None
            implied = {"datacontenttype": row["datacontenttype"]} if found["datacontenttype"] is None else {}
            plain = {"data": row["data"], "mode": mode}
            assert row == {**found, **implied, **plain}
            assert meaning(row["data"]) == meaning(found["data"])
    else:
        with pytest.raises(DecodeError):
            cloudevents.from_record(record, magic=magic)


def meaning(data: bytes | None) -> Any:
    """Data as JSON where it is some: blanks and the order of names mean nothing."""
    try:
        return json.loads(data or b"")
    except ValueError:
        return data


def test_all_errors_are_those_of_samples() -> None:
    assert set(ERRORS) <= {name for name, *_ in SAMPLES}


def test_what_is_wrong_does_not_hide_what_is_right() -> None:
    found = cloudevents.row([*BINARY, ("ce_time", b"yesterday"), ("ce_ext", b"x")], b"data")
    assert found == {
        "id": "1234-1234-1234",
        "source": "/mycontext/subcontext",
        "type": "com.example.someevent",
        "specversion": "1.0",
        "subject": None,
        "time": None,
        "datacontenttype": None,
        "dataschema": None,
        "data": b"data",
        "extensions": {"ext": "x"},
        "mode": "binary",
        "error": "time is not an RFC 3339 timestamp",
    }


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2018-04-05T03:56:24.123456789+05:30", datetime(2018, 4, 4, 22, 26, 24, 123456, UTC)),
        ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, tzinfo=UTC)),
        ("2016-12-31T23:59:60.25Z", datetime(2017, 1, 1, 0, 0, 0, 250_000, UTC)),
        ("2018-04-05t03:56:24-23:59", datetime(2018, 4, 6, 3, 55, 24, tzinfo=UTC)),
    ],
)
def test_timestamps(text: str, instant: datetime) -> None:
    assert cloudevents.instant(text) == instant


def test_the_row_of_binary_data_in_JSON_has_the_bytes() -> None:  # noqa: N802
    found = cloudevents.row(STRUCTURED, structured(data_base64=base64.b64encode(b"\x00").decode()))
    assert found is not None
    assert found["data"] == b"\x00"


# --- headers beside the event, charsets, parameters ----------------------------------------------------------------


def problems(content_type: str, value: bytes, *beside: tuple[str, bytes | None]) -> str | None:
    found = cloudevents.row([("content-type", content_type.encode()), *beside], value)
    assert found is not None
    error: str | None = found["error"]
    return error


def test_headers_that_say_otherwise_than_a_structured_event_are_told() -> None:
    members = {"specversion": "1.0", "type": "t", "source": "/s", "id": "1", "time": "2018-04-05T03:56:24Z", "n": 3}
    value = json.dumps(members).encode()
    kind = "application/cloudevents+json"
    same_time = ("ce_time", b"2018-04-05T05:56:24.000+02:00")
    assert problems(kind, value, ("ce_id", b"1"), ("ce_n", b"3"), same_time, ("ce_specversion", b"1.0")) is None
    assert problems(kind, value, ("ce_id", b"2")) == "header ce_id is not what the event has"
    assert problems(kind, value, ("ce_n", b"4")) == "header ce_n is not what the event has"
    assert problems(kind, value, ("ce_time", b"2018-04-05T03:56:25Z")) == "header ce_time is not what the event has"
    assert problems(kind, value, ("ce_more", b"x")) == "header ce_more is not in the event"
    assert problems(kind, value, ("ce_id", b"1"), ("ce_id", b"1")) == "header ce_id appears more than once"
    # Of a value that is no event nothing can be said otherwise.
    assert problems(kind, b"[]", ("ce_id", b"2")) == NOT_JSON
    with pytest.raises(DecodeError, match="ce_id is not what the event has"):
        cloudevents.from_record(Record(value=value, headers=[("content-type", kind.encode()), ("ce_id", b"2")]))


@pytest.mark.parametrize(
    "name", ["ISO-8859-1", "windows-1252", "utf-16", "UTF-16LE", "Shift_JIS", "koi8-u", "US-ASCII"]
)
def test_a_structured_event_may_be_in_a_charset_that_python_knows(name: str) -> None:
    text = {"Shift_JIS": "イベント", "koi8-u": "подія", "US-ASCII": "event"}.get(name, "événement")
    members = {"specversion": "1.0", "type": "t", "source": "/s", "id": text, "data": text}
    value = json.dumps(members, ensure_ascii=False).encode(name)
    for parameter in (f"charset={name}", f'a="b;charset=x\\"" ; Charset="{name}"'):
        found = cloudevents.row([("content-type", f"application/cloudevents+json;{parameter}".encode())], value)
        assert found is not None
        assert (found["error"], found["id"]) == (None, text)


@pytest.mark.parametrize(
    "name", ["x-unknown", "base64", "zlib", "rot13", "punycode", "idna", "unicode_escape", "utf-7", "os", "../os", "ä"]
)
def test_a_charset_that_is_none_is_named_and_no_codec_is_looked_up(name: str) -> None:

    before = set(sys.modules)
    found = problems(f'application/cloudevents+json; charset="{name}"', b"{}")
    assert found is not None
    assert found.startswith(f"value is in a charset that is not known: {name}")
    assert {one for one in set(sys.modules) - before if one.startswith("encodings")} == set()


def test_a_value_that_is_not_in_its_charset_and_long_names_are_told() -> None:
    kind = "application/cloudevents+json; charset="
    assert problems(kind + "utf-16", b"{}x") == "value is not utf-16"
    assert problems(kind + "cp1252", b"\x81") == "value is not cp1252"
    found = problems(kind + "x" * 10_000, b"{}") or ""
    assert len(found.partition(";")[0]) < 100


def test_the_text_of_data_is_in_the_charset_of_its_type() -> None:
    members = {"specversion": "1.0", "type": "t", "source": "/s", "id": "1", "data": "é"}
    for charset, expected in (("iso-8859-1", b"\xe9"), ("utf-8", b"\xc3\xa9"), ("ascii", b"\xc3\xa9")):
        value = json.dumps({**members, "datacontenttype": f"text/plain; charset={charset}"}).encode()
        found = cloudevents.row(STRUCTURED, value)
        assert found is not None
        assert found["data"] == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a/b", {}),
        ("a/b;", {}),
        ("a/b ; ;; c=d", {"c": "d"}),
        ('a/b; C="d;e=f" ; g=h', {"c": "d;e=f", "g": "h"}),
        (r'a/b; c="\"\\"', {"c": '"\\'}),
        ('a/b; c=""', {"c": ""}),
        ("a/b; c=d; C=e", {"c": "d"}),
        ("a/b; c", None),
        ("a/b; c=", None),
        ("a/b; c =d", None),
        ('a/b; c="d', None),
        ("a/b; c=d e", None),
        ("a/b, c", None),
        ("a", None),
        ("a/b;" + " " * 50_000 + "=", None),
        ("a/b" + "; \t" * 50_000 + "=", None),
    ],
)
def test_parameters_are_those_of_rfc_9110(text: str, found: dict[str, str] | None) -> None:
    assert media.parameters(text) == found
