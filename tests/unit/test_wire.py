"""Primitive types outside of messages: the times that can be shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kwire import wire


def test_the_times_that_can_be_shown_are_those_of_datetime():
    began = datetime(1970, 1, 1, tzinfo=UTC)
    first, last = datetime.min.replace(tzinfo=UTC) - began, datetime.max.replace(tzinfo=UTC) - began
    for unit, shown in (
        (timedelta(milliseconds=1), (wire.FIRST_MS, wire.LAST_MS)),
        (timedelta(microseconds=1), (wire.FIRST_US, wire.LAST_US)),
    ):
        assert shown == (first // unit, last // unit)
