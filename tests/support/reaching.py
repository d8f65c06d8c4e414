"""A plug-in of pytest for ``tests/support/mutants.py``: coverage notes which test has reached a line."""

from __future__ import annotations

import coverage
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(item.nodeid.partition("[")[0])


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context("")
