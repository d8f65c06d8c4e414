"""The types of a kernel's variables: each statement is asked again only where what it read has changed.

Strategy: numba asks all statements of a function for types, again and again, until nothing changes. Around each it
catches warnings, which takes longer than many an answer. Here a statement notes which variables it read, and their
types. It is left out of the next round where these are the same: it would say the same. What it says are types of
variables, which only become wider. So the types that come of it are those of numba.

Only ``kwire.kernels.fence`` imports this module, where all that it uses of numba is as it was.
"""

from __future__ import annotations

from typing import Any, Final

from numba.core import errors as _errors
from numba.core import typeinfer as _typeinfer
from numba.core import utils as _utils

__all__ = ["add_type", "copy_type", "propagate"]

# numba's own annotations do not have all of what is used here.
errors: Any = _errors
typeinfer: Any = _typeinfer
utils: Any = _utils


class _Watched(typeinfer.TypeVarMap):  # type: ignore[misc]
    """The variables of a function, while it is noted which of them are read."""

    read: dict[str, tuple[Any, Any]]
    """The variables that a statement has read, with the types that they had then."""
    answered: dict[int, tuple[tuple[Any, Any], ...]]
    """Of each statement what it had read when it was asked last."""

    def __getitem__(self, name: str) -> Any:
        found = _plain(self, name)
        if name not in self.read:
            self.read[name] = found, found.type
        return found


_Plain: Final = typeinfer.TypeVarMap


def _plain(variables: Any, name: str) -> Any:
    """A variable, which is not noted: who adds a type to it does not ask for the one that it has."""
    found = dict.get(variables, name)
    return _Plain.__getitem__(variables, name) if found is None else found


def add_type(self: Any, var: str, tp: Any, loc: Any, unless_locked: bool = False) -> None:
    """In place of ``TypeInferer.add_type``."""
    variable = _plain(self.typevars, var)
    if unless_locked and variable.locked:
        return
    before = variable.type
    if tp is before:
        return
    unified = variable.add_type(tp, loc=loc)
    if unified != before:
        self.propagate_refined_type(var, unified)


def copy_type(self: Any, src_var: str, dest_var: str, loc: Any) -> None:
    """In place of ``TypeInferer.copy_type``."""
    source, target = self.typevars[src_var].type, _plain(self.typevars, dest_var)
    if source is not None and source is not target.type:
        target.add_type(source, loc=loc)


def propagate(self: Any, inferer: Any) -> list[Any]:
    """In place of ``ConstraintNetwork.propagate``. Returns what was wrong."""
    variables = inferer.typevars
    if not hasattr(variables, "answered"):
        variables.answered = {}
    variables.__class__ = _Watched
    wrong = []
    try:
        with inferer.warnings.catch_warnings(filename=inferer.func_id.filename, lineno=inferer.func_id.firstlineno):
            for number, one in enumerate(self.constraints):
                known = variables.answered.get(number)
                if known is not None and all(variable.type is type_ for variable, type_ in known):
                    continue
                variables.read = {}
                try:
                    one(inferer)
                except errors.ForceLiteralArg as error:
                    wrong.append(error)
                except errors.TypingError as error:
                    said = errors.TypingError(str(error), loc=one.loc, highlighting=False)
                    wrong.append(utils.chain_exception(said, error))
                else:
                    variables.answered[number] = tuple(variables.read.values())
                    continue
                variables.answered.pop(number, None)
    finally:
        variables.__class__ = _Plain
    return wrong
