"""Answers do not depend on how they are read: as text or as dictionaries, and in batches of any size, whatever has
happened to the capture."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import KwireError
from kwire.report import findings, overview, page
from kwire.tables.reading import read

GOLDEN = Path(__file__).parents[1] / "golden"
CAPTURES = sorted(path for path in GOLDEN.glob("*/*.pcap") if path.stat().st_size < 150_000)
NUMBERS = (b"\xff" * 8, b"\x7f" + b"\xff" * 7, bytes(8), b"\x80" + bytes(7))


def answers(data: bytes, window: int | None, *, dictionaries: bool) -> str:
    """Findings, lineage, verdicts and figures; where something stands may depend on batches."""
    over = overview.Overview()
    with contextlib.suppress(KwireError):
        for name, batch in read(io.BytesIO(data), overview.TABLES, name="x", window=window, dictionaries=dictionaries):
            over.add(name, batch)
    over.finish()
    assert page.render(over, [page.Source("x")])
    found = over.finder.result()
    findings.batch_of(found).validate(full=True)
    said = [
        sorted(str({**one.row(), "evidence": None}) for one in found),
        sorted(map(str, over.lineage.result())),
        sorted(map(str, over.auditor.result().rows())),
        page.figures(over),
    ]
    return json.dumps(said, sort_keys=True)


@pytest.mark.wide
@given(
    path=st.sampled_from(CAPTURES),
    seed=st.integers(0, 1 << 32),
    changes=st.sampled_from((0, 1, 10, 100)),
    window=st.sampled_from((1 << 12, 1 << 15, None)),
)
def test_texts_and_batches_change_nothing(path: Path, seed: int, changes: int, window: int | None) -> None:
    some = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(changes):
        at, length = some.randrange(24, len(data)), some.choice((1, 2, 4, 8))
        data[at : at + length] = some.choice((*NUMBERS, some.randbytes(8)))[:length]
    whole_batches = answers(bytes(data), window, dictionaries=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overview, "_AT_ONCE", some.choice((3, 50)))
        assert answers(bytes(data), window, dictionaries=True) == whole_batches
