"""docs/how-to/mock-broker.md names every argument of a broker, every fault, every damage, every filter of a rule."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from kwire.testing.broker import Broker, Rule
from kwire.testing.broker.faults import DAMAGES

PAGE = (Path(__file__).parents[4] / "docs" / "how-to" / "mock-broker.md").read_text()
INSIDE = {"takes", "apply"}
"""Methods of a rule that the broker calls."""


def named() -> set[str]:
    """All words between backquotes."""
    return {word for part in re.findall(r"`([^`\n]+)`", PAGE) for word in re.findall(r"\w+", part)}


def test_the_page_names_what_there_is() -> None:
    arguments = set(inspect.signature(Broker).parameters)
    filters = set(inspect.signature(Broker.on).parameters) - {"self"}
    methods = {name for name, _ in inspect.getmembers(Rule, inspect.isfunction) if name[0] != "_"} - INSIDE
    assert arguments | filters | methods | set(DAMAGES) <= named()


def test_a_rule_takes_what_on_takes() -> None:
    mine, theirs = (list(inspect.signature(one).parameters)[1:] for one in (Broker.on, Rule.__init__))
    assert mine == theirs
