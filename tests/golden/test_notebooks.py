"""The notebooks run, and print what they say that they print."""

from __future__ import annotations

import notebooks
import pytest


@pytest.mark.parametrize("name", notebooks.CAPTURES)
def test_a_notebook_prints_its_outputs(name: str) -> None:
    path = notebooks.FOLDER / f"{name}.ipynb"
    printed = notebooks.ran(path)
    assert any(printed)
    assert printed == notebooks.outputs(path)


def test_every_notebook_is_run() -> None:
    assert {path.stem for path in notebooks.FOLDER.glob("*.ipynb")} == set(notebooks.CAPTURES)
