"""What a test needs and is not here: it is skipped, and fails in continuous integration.

A skip is right there for one reason only: what is missing cannot be fetched. Then its reason begins with
``UNREACHABLE``. ``tests/broker/conftest.py`` holds all its tests to that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Final, NoReturn

import pytest

UNREACHABLE: Final = "it cannot be fetched"
"""What the reason of a skip begins with that is no failure in continuous integration."""


class MissingError(Exception):
    """A client is not installed here. ``unreachable``: the registry that has it does not answer."""

    def __init__(self, why: str, *, unreachable: bool = False) -> None:
        super().__init__(why)
        self.unreachable = unreachable


def give_up(missing: MissingError) -> NoReturn:
    """Skip. In continuous integration fail, unless the client could not be fetched."""
    if os.environ.get("CI") == "true" and not missing.unreachable:
        pytest.fail(str(missing))
    pytest.skip(f"{UNREACHABLE}: {missing}" if missing.unreachable else str(missing))


def no_program(name: str, package: str = "") -> MissingError:
    """The error for a program that is not here. It is unreachable where apt-get could not install it either: nobody may
    ask it to, or its lists do not have the package."""
    return MissingError(f"{name} is not installed, see .ci/setup", unreachable=not _installable(package or name))


def _installable(package: str) -> bool:
    if shutil.which("apt-cache") is None:
        return False
    if os.getuid() and (shutil.which("sudo") is None or subprocess.run(["sudo", "-n", "true"]).returncode):
        return False
    said = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True).stdout
    return re.search(r"Candidate: (?!\(none\))", said) is not None
