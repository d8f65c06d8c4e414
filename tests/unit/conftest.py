"""What the tests of kernels share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.kernels.engine import MACHINE, PYTHON, Engine, using


@pytest.fixture(params=[PYTHON, MACHINE], ids=["python", "machine"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine, which ``choose`` gives as well while the test runs."""
    with using(request.param):
        yield request.param
