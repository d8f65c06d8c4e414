"""What every test directory shares: both codecs, both engines of kernels, and the Hypothesis profiles.

``quick`` (the default) keeps ``make test`` short; ``exhaustive`` (``--hypothesis-profile=exhaustive``) is for a change
to a codec and for the night. Neither has a deadline: the machines of continuous integration pause at will, and a codec
is compiled on its first use.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from kwire import schema
from kwire.codec import registry
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.schema import model

SPARK: Final = "tests/spark/"

settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile("exhaustive", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", choices=["quick", "wide"], help="what `make test` runs, or what it leaves out")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``--part``: tests that are marked ``wide`` are in the other part. Of ``wide(keep=n)``, ``n`` of the parameters,
    evenly spread, are in the quick one."""
    part = config.getoption("part")
    if part is None:
        return
    marked: dict[str, list[pytest.Item]] = {}
    for one in items:
        if one.get_closest_marker("wide") is not None:
            marked.setdefault(one.nodeid.partition("[")[0], []).append(one)
    wide = set()
    for same in marked.values():
        # A module that is marked keeps nothing of its tests.
        keep = min(len(same), *(mark.kwargs.get("keep", 0) for mark in same[0].iter_markers("wide")))
        kept = {at * len(same) // keep for at in range(keep)}
        wide.update(one for at, one in enumerate(same) if at not in kept)
    out = [one for one in items if (one in wide) == (part == "quick")]
    config.hook.pytest_deselected(items=out)
    items[:] = [one for one in items if (one in wide) == (part == "wide")]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module of which ``--part quick`` runs nothing is not imported for it."""
    if config.getoption("part") != "quick" or collection_path.suffix != ".py":
        return None
    return True if re.search(r"^pytestmark = pytest\.mark\.wide$", collection_path.read_text(), re.MULTILINE) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """In the quick part one process runs all tests with Spark: a second JVM takes longer to start than it saves."""
    if config.getoption("part") != "quick" or config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OneOfSpark(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return SPARK if nodeid.startswith(SPARK) else super()._split_scope(nodeid)

    return OneOfSpark(config, log)


def pytest_collection_finish() -> None:
    """What was imported and collected is never garbage. To go over it again and again takes 6 % of all time."""
    gc.collect()
    gc.freeze()


Codecs = Callable[[str | model.Message, int], registry.Codec]


@pytest.fixture(params=registry.IMPLEMENTATIONS, scope="session")
def codec(request: pytest.FixtureRequest) -> Codecs:
    """``codec(message, version)`` in one implementation after the other; a message may be named."""

    def of(message: str | model.Message, version: int) -> registry.Codec:
        known = schema.message(message) if isinstance(message, str) else message
        return registry.codec(known, version, request.param)

    return of


@pytest.fixture(params=[PYTHON, MACHINE], ids=["python", "machine"], scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """All kernels run as Python, then as machine code: ``engine(kernel)`` is one of them, and readers use it too.

    Of a module, because Hypothesis calls a test many times for one fixture.
    """
    with using(request.param):
        yield request.param
