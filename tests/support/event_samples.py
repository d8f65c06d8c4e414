"""Records with and without CloudEvents, valid and not, on which the object layer and Spark must agree.

Each is (name, headers, value, magic).
"""

from __future__ import annotations

import json
from typing import Any

Headers = list[tuple[str, bytes | None]]

BINARY: Headers = [
    ("ce_specversion", b"1.0"),
    ("ce_type", b"com.example.someevent"),
    ("ce_source", b"/mycontext/subcontext"),
    ("ce_id", b"1234-1234-1234"),
]

ATTRIBUTES: dict[str, Any] = {
    "specversion": "1.0",
    "type": "com.example.someevent",
    "source": "/mycontext",
    "id": "A234-1234-1234",
}

STRUCTURED: Headers = [("content-type", b"application/cloudevents+json; charset=UTF-8")]

TIMES = (
    "2018-04-05T03:56:24Z",
    "2018-04-05t03:56:24z",
    "2018-04-05T03:56:24.123456789+05:30",
    "2018-04-05T03:56:24.5-00:00",
    "2018-04-05T03:56:24-23:59",
    "2016-12-31T23:59:60Z",
    "2016-12-31T23:59:60.25Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    # no timestamps from here
    "0001-01-01T00:00:00+00:01",
    "9999-12-31T23:59:59-00:01",
    "0000-01-01T00:00:00Z",
    "2018-02-30T00:00:00Z",
    "2018-04-05T24:00:00Z",
    "2018-04-05T03:56:61Z",
    "2018-04-05T03:56:24+24:00",
    "2018-04-05T03:56:24+05:60",
    "2018-04-05 03:56:24Z",
    "2018-04-05T03:56:24",
    "2018-04-05T03:56:24.Z",
    "2018-4-5T03:56:24Z",
    "2018-04-05T03:56:24Z\n",
    "٢٠١٨-04-05T03:56:24Z",
    "yesterday",
    "",
)


def without(headers: Headers, *names: str) -> Headers:
    return [one for one in headers if one[0] not in names]


def structured(value: Any = None, **members: Any) -> bytes:
    """The JSON of an event: the usual attributes, changed and extended by ``members``."""
    return json.dumps(ATTRIBUTES | members if value is None else value).encode()


SAMPLES: list[tuple[str, Headers, bytes | None, int]] = [
    ("binary", [*BINARY, ("content-type", b"application/avro")], b"\x00avro", 2),
    ("tombstone", BINARY, None, 2),
    ("empty data", BINARY, b"", 2),
    (
        "all attributes",
        [
            *BINARY,
            ("ce_subject", "Größe 🎈".encode()),
            ("ce_dataschema", b"https://example.com/a%20b?c#d"),
            ("ce_partitionkey", b"k"),
            ("ce_flag", b"true"),
            ("ce_empty1", b""),
            ("x-other", b"\xff"),
            ("content-type", b'text/plain; charset="utf-8"'),
        ],
        b"x",
        2,
    ),
    ("no event", [("x", b"y"), ("content-type", b"application/json")], b"{}", 2),
    ("no headers", [], b'{"specversion":"1.0"}', 2),
    ("no value", [], None, 1),
    ("old format", [], structured(), 1),
    ("old format, blanks", [], b" \r\n" + structured(), 0),
    ("old format, not an event", [], b'{"a":1}', 1),
    ("old format, broken", [], b'{"specversion":"1.0"', 1),
    ("case of the media type", [("content-type", b"Application/CloudEvents+JSON;CharSet=utf8")], structured(data=1), 2),
    ("blank before the media type", [("content-type", b" \tapplication/cloudevents+json ; a=b")], structured(), 2),
    ("case of a header name", [("Content-Type", b"application/cloudevents+json")], structured(), 2),
    ("case of an attribute header", [*BINARY, ("CE_subject", b"s")], b"", 2),
    ("upper-case attribute", [*BINARY, ("ce_Subject", b"s"), ("ce_sub-ject", b"s"), ("ce_", b"s")], b"", 2),
    ("structured with attribute headers", [*STRUCTURED, *BINARY], structured(type="other"), 2),
    ("avro", [("content-type", b"application/cloudevents+avro"), *BINARY], b"\x01\xff", 2),
    ("avro without headers", [("content-type", b"application/cloudevents+avro")], b"\x01", 2),
    ("avro with bad headers", [("content-type", b"application/cloudevents+avro"), ("ce_ID", b"\xff")], None, 2),
    ("no format", [("content-type", b"application/cloudevents")], structured(), 2),
    ("a longer name", [("content-type", b"application/cloudeventsx+json")], structured(), 2),
    ("batch", [("content-type", b"application/cloudevents-batch+json; charset=UTF-8")], structured([ATTRIBUTES]), 2),
    ("content type twice", [*BINARY, ("content-type", b"a/b"), ("content-type", b"c/d")], b"", 2),
    ("structured twice", [*STRUCTURED, *STRUCTURED, *STRUCTURED], structured(), 2),
    ("second content type", [("content-type", b"a/b"), *STRUCTURED], structured(), 2),
    ("content type null", [*BINARY, ("content-type", None)], b"", 2),
    ("content type not UTF-8", [*BINARY, ("content-type", b"text/\xff")], b"", 2),
    ("structured not UTF-8", [("content-type", b"application/cloudevents+json;\xff")], structured(), 2),
    ("content type is none", [*BINARY, ("content-type", b"json")], b"", 2),
    ("content type line break", [*BINARY, ("content-type", b"text/plain\n")], b"", 2),
    ("content type empty", [*BINARY, ("content-type", b"")], b"", 2),
    ("header null", [*BINARY, ("ce_subject", None)], b"", 2),
    ("header empty", [*BINARY, ("ce_subject", b"")], b"", 2),
    ("header not UTF-8", [*BINARY, ("ce_subject", b"\xc3\x28"), ("ce_ext", b"\xff")], b"", 2),
    ("header twice", [*BINARY, ("ce_id", b"2"), ("ce_id", None), ("ce_id", b"\xff"), ("ce_x", b"1")], b"", 2),
    ("id null", [*without(BINARY, "ce_id"), ("ce_id", None)], b"", 2),
    ("id empty", [*without(BINARY, "ce_id"), ("ce_id", b"")], b"", 2),
    ("nothing but one header", [("ce_x", b"1")], b"", 2),
    ("data as header", [*BINARY, ("ce_data", b"x"), ("ce_datacontenttype", b"a/b")], b"", 2),
    ("version", [*without(BINARY, "ce_specversion"), ("ce_specversion", b"0.3")], b"", 2),
    ("source with blank", [*without(BINARY, "ce_source"), ("ce_source", b"/a b")], b"", 2),
    ("source with bad percent", [*without(BINARY, "ce_source"), ("ce_source", b"/a%2")], b"", 2),
    ("long source", [*without(BINARY, "ce_source"), ("ce_source", b"/a%20" * 20_000)], b"", 2),
    ("dataschema relative", [*BINARY, ("ce_dataschema", b"/relative")], b"", 2),
    ("dataschema bad percent", [*BINARY, ("ce_dataschema", b"urn:%zz")], b"", 2),
    (
        "control characters",
        [*BINARY, ("ce_subject", b"a\x00b"), ("ce_b", b"\x7f"), ("ce_a", "\ufdd0".encode())],
        b"",
        2,
    ),
    ("control character in type", [*without(BINARY, "ce_type"), ("ce_type", b"a\nb")], b"", 2),
    *((f"time {text!r}", [*BINARY, ("ce_time", text.encode())], b"", 2) for text in TIMES),
    *((f"JSON time {text!r}", STRUCTURED, structured(time=text), 2) for text in TIMES),
    ("no JSON", STRUCTURED, b"not JSON", 2),
    ("no value, structured", STRUCTURED, None, 2),
    ("empty value, structured", STRUCTURED, b"", 2),
    ("an array", STRUCTURED, b"[1]", 2),
    ("a number", STRUCTURED, b"1", 2),
    ("null", STRUCTURED, b"null", 2),
    ("not UTF-8, structured", STRUCTURED, b'{"id":"\xff"}', 2),
    ("trailing bytes", STRUCTURED, structured() + b" x", 2),
    ("two values", STRUCTURED, structured() + b"," + structured(), 2),
    ("single quotes", STRUCTURED, b"{'id':'1'}", 2),
    ("NaN", STRUCTURED, b'{"id":"1","a":NaN}', 2),
    ("comma", STRUCTURED, b'{"id":"1",}', 2),
    ("line break in a string", STRUCTURED, b'{"id":"1\n2"}', 2),
    ("half a surrogate pair", STRUCTURED, rb'{"id":"\ud800"}', 2),
    ("surrogate pair", STRUCTURED, structured(subject="🎈"), 2),
    ("name twice", STRUCTURED, structured()[:-1] + b',"id":"2"}', 2),
    ("name twice in data", STRUCTURED, structured()[:-1] + b',"data":{"a":1,"a":2}}', 2),
    ("deep", STRUCTURED, structured()[:-1] + b',"data":' + b"[" * 5_000 + b"]" * 5_000 + b"}", 2),
    ("nothing in it", STRUCTURED, b"{}", 2),
    ("nulls", STRUCTURED, structured(subject=None, time=None, unset=None, data_base64=None), 2),
    ("required null", STRUCTURED, structured(id=None), 2),
    ("id a number", STRUCTURED, structured(id=5), 2),
    ("subject an object", STRUCTURED, structured(subject={}), 2),
    ("name with capital", STRUCTURED, structured(**{"Extension": "x", "": "y", "a-b": "z"}), 2),
    ("extensions", STRUCTURED, structured(i=5, n=-2147483648, t=True, f=False, s="x", z=""), 2),
    ("extensions wrong", STRUCTURED, structured(i=2147483648, f=1.5, g=5.0, o={}, a=[], big=10**30), 2),
    ("data object", STRUCTURED, structured(data={"a": [1, None, "x"]}, datacontenttype="application/json"), 2),
    ("data +json", STRUCTURED, structured(data={"a": 1}, datacontenttype="Image/X+JSON ; a=b"), 2),
    ("data string", STRUCTURED, structured(data="I'm just a string"), 2),
    ("data null", STRUCTURED, structured(data=None), 2),
    ("data number", STRUCTURED, structured(data=12345678901234567890), 2),
    ("data false", STRUCTURED, structured(data=False), 2),
    ("data XML", STRUCTURED, structured(data='<much wow="xml"/>', datacontenttype="application/xml"), 2),
    ("data empty string", STRUCTURED, structured(data="", datacontenttype="text/plain"), 2),
    ("data null, XML", STRUCTURED, structured(data=None, datacontenttype="application/xml"), 2),
    ("data object, XML", STRUCTURED, structured(data={"a": 1}, datacontenttype="application/xml"), 2),
    ("data base64", STRUCTURED, structured(data_base64="AAEC/w==", datacontenttype="application/x"), 2),
    ("data base64 empty", STRUCTURED, structured(data_base64=""), 2),
    ("data base64 wrong", STRUCTURED, structured(data_base64="AAEC/w="), 2),
    ("data base64 a number", STRUCTURED, structured(data_base64=5), 2),
    ("data base64 line break", STRUCTURED, structured(data_base64="AAEC\n"), 2),
    ("data both", STRUCTURED, structured(data="a", data_base64="AAEC"), 2),
    ("data type wrong", STRUCTURED, structured(data={"a": 1}, datacontenttype=5), 2),
]
