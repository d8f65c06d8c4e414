"""The rule of skips: in continuous integration a test that lacks something fails, unless that cannot be fetched."""

from __future__ import annotations

import subprocess
from typing import Any

import missing
import pytest


@pytest.mark.parametrize(
    ("ci", "unreachable", "wanted"), [(True, False, "failed"), (True, True, "skipped"), (False, False, "skipped")]
)
def test_what_could_be_fetched_fails_where_nobody_looks(
    ci: bool, unreachable: bool, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", str(ci).lower())
    kind: Any = pytest.fail.Exception if wanted == "failed" else pytest.skip.Exception
    with pytest.raises(kind) as error:
        missing.give_up(missing.MissingError("no client", unreachable=unreachable))
    assert (missing.UNREACHABLE in str(error.value)) == unreachable


@pytest.mark.parametrize(
    ("said", "root", "unreachable"),
    [
        ("kcat:\n  Installed: (none)\n  Candidate: 1.7.1-2\n", True, False),
        ("kcat:\n  Installed: (none)\n  Candidate: (none)\n", True, True),
        ("", True, True),
        ("kcat:\n  Installed: (none)\n  Candidate: 1.7.1-2\n", False, True),
    ],
)
def test_a_program_that_apt_has_could_be_fetched(
    said: str, root: bool, unreachable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getuid", lambda: 0 if root else 1000)
    monkeypatch.setattr("shutil.which", lambda name: None if name == "sudo" else f"/usr/bin/{name}")
    monkeypatch.setattr("subprocess.run", lambda words, **_: subprocess.CompletedProcess(words, 0, said))
    assert missing.no_program("kcat").unreachable == unreachable
