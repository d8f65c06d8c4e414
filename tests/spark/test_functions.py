"""The column functions give what the codec gives, and a row for every payload, however bad."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from canaries import CASES, IN_RECORDS, canary, capture_of, found, metadata_records
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql

import kwire
import kwire.messages
import kwire.spark
from kwire.protocol.describe import to_json
from kwire.records import Record, encode

METADATA = kwire.encode_request(
    kwire.messages.MetadataRequest(topics=[kwire.messages.MetadataRequest.MetadataRequestTopic(name="orders")]),
    api_version=9,
    correlation_id=7,
    client_id="billing",
)
VERSIONS = kwire.encode_response(
    kwire.messages.ApiVersionsResponse(
        api_keys=[kwire.messages.ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4)]
    ),
    api_version=3,
    correlation_id=8,
)


def binary(spark: SparkSession, *payloads: bytes | None) -> DataFrame:
    """A column ``payload``, in order of a column ``i``."""
    rows = list(enumerate(payloads))
    return spark.createDataFrame(rows, "i int, payload binary")


def collect(frame: DataFrame, function: Any) -> list[Any]:
    """The function's result for each payload, in order."""
    return [row.made for row in frame.select("i", function.alias("made")).orderBy("i").collect()]


def test_decode_request_equals_the_codec(spark: SparkSession) -> None:
    (made,) = collect(binary(spark, METADATA), kwire.spark.decode_request("payload"))
    request = kwire.decode_request(METADATA)
    assert made == Row(
        api_key=3,
        api_name="Metadata",
        api_version=9,
        correlation_id=7,
        client_id="billing",
        body=to_json(request.body, 9),
        status="ok",
        error=None,
    )
    assert json.loads(made.body)["topics"][0]["name"] == "orders"


@pytest.mark.wide
def test_decode_request_keeps_a_row_for_every_payload(spark: SparkSession) -> None:
    payloads = [None, b"", b"\x00", METADATA[:-3], METADATA + b"!", b"\x70\x00" + METADATA[2:], METADATA]
    made = collect(binary(spark, *payloads), kwire.spark.decode_request("payload"))
    assert made[0] is None
    assert [row.status for row in made[1:]] == ["malformed", "malformed", "malformed", "trailing", "unsupported", "ok"]
    assert (made[4].body, made[4].error) == (made[6].body, "bytes after the end of the body: 1")
    # Where the header can be read, its fields are there.
    assert (made[3].api_name, made[3].correlation_id, made[3].client_id, made[3].body) == (
        "Metadata",
        7,
        "billing",
        None,
    )
    with pytest.raises(kwire.DecodeError) as caught:
        kwire.decode_request(METADATA[:-3])
    assert made[3].error == str(caught.value)
    assert (made[5].api_key, made[5].api_name, made[5].api_version) == (0x7000, None, 9)
    assert made[6].error is None


@pytest.mark.wide
def test_decode_request_checks_and_drops_the_size_where_payloads_have_one(spark: SparkSession) -> None:
    sized = struct.pack(">i", len(METADATA)) + METADATA
    made = collect(binary(spark, sized, sized + b"!", b"\0\0", None), kwire.spark.decode_request("payload", sized=True))
    assert [row and row.status for row in made] == ["ok", "malformed", "malformed", None]
    assert made[0].body == to_json(kwire.decode_request(METADATA).body, 9)
    assert made[1].error == f"size $ at byte 0: the size says {len(METADATA)} bytes, {len(METADATA) + 1} follow"


@pytest.mark.wide
def test_headers_alone_are_those_of_whole_requests(spark: SparkSession) -> None:
    payloads = [None, b"", METADATA[:5], METADATA, METADATA[:-3], b"\x70\x00" + METADATA[2:], METADATA + b"!"]
    whole = collect(binary(spark, *payloads), kwire.spark.decode_request("payload"))
    alone = collect(binary(spark, *payloads), kwire.spark.decode_request("payload", body=False))
    for one, other in zip(whole, alone, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            same = [name for name in other.asDict() if name not in ("status", "error")]
            assert [one[name] for name in same] == [other[name] for name in same]
            assert "body" not in other
    # What follows the header is not looked at.
    assert [row and row.status for row in alone] == [None, "malformed", "malformed", "ok", "ok", "unsupported", "ok"]
    sized = struct.pack(">i", len(METADATA)) + METADATA
    made = collect(
        binary(spark, sized, sized + b"!", b"\0\0"), kwire.spark.decode_request("payload", sized=True, body=False)
    )
    assert [row.status for row in made] == ["ok", "malformed", "malformed"]
    assert made[0].client_id == "billing"


def test_functions_have_names_in_sql(spark: SparkSession) -> None:
    binary(spark, METADATA).createOrReplaceTempView("payloads")
    (row,) = spark.sql(
        "SELECT kwire_decode_request(payload) AS r, kwire_decode_request_header(payload) AS h, kwire_api_name(3) AS n, "
        "kwire_api_name(-1) AS none, kwire_decode_response(X'0000000800', 0, 0).status AS s FROM payloads"
    ).collect()
    assert (row.r.body, row.h.client_id, row.n, row.none) == (
        to_json(kwire.decode_request(METADATA).body, 9),
        "billing",
        "Metadata",
        None,
    )
    assert row.s == "malformed"
    assert spark.sql("SELECT inline(kwire_decode_records(payload)) FROM payloads").columns[:2] == [
        "offset",
        "timestamp",
    ]
    assert spark.range(1).select(kwire.spark.api_name(sql.lit(18)).alias("n")).collect() == [Row(n="ApiVersions")]


@pytest.mark.wide
def test_null_without_a_type_is_null(spark: SparkSession) -> None:
    (row,) = spark.sql(
        "SELECT kwire_decode_request(NULL) AS a, kwire_decode_request_header(NULL) AS b, "
        "kwire_decode_response(NULL, 3, 1) AS c, kwire_decode_records(NULL) AS d, kwire_api_name(NULL) AS e"
    ).collect()
    assert list(row) == [None] * 5


def test_decode_response_takes_api_and_version_from_columns_or_numbers(spark: SparkSession) -> None:
    frame = binary(spark, VERSIONS).withColumns({"key": sql.lit(18), "version": sql.lit("3")})
    expected = kwire.decode_response(VERSIONS, api_key=18, api_version=3)
    for function in (
        kwire.spark.decode_response("payload", "key", "version"),
        kwire.spark.decode_response("payload", sql.col("key"), 3),
        kwire.spark.decode_response("payload", 18, 3),
    ):
        (made,) = collect(frame, function)
        assert made == Row(
            api_key=18,
            api_name="ApiVersions",
            api_version=3,
            correlation_id=8,
            body=to_json(expected.body, 3),
            status="ok",
            error=None,
        )


@pytest.mark.wide
def test_decode_response_reads_the_v0_answer_of_a_broker_that_does_not_know_the_version(spark: SparkSession) -> None:
    old = struct.pack(">ihi", 8, 35, 0)
    (made,) = collect(binary(spark, old), kwire.spark.decode_response("payload", 18, 4))
    assert (made.status, made.api_version, json.loads(made.body)["error_code"]) == ("ok", 0, "UNSUPPORTED_VERSION")
    (longer,) = collect(binary(spark, old + b"!"), kwire.spark.decode_response("payload", 18, 4))
    assert (longer.status, longer.api_version, longer.body) == ("trailing", 0, made.body)


@pytest.mark.wide
def test_decode_response_says_what_is_not_known(spark: SparkSession) -> None:
    frame = binary(spark, VERSIONS).withColumn("nothing", sql.lit(None).cast("int"))
    (unknown,) = collect(frame, kwire.spark.decode_response("payload", "nothing", "nothing"))
    assert unknown.status == "unsupported"
    (absurd,) = collect(frame, kwire.spark.decode_response("payload", 1 << 20, 3))
    assert absurd.status == "unsupported"
    (short,) = collect(binary(spark, VERSIONS[:9]), kwire.spark.decode_response("payload", 18, 3))
    assert (short.status, short.correlation_id, short.body) == ("malformed", 8, None)


def message(offset: int, key: bytes, value: bytes, *, crc: int | None = None) -> bytes:
    """A message of magic 1 in a message set."""
    body = struct.pack(">bbq", 1, 0, 1_763_691_084_123)
    for part in (key, value):
        body += struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body) if crc is None else crc) + body


def test_decode_records_equals_the_codec(spark: SparkSession) -> None:
    data = message(5, b"k5", b"v5") + message(6, b"k6", b"v6")
    (made,) = collect(binary(spark, data), kwire.spark.decode_records("payload"))
    expected = [record for batch in kwire.records.decode(data) for record in batch.records]
    assert [(row.offset, row.key, row.value) for row in made] == [(one.offset, one.key, one.value) for one in expected]
    assert len(expected) == 2
    assert {(row.status, row.magic, row.compression, row.crc_ok, row.timestamp_type) for row in made} == {
        ("ok", 1, "none", True, "CreateTime")
    }


def test_decode_records_gives_the_time_whatever_the_time_zone_of_the_session(spark: SparkSession) -> None:
    frame = binary(spark, message(0, b"", b"")).select(sql.inline(kwire.spark.decode_records("payload")))
    assert frame.select(sql.unix_millis("timestamp")).collect()[0][0] == 1_763_691_084_123


def test_decode_records_keeps_what_is_good_around_what_is_bad(spark: SparkSession) -> None:
    good = message(5, b"k5", b"v5") + message(6, b"k6", b"v6")
    payloads = [
        None,
        b"",
        good[:-1],  # cut off, as Fetch responses are
        message(5, b"k5", b"v5", crc=1) + message(6, b"k6", b"v6"),
        good + struct.pack(">qi", 7, -1) + bytes(20),
        struct.pack(">qi", 7, -1) + bytes(20),
        good,
    ]
    made = collect(binary(spark, *payloads).coalesce(1), kwire.spark.decode_records("payload"))
    assert made[:2] == [None, []]
    found = [[(row.offset, row.status) for row in rows] for rows in made[2:]]
    assert found == [
        [(5, "ok"), (None, "cut_off")],
        [(5, "corrupt"), (6, "ok")],
        [(5, "ok"), (6, "ok"), (None, "malformed")],
        [(None, "malformed")],
        [(5, "ok"), (6, "ok")],
    ]
    assert "at byte 76" in made[4][2].error


@pytest.mark.wide
def test_decode_records_says_what_is_left_over(spark: SparkSession) -> None:
    batch = encode([Record(b"k", b"v" * 50, offset=number) for number in range(10)])
    payloads = [batch[:300], bytes(range(100)), b"\0" * 5, batch + batch[:20], batch, b""]
    frame = binary(spark, *payloads).coalesce(1)
    sql_made = [one[0] for one in frame.selectExpr("kwire_decode_records(payload)").collect()]
    for strict, word in ((False, "cut_off"), (True, "malformed")):
        made = collect(frame, kwire.spark.decode_records("payload", strict=strict))
        assert [[row.status for row in rows] for rows in made] == [
            [word], [word], [word], [*["ok"] * 10, word], ["ok"] * 10, [],
        ]  # fmt: skip
        assert [row.error for row in made[0]] == [
            "record set at byte 0: no whole entry is in the 300 bytes that are left"
        ]
        assert made[3][-1].error == f"record set at byte {len(batch)}: no whole entry is in the 20 bytes that are left"
        assert made == sql_made or strict


@pytest.mark.wide
def test_decode_records_takes_more_than_one_window(spark: SparkSession) -> None:
    # 40 record sets of 400 kB are 16 MB, four windows.
    data = message(0, b"k", bytes(400_000))
    frame = spark.range(40, numPartitions=1).withColumn("payload", sql.lit(data))
    sizes = frame.select(sql.inline(kwire.spark.decode_records("payload"))).select(sql.length("value"))
    assert [row[0] for row in sizes.collect()] == [400_000] * 40


@pytest.mark.wide
def test_functions_work_on_the_slices_that_filters_and_limits_leave(spark: SparkSession) -> None:
    data = [message(n, b"k", b"v" * n) for n in range(50)]
    frame = binary(spark, *data).where("i % 7 = 3")
    made = collect(frame, kwire.spark.decode_records("payload"))
    assert [row[0].offset for row in made] == list(range(3, 50, 7))


SASL = kwire.encode_request(
    kwire.messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + canary("PLAIN").encode()),
    api_version=2,
    correlation_id=7,
)
TOKEN = kwire.encode_response(
    kwire.messages.CreateDelegationTokenResponse(hmac=canary("hmac made").encode()), api_version=2, correlation_id=7
)


def test_bodies_show_secrets_only_when_asked(spark: SparkSession) -> None:
    names = ("PLAIN", "hmac made")
    for secrets, expected in ((False, set()), (True, set(names))):
        bodies = collect(binary(spark, SASL, None), kwire.spark.decode_request("payload", secrets=secrets))
        bodies += collect(binary(spark, TOKEN), kwire.spark.decode_response("payload", 38, 2, secrets=secrets))
        assert [row and row.status for row in bodies] == ["ok", None, "ok"]
        assert found(repr(bodies), names) == expected
    assert not found(repr(collect(binary(spark, SASL), kwire.spark.decode_request("payload"))), names)
    cut = collect(binary(spark, SASL[:-3], SASL + b"!"), kwire.spark.decode_request("payload"))
    assert not found(repr(cut), names)


@pytest.mark.wide
def test_values_of_the_metadata_topic_are_left_out_where_the_topic_is_told(spark: SparkSession) -> None:
    topics = ["__cluster_metadata", "other", None, "__cluster_metadata"]
    payloads = [metadata_records(), metadata_records(), metadata_records(), None]
    rows = [(index, one, topic) for index, (one, topic) in enumerate(zip(payloads, topics, strict=True))]
    frame = spark.createDataFrame(rows, "i int, payload binary, topic string")
    made = collect(frame, kwire.spark.decode_records("payload", topic="topic"))
    assert not found(repr(made[0]), IN_RECORDS)
    assert found(repr(made[1]), IN_RECORDS) == found(repr(made[2]), IN_RECORDS) == set(IN_RECORDS)
    assert made[3] is None
    assert [row.status for row in made[0]] == [row.status for row in made[1]]
    whole = collect(frame, kwire.spark.decode_records("payload", topic=sql.col("topic"), secrets=True))
    assert whole[0] == whole[1] == made[1] == collect(frame, kwire.spark.decode_records("payload"))[0]


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("option", [{}, {"secrets": "redact"}, {"secrets": "show"}])
def test_the_data_source_shows_secrets_only_when_asked(spark: SparkSession, tmp_path: Path, option: Any) -> None:
    file = tmp_path / "all.pcap"
    file.write_bytes(capture_of(CASES))
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(metadata_records())
    reader = spark.read.format("kwire").options(**option)
    names = {name for case in CASES for name in case.names}
    shown = set()
    for table in ("messages", "records"):
        shown |= found(repr(reader.option("table", table).load(str(file)).collect()), names)
    for deep in ("false", "true"):
        segment = spark.read.format("kwire").options(format="log", deep=deep, **option).load(str(folder))
        shown |= found(repr(segment.collect()), names | set(IN_RECORDS))
    assert shown == (names | set(IN_RECORDS) if option.get("secrets") == "show" else set())
    users = reader.option("table", "messages").schema("sasl_user string, frame bigint").load(str(file)).collect()
    assert [row.sasl_user for row in users if row.sasl_user] == ["alice"] * 4


@pytest.mark.wide
def test_a_client_id_that_reaches_into_a_token_is_null(spark: SparkSession) -> None:
    asked = kwire.messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland")
    frame = bytearray(kwire.encode_request(asked, api_version=1, correlation_id=2, client_id="app"))
    frame[9] = 3 + 4 + 17
    odd = kwire.encode_request(kwire.messages.ApiVersionsRequest(), api_version=0, correlation_id=2, client_id="a\0b")
    frames = binary(spark, bytes(frame), odd)
    found = collect(frames, kwire.spark.decode_request("payload"))
    assert [(row.client_id, row.status) for row in found] == [(None, "malformed"), ("a\0b", "ok")]
    # Where the body is not read, nobody knows.
    assert [row.client_id for row in collect(frames, kwire.spark.decode_request("payload", body=False))] == [None, None]


@pytest.mark.wide
def test_a_payload_that_is_text_is_one_clear_sentence(spark: SparkSession) -> None:
    for body in (True, False):
        made = kwire.spark.decode_request("payload", body=body)
        with pytest.raises(
            PySparkException, match=r"the payload is a column of bytes \(BINARY\), not of the type string"
        ):
            spark.createDataFrame([("text",)], "payload string").select(made).collect()
