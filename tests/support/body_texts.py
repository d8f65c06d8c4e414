"""Frames made of bodies, and the texts that the tables show of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import kwire
from kwire.capture.frames import Frames
from kwire.kernels.engine import Engine
from kwire.kernels.layouts import FRAME
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.protocol.describe import Shown
from kwire.tables.bodies import Bodies


def frames(*made: tuple[Any, int]) -> Frames:
    table = np.zeros(len(made), FRAME)
    data = b""
    for row, (body, version) in zip(table, made, strict=True):
        row.off, row.api, row.version = len(data), body.SCHEMA.api_key, version
        if body.SCHEMA.kind == "response":
            row.response = 1
            data += kwire.encode_response(body, api_version=version, correlation_id=1)
        else:
            data += kwire.encode_request(body, api_version=version, correlation_id=1, client_id="c")
        row.seen = len(data) - row.off
    nothing = np.zeros(0, np.int64)
    return Frames(table, np.frombuffer(data, np.uint8), nothing, nothing, nothing)


def texts(engine: Engine, *made: tuple[Any, int], limits: Limits = DEFAULT_LIMITS, **shown: bool) -> list[str | None]:
    found: list[str | None] = []
    for part in Bodies(Shown(**shown), limits).text(frames(*made), np.arange(len(made)), engine):
        found += part.column(part.first, part.last).to_pylist()
    return found
