"""Bodies as structs, of every API and version in the golden captures: those of ``to_dict``, by kernel and by objects.

The quick profile takes some of the captures, ``exhaustive`` all of them.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from typed_walk import as_column
from valid_batches import valid

from kwire import schema
from kwire.capture.frames import Frames
from kwire.capture.reading import Reading
from kwire.errors import CaptureError, KwireError
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.kernels.layouts import Status
from kwire.options import settled
from kwire.tables import messages as table_of_messages
from kwire.tables.definition import Maker, Run
from kwire.tables.reading import chosen_table

ALL = sorted(path for path in Path(__file__).parent.rglob("*.pcap*") if path.suffix in (".pcap", ".pcapng"))
SOME = {"kafka-4.4-kraft-raw/every-version.pcap"}
EXHAUSTIVE = settings.get_current_profile_name() == "exhaustive"
CAPTURES = [path for path in ALL if EXHAUSTIVE or f"{path.parent.name}/{path.name}" in SOME]


def expected(frames: Frames, payloads: bool) -> dict[tuple[str, str], dict[int, Any]]:
    """The bodies by API and direction, and by the number of the frame; those that have none are None."""
    found: dict[tuple[str, str], dict[int, Any]] = {}
    for frame in frames:
        name = schema.api_keys().get(frame.api_key)
        if name is None or frame.api_version is None:
            continue
        direction = "response" if frame.is_response else "request"
        body = None
        with contextlib.suppress(KwireError):
            if frame.status in (Status.OK, Status.TRAILING):
                message = frame.message
                version = getattr(message, "api_version", frame.api_version)
                definition = (schema.response if frame.is_response else schema.request)(frame.api_key)
                assert definition is not None
                body = as_column(message.body.to_dict(version), definition.fields, definition.structs, payloads)
        found.setdefault((name, direction), {})[frame.number] = body
    return found


@pytest.mark.parametrize("engine", [MACHINE, PYTHON] if EXHAUSTIVE else [MACHINE], ids=lambda engine: engine.name)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_bodies_are_those_of_to_dict(path: Path, engine: Engine) -> None:
    makers: dict[tuple[str, str], Maker] = {}
    compared = 0
    payloads = engine is PYTHON
    # The way of bodies alone: what comes before is the same.
    by_objects = mock.patch.object(table_of_messages, "choose", return_value=engine)
    with using(MACHINE), by_objects, path.open("rb") as file, contextlib.suppress(CaptureError):
        for frames in Reading(file):
            for kind, bodies in expected(frames, payloads).items():
                if kind not in makers:
                    table = chosen_table("messages", *kind, payloads=payloads)
                    makers[kind] = table.maker(
                        table.schema, Run(options=settled({"secrets": True, "payloads": payloads}))
                    )
                for batch in valid(makers[kind].batches(frames)):
                    for number, body in zip(batch.column("frame"), batch.column("body"), strict=True):
                        assert body.as_py() == bodies.pop(number.as_py()), (kind, number)
                        compared += body.is_valid
                assert not bodies
    assert compared or not makers
