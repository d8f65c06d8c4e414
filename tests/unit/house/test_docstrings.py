"""Functions and classes that ``__all__`` names have a docstring: the Python API of the site is made of them.

So have the constants of the modules that pages name (``CONSTANTS``).
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from pathlib import Path

import docs_site
import pytest

CONSTANTS = ("kwire.limits", "kwire.versions", "kwire.log", "kwire.testing", "kwire.schema.keys", "kwire.capture")
MODULES = dict(docs_site.site.modules())
PACKAGE = Path(docs_site.site.kwire.__file__).parent


def described(path: Path) -> set[str]:
    """Constants of a module with a text after them, which Python does not keep."""
    body = ast.parse(path.read_text("utf-8")).body
    found = set()
    for one, after in pairwise(body):
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found |= {name.id for name in targets if isinstance(name, ast.Name)}
    return found


EVERYWHERE = {name for path in PACKAGE.rglob("*.py") for name in described(path)}


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_docstring(name: str) -> None:
    module = MODULES[name]
    assert module.__doc__
    missing = []
    for one in module.__all__:
        value = getattr(module, one)
        if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
            own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
            if not own or own.startswith(f"{one}("):
                missing.append(one)
        elif name in CONSTANTS and one not in EVERYWHERE:
            missing.append(one)
    assert missing == []
