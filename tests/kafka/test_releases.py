"""The table of releases against the classes of some of them: one for each way in which releases say it."""

from __future__ import annotations

import pytest
from releases import Answers, ask, line_of

from kwire import versions
from kwire.schema.model import Versions

ASKED = ("0.8.0", "0.9.0.1", "0.10.1.1", "2.4.1", "3.9.2", "4.0.0", "4.4.0")


@pytest.fixture(scope="module")
def answers() -> Answers:
    return ask(ASKED)[0]


@pytest.mark.parametrize("release", ASKED)
def test_the_table_says_what_the_classes_say(answers: Answers, release: str) -> None:
    name = release if release == "4.0.0" else line_of(release)
    for listener in ("zookeeper", "broker", "controller"):
        rows = {key: row for (of, where, key), row in answers.items() if (of, where) == (release, listener)}
        served = versions.accepted(name, listener)  # type: ignore[arg-type]
        said = versions.announced(name, listener)  # type: ignore[arg-type]
        assert served == {key: Versions(low, high) for key, (low, high, _) in rows.items()}
        assert said == {key: Versions(low, high) for key, (_, high, low) in rows.items()}
