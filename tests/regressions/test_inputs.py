"""``inputs/HARNESS/NAME``: what the harnesses of ``fuzz`` have found. Each was an error once, and holds now."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from fuzz.__main__ import GUIDED

INPUTS = sorted(one for one in Path(__file__).with_name("inputs").glob("*/*") if one.is_file())


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_holds_now(path: Path) -> None:
    import_module(f"fuzz.{path.parent.name}").check(path.read_bytes())


@pytest.mark.parametrize("name", GUIDED)
def test_a_harness_holds_for_some_of_its_seeds(name: str) -> None:
    harness = import_module(f"fuzz.{name}")
    seeds = [data for _, data in zip(range(40), harness.seeds(), strict=False)]
    assert len(seeds) == 40 or name in ("log_files",)
    for data in seeds[::20]:
        harness.check(data)


@pytest.mark.parametrize("name", GUIDED)
def test_a_harness_says_what_it_holds(name: str) -> None:
    assert (Path(__file__).parents[2] / "fuzz" / f"{name}.py").read_text().startswith("# Invariant: ")
