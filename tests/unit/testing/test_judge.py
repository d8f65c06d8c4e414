"""``kwire.testing.judge``: what a parser says wrongly is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from packets import METADATA_RESPONSE, Connection, metadata, pcap, response

from kwire.kernels.engine import PYTHON, using
from kwire.testing.impair import impair
from kwire.testing.judge import Original, Row, judge, rows

CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-4-telemetry" / "refusals.pcap"


@pytest.fixture(scope="module", autouse=True)
def _engine() -> Iterator[None]:
    with using(PYTHON):
        yield


@pytest.fixture(scope="module")
def original() -> Original:
    return Original(CAPTURE.read_bytes())


def _unharmed(original: Original) -> tuple[list[Row], int]:
    """The rows of the original, and the place of one that is followed by others in its stream."""
    found = list(original.rows)
    place = next(k for k, row in enumerate(found) if sum(other.sender == row.sender for other in found[k + 1 :]) >= 2)
    return found, place


def test_every_frame_has_a_place(original: Original) -> None:
    assert original.unplaced == 0
    assert sum(len(stream.places) for stream in original.streams.values()) == len(original.rows)


def test_the_rows_of_the_original_are_good(original: Original) -> None:
    for kind in ("vlan", "lost-tail"):
        found = list(original.rows) if kind == "vlan" else None
        assert judge(original, impair(original.capture, kind), found=found).good


def test_a_row_that_differs_is_missing_and_there_instead(original: Original) -> None:
    found, place = _unharmed(original)
    found[place] = found[place]._replace(time=found[place].time + 1)
    (one, other) = judge(original, impair(original.capture, "vlan"), found=found).differing
    assert (one[0], other[0]) == ("missing", "instead")
    assert other[1] == found[place]._replace(number=0, connection=0)


def test_times_do_not_matter_where_a_kind_does_not_keep_them(original: Original) -> None:
    found = [row._replace(time=0, latency=1) for row in original.rows]
    assert not judge(original, impair(original.capture, "clock-jitter"), found=found).differing


def test_numbers_matter_where_a_kind_keeps_the_order(original: Original) -> None:
    found = [row._replace(number=row.number + 1) for row in original.rows]
    assert len(judge(original, impair(original.capture, "vlan"), found=found).differing) == 2 * len(found)
    assert not judge(original, impair(original.capture, "foreign-traffic"), found=found).differing


def test_connections_that_are_there_again_must_be_there_again(original: Original) -> None:
    impaired = impair(original.capture, "ports-again-after-fin", seed=1)
    assert judge(original, impaired).good
    assert judge(original, impaired, found=original.rows).differing


def test_a_frame_that_was_never_sent_is_invented(original: Original) -> None:
    found, place = _unharmed(original)
    other = found[place]._replace(api=99)
    trailing = other._replace(status="trailing")
    said = judge(original, impair(original.capture, "snaplen-1024"), found=[*found, found[place], other, trailing])
    assert said.invented == [found[place], other, trailing]


def test_a_frame_that_is_gone_without_a_row_is_unseen(original: Original) -> None:
    found, place = _unharmed(original)
    row = found.pop(place)
    said = judge(original, impair(original.capture, "snaplen-1024"), found=found)
    assert said.unseen == [row]
    assert said.missed == 1
    gap = row._replace(status="gap", skipped=True, digest=b"", size=row.size + 4)
    seen = judge(original, impair(original.capture, "snaplen-1024"), found=[*found[:place], gap, *found[place:]])
    assert seen.unseen == []
    assert seen.missed == 1
    short = [*found[:place], gap._replace(size=row.size), *found[place:]]
    assert judge(original, impair(original.capture, "snaplen-1024"), found=short).unseen == [row]


def test_what_connections_say_of_one_of_unknown_kind_is_seen() -> None:
    talk = Connection().open().send(metadata(7)).answer(response(7, METADATA_RESPONSE)).close()
    original = Original(pcap(talk.packets))
    impaired = impair(original.capture, "one-sided-responses")
    assert [row.status for row in original.rows] == ["ok", "ok"]
    # 16 bytes may be anything.
    assert rows(impaired.data) == []
    assert judge(original, impaired).good
    assert judge(original, impaired, found=[]).unseen == [original.rows[1]]


def test_whole_frames_behind_a_loss_are_counted(original: Original) -> None:
    for seed in range(100):
        impaired = impair(original.capture, "lost-one", seed=seed)
        found = rows(impaired.data)
        said = judge(original, impaired, found=found)
        if said.passed_over != [0]:
            continue
        there = {(row.sender, row.receiver, row.digest) for row in found}
        (lost,) = [row for row in original.rows if (row.sender, row.receiver, row.digest) not in there]
        way = lost.sender, lost.receiver
        following = [
            row
            for row in found
            if (row.sender, row.receiver) == way and row.time > lost.time and row.status in ("ok", "unpaired")
        ]
        without = [row for row in found if row != following[0]]
        assert judge(original, impaired, found=without).passed_over == [1]
        return
    pytest.fail("no seed loses a frame that others follow")


def test_a_client_id_that_is_not_known_is_not_made_up(original: Original) -> None:
    found, place = _unharmed(original)
    impaired = impair(original.capture, "snaplen-1024")
    found[place] = found[place]._replace(client_id=None)
    assert judge(original, impaired, found=found).invented == []
    found[place] = found[place]._replace(client_id="another")
    assert judge(original, impaired, found=found).invented == [found[place]]


def test_altered_frames_may_be_as_they_are_now(original: Original) -> None:
    impaired = impair(original.capture, "corrupted", seed=2)
    assert impaired.account.altered
    assert judge(original, impaired).intact < len(original.rows)


def test_content_of_its_own_is_no_impairment(original: Original) -> None:
    with pytest.raises(ValueError, match="an original of its own"):
        judge(original, impair(original.capture, "values-are-frames"))


def test_a_row_is_judged_by_the_status_that_users_see() -> None:
    """A response whose size is false, which Fetch v17 cannot have: no frame follows it, its body is not right."""
    name = "kafka-3.9-zk-kerberos/gssapi.pcap"
    original = Original((CAPTURE.parents[1] / name).read_bytes())
    impaired = impair(original.capture, "false-sizes", seed=348)
    found = rows(impaired.data)
    (place,) = [k for k, row in enumerate(found) if row.status == "malformed" and row.size == 349]
    assert found[place].error == "the body is not what version 17 says"
    assert judge(original, impaired, found=found).good
    # With bytes that are not those of the frame, it is an invention where it says that they were sent, and only there.
    for status in ("ok", "trailing", "malformed"):
        planted = found[place]._replace(status=status, digest=b"others")
        said = judge(original, impaired, found=[*found[:place], planted, *found[place + 1 :]])
        assert said.invented == [planted] * (status != "malformed")
        assert not said.unseen
    lost = max((k for k, row in enumerate(found) if row.status == "ok"), key=lambda k: found[k].size)
    said = judge(original, impaired, found=[*found[:lost], *found[lost + 1 :]])
    assert [row.digest for row in said.unseen] == [found[lost].digest]
    assert not said.invented


def test_a_copy_of_a_frame_at_another_time_is_not_that_frame(original: Original) -> None:
    """A value may be one, and the row for the frame around it comes before that of the copy."""
    impaired = impair(original.capture, "snaplen-128")
    found = rows(impaired.data)
    torn = next(
        k
        for k, row in enumerate(found)
        if row.status == "gap" and any(one.sender == row.sender and one.status == "ok" for one in found[:k])
    )
    before = next(one for one in reversed(found[:torn]) if one.sender == found[torn].sender and one.status == "ok")
    copy = before._replace(status="unconfirmed", time=before.time + 1, number=found[torn].number)
    assert judge(original, impaired, found=[*found[: torn + 1], copy, *found[torn + 1 :]]).good
    assert judge(original, impaired, found=[*found[:torn], copy, *found[torn + 1 :]]).unseen


def test_connections_on_the_same_ports_are_judged_one_after_the_other(original: Original) -> None:
    """What is left of the first is said when the capture ends, after rows of the second."""
    found, place = _unharmed(original)
    row = found[place]
    gap = row._replace(size=4 + row.size, status="gap", skipped=True, digest=b"", number=len(found))
    others = [one if one.number < row.number else one._replace(connection=one.connection + 1) for one in found]
    late = [one for one in others if one.number != row.number]
    impaired = impair(original.capture, "snaplen-1024")
    assert judge(original, impaired, found=[*late, gap]).good
    assert judge(original, impaired, found=late).unseen == [row]
