"""All that ``__all__`` names is described: the Python API of the site is made of it.

Modules, classes, functions, methods and properties have a docstring. Python keeps none for constants and types with
another name, so Sphinx reads the text after them, and this test does so too. What only kernels use is internal.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache, cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import docs_site
import pytest

MODULES = dict(docs_site.site.modules()) | {"kwire": docs_site.site.kwire}
METHODS = (property, cached_property, classmethod, staticmethod)


@cache
def constants(path: str) -> dict[str, bool | tuple[str, str]]:
    """The names that a module gives values: whether a text follows, or the module and name that it is imported from."""
    tree = ast.parse(Path(path).read_text("utf-8"))
    found: dict[str, bool | tuple[str, str]] = {}
    # Packages that import a name when it is asked for say so to type checkers.
    for one in ast.walk(tree):
        if isinstance(one, ast.ImportFrom) and one.module:
            found |= {name.asname or name.name: (one.module, name.name) for name in one.names}
    for one, after in pairwise([*tree.body, ast.Pass()]):
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        told = (
            isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        )
        # A text after "A, B = ..." does not say which of them it describes.
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            found |= {name.id: told and len(names) == 1 for name in names if isinstance(name, ast.Name)}
    return found


def described(module: ModuleType, name: str) -> bool:
    """Whether a constant has a text where it is defined."""
    found = constants(str(module.__file__)).get(name, False)
    return described(import_module(found[0]), found[1]) if isinstance(found, tuple) else found


def undescribed(module: ModuleType, name: str) -> list[str]:
    """Which of a public name, its methods and its properties have no text."""
    value = getattr(module, name)
    if inspect.ismodule(value):
        return []
    if inspect.isclass(value):
        # The docstring that a dataclass makes for itself is its signature.
        own = vars(value).get("__doc__") or ""
        missing = [] if own and not own.startswith(f"{name}(") else [name]
        return missing + [f"{name}.{one}" for one, what in vars(value).items() if is_bare(value, one, what)]
    if inspect.isroutine(value):
        return [] if value.__doc__ else [name]
    return [] if described(module, name) else [name]


def is_bare(owner: type, name: str, value: Any) -> bool:
    """Whether this is a public method or property without a text, of its own or of a class above."""
    if name.startswith("_") or not (inspect.isfunction(value) or isinstance(value, METHODS)):
        return False
    return not any(inspect.getdoc(vars(one)[name]) for one in owner.__mro__ if name in vars(one))


@pytest.mark.wide
@pytest.mark.parametrize("name", MODULES)
def test_all_that_is_public_is_described(name: str) -> None:
    module = MODULES[name]
    assert module.__doc__
    assert [one for public in module.__all__ for one in undescribed(module, public)] == []


def test_a_name_without_a_text_is_found(tmp_path: Path) -> None:
    path = tmp_path / "bare.py"
    path.write_text(
        '"""A module."""\n'
        "ONE = 1\n"
        "TWO: int = 2\n"
        '"""It has a text."""\n'
        "THREE, FOUR = 3, 4\n"
        '"""Of which of both?"""\n'
        "def five(): pass\n"
        "class Six:\n"
        '    """A class."""\n'
        "    def seven(self): pass\n"
        "    @property\n"
        "    def eight(self): pass\n"
        "    def __len__(self): return 9\n"
    )
    module = ModuleType("bare")
    module.__file__ = str(path)
    exec(path.read_text(), module.__dict__)
    names = ("ONE", "TWO", "THREE", "FOUR", "five", "Six")
    found = [one for name in names for one in undescribed(module, name)]
    assert found == ["ONE", "THREE", "FOUR", "five", "Six.seven", "Six.eight"]
