"""How numba's representation of a kernel becomes LLVM's: with a third of the instructions.

Strategy: numba writes each step of a program by itself, and LLVM finds out what was not needed. Most of what it finds
is the same in each kernel, and known here: which variables have one value, what an array was put together from, that no
kernel has ``try``. So that is not written at all. What LLVM makes of it is the same machine code, in less time.

What is different from numba's own lowering:

- A variable with one assignment is that value, wherever the assignment comes first on each way. It needs no place in
  memory, no store and no load. Others need no 0 that is stored first: no kernel reads what it has not assigned.
- An index is not multiplied by 1, and 0 is not added to it. A truth is not made with a branch.
- The member of a value that was put together here is what was put in. An array has seven members and goes to most
  calls, so these are a third of all instructions.
- An array whose members are only read is not put into memory.
- A kernel that is called has the place for errors of its caller. So an error is on its way with one ``ret``.
- All indices of a kernel that are outside of an array share one block of code.
- No reference is counted (``_nrt=False``), so a variable needs no end.
- An instruction that nobody uses is not written down.

Only ``kwire.kernels.fence`` imports this module, where all that it uses of numba is as it was. It is imported where a
kernel is compiled.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from typing import Any, Final

from llvmlite import ir as _llvm  # type: ignore[import-untyped]
from numba.core import analysis as _analysis
from numba.core import callconv as _callconv
from numba.core import cgutils as _cgutils
from numba.core import ir as _ir
from numba.core import lowering as _lowering
from numba.core import postproc as _postproc
from numba.core import transforms as _transforms
from numba.core import typed_passes as _typed
from numba.core import types as _types
from numba.core.compiler_machinery import register_pass as _register_pass
from numba.np import arrayobj as _arrayobj

from kwire.kernels import arguments

__all__ = [
    "Lowering",
    "argument_packer",
    "array_maker",
    "call_function",
    "index_error",
    "process",
    "return_status",
    "return_user_error",
    "truth",
]

# numba's own annotations do not have all of what is used here.
analysis: Any = _analysis
arrayobj: Any = _arrayobj
callconv: Any = _callconv
cgutils: Any = _cgutils
ir: Any = _ir
llvm: Any = _llvm
lowering: Any = _lowering
postproc: Any = _postproc
register_pass: Any = _register_pass
transforms: Any = _transforms
typed: Any = _typed
types: Any = _types


class _Builder(arguments.Builder, llvm.IRBuilder):  # type: ignore[misc]
    """Writes the instructions of a kernel."""

    def __init__(self, block: Any) -> None:
        super().__init__(block)
        self._members: dict[tuple[Any, int, int], Any] = {}
        self._index_error: Any = None

    def extract_value(self, agg: Any, idx: Any, name: str = "") -> Any:
        """The member of a value: without an instruction, where it was put in or taken out in this block."""
        for one in idx if isinstance(idx, tuple | list) else (idx,):
            agg = agg.member(one) if isinstance(agg, arguments.Late) else self._member(agg, one)
        return agg

    def _member(self, value: Any, index: int) -> Any:
        while isinstance(value, llvm.instructions.InsertValue):
            if value.indices[0] == index:
                if len(value.indices) == 1:
                    return value.value
                break
            value = value.aggregate
        key = self.block, id(value), index
        found = self._members.get(key)
        if found is None:
            found = self._members[key] = super().extract_value(value, index)
        return found

    def add(self, lhs: Any, rhs: Any, name: str = "", flags: Any = ()) -> Any:
        """A sum: without an instruction where one is 0, as in each index."""
        return rhs if _is(lhs, 0) else lhs if _is(rhs, 0) else super().add(lhs, rhs, name, flags)

    def mul(self, lhs: Any, rhs: Any, name: str = "", flags: Any = ()) -> Any:
        """The same with 1."""
        return rhs if _is(lhs, 1) else lhs if _is(rhs, 1) else super().mul(lhs, rhs, name, flags)

    def index_error(self, context: Any) -> Any:
        """The block that gives up with an ``IndexError``."""
        if self._index_error is None:
            self._index_error = self.append_basic_block("outside")
            with self.goto_block(self._index_error):
                context.call_conv.return_user_exc(self, IndexError, ("index is out of bounds",))
        return self._index_error


def _is(value: Any, number: int) -> bool:
    return isinstance(value, llvm.Constant) and value.constant == number


def _slot(builder: Any, type_: Any) -> Any:
    """A place in memory for what is written before it is read. numba would write a 0 there first."""
    with builder.goto_entry_block():
        return builder.alloca(type_)


def index_error(context: Any, builder: Any, outside: Any) -> bool:
    """Gives up with an ``IndexError`` where ``outside``. False where this is no code of a kernel."""
    if not isinstance(builder, _Builder):
        return False
    inside = builder.append_basic_block("inside")
    builder.cbranch(outside, builder.index_error(context), inside).set_weights([1, 99])
    builder.position_at_end(inside)
    return True


class _Lower(lowering.Lower):  # type: ignore[misc]
    """Writes a kernel."""

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        self.builder = _Builder(self.entry_block)
        if not self.flags.forceinline:
            arguments.keep_apart(self.function.args)

    def lower_normal_function(self, fndesc: Any) -> None:
        super().lower_normal_function(fndesc)
        _drop_unused(self.function)

    def _find_singly_assigned_variable(self) -> None:
        """Notes the variables that are one value: it is known before each use, also in the order of writing."""
        count: Counter[str] = Counter()
        made_in: dict[str, int] = {}
        for label, block in self.blocks.items():
            for one in block.body:
                if isinstance(one, ir.Assign):
                    count[one.target.name] += 1
                    made_in[one.target.name] = label
        used_in: dict[str, list[int]] = defaultdict(list)
        for label, names in analysis.compute_use_defs(self.blocks).usemap.items():
            for name in names:
                used_in[name].append(label)
        before = analysis.compute_cfg_from_blocks(self.blocks).dominators()
        self._singly_assigned_vars = {
            name
            for name, label in made_in.items()
            if count[name] == 1 and all(label < one and label in before[one] for one in used_in[name])
        }
        self._blk_local_varmap: dict[str, Any] = {}

    def pre_block(self, block: Any) -> None:
        self._cur_ir_block = block

    def post_block(self, block: Any) -> None:
        pass

    def lower_block(self, block: Any) -> None:
        self.pre_block(block)
        for one in block.body:
            self.loc = one.loc
            if isinstance(one, ir.Assign):
                self.storevar(self.lower_assign(self.typeof(one.target.name), one), one.target.name)
            else:
                self.lower_inst(one)
        self.post_block(block)

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        return _slot(self.builder, lltype)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        pass


_PURE: Final = frozenset(
    {"insertvalue", "extractvalue", "load", "getelementptr", "bitcast", "alloca", "icmp"}
    | {"add", "sub", "mul", "and", "or", "xor", "zext", "sext", "trunc"}
)
"""Instructions that have no other effect than their result."""


def _operands(one: Any) -> list[Any]:
    return [value for value, _ in one.incomings] if isinstance(one, llvm.instructions.PhiInstr) else one.operands


def _drop_unused(function: Any) -> None:
    """Drops the instructions whose results nobody uses, and stores to places that nobody reads."""
    uses: Counter[int] = Counter()
    stores: dict[int, list[Any]] = defaultdict(list)
    for block in function.blocks:
        for one in block.instructions:
            for value in _operands(one):
                uses[id(value)] += 1
            if one.opname == "store":
                stores[id(one.operands[1])].append(one)
    unused = {id(one): one for block in function.blocks for one in block.instructions if one.opname in _PURE}
    waiting = [one for one in unused.values() if _is_unused(one, uses, stores)]
    dropped: set[int] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in dropped:
            continue
        gone = [one, *stores[id(one)]] if one.opname == "alloca" else [one]
        dropped.update(map(id, gone))
        for each in gone:
            for value in each.operands:
                uses[id(value)] -= 1
                if id(value) in unused and _is_unused(value, uses, stores):
                    waiting.append(value)
    if dropped:
        for block in function.blocks:
            block.instructions[:] = [one for one in block.instructions if id(one) not in dropped]


def _is_unused(one: Any, uses: Counter[int], stores: dict[int, list[Any]]) -> bool:
    return uses[id(one)] == (len(stores[id(one)]) if one.opname == "alloca" else 0)


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(typed.BaseNativeLowering):  # type: ignore[misc]
    """In place of numba's ``NativeLowering``."""

    _name = "kwire_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower


# --- Calls, and errors on their way ------------------------------------------------------------------------------

_call_function: Any = callconv.CPUCallConv.call_function
_return_user_exc: Any = callconv.CPUCallConv.return_user_exc
_return_status_propagate: Any = callconv.CPUCallConv.return_status_propagate


def call_function(self: Any, builder: Any, callee: Any, resty: Any, argtys: Any, args: Any, attrs: Any = None) -> Any:
    """In place of ``CPUCallConv.call_function``: what is called puts its error where that of the caller goes."""
    if not isinstance(builder, _Builder) or isinstance(resty, types.Optional):
        return _call_function(self, builder, callee, resty, argtys, args, attrs)
    result = _slot(builder, self.get_return_type(resty).pointee)
    arguments = self._get_arg_packer(argtys).as_arguments(builder, args)
    error = self._get_excinfo_argument(builder.function)
    code = builder.call(callee, [result, error, *arguments], attrs=(attrs or ()))
    failed = builder.icmp_signed("!=", code, callconv.RETCODE_OK)
    status = callconv.Status(**{**dict.fromkeys(callconv.Status._fields), "code": code, "is_error": failed})
    return status, self.context.get_returned_value(builder, resty, builder.load(result))


def return_status(self: Any, builder: Any, status: Any) -> None:
    """In place of ``CPUCallConv.return_status_propagate``: the error stands where it should."""
    if status.excinfoptr is not None:
        _return_status_propagate(self, builder, status)
    else:
        self._return_errcode_raw(builder, status.code)


def return_user_error(
    self: Any, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None, func_name: Any = None
) -> None:
    """In place of ``CPUCallConv.return_user_exc``: no kernel has ``try``."""
    if not isinstance(builder, _Builder):
        _return_user_exc(self, builder, exc, exc_args, loc, func_name)
        return
    self.set_static_user_exc(builder, exc, exc_args, loc, func_name)
    self._return_errcode_raw(builder, callconv.RETCODE_USEREXC)


def argument_packer(self: Any, argtypes: Any) -> Any:
    """In place of ``BaseCallConv._get_arg_packer``."""
    return arguments.packer(self.context, tuple(argtypes))


def truth(self: Any, builder: Any, value: Any) -> Any:
    """In place of ``BooleanModel.from_data``: whether a byte is not 0, without a branch."""
    return builder.icmp_unsigned("!=", value, value.type(0))


# --- Arrays --------------------------------------------------------------------------------------------------------

_make_array: Any = arrayobj.make_array


@functools.cache
def array_maker(array: Any) -> Any:
    """In place of ``arrayobj.make_array``: what gives the members of an array. It is put into memory if need be."""
    made = _make_array(array)
    if type(array) is not types.Array or array.ndim == 0:
        return made

    class Whole(made):  # type: ignore[misc,valid-type]
        def __init__(self, context: Any, builder: Any, value: Any = None, ref: Any = None) -> None:
            if value is None or ref is not None or not isinstance(builder, _Builder):
                super().__init__(context, builder, value, ref)
                return
            self._context, self._builder = context, builder
            self._datamodel = context.data_model_manager[self._fe_type]
            self._be_type = self._get_be_type(self._datamodel)
            if value.type != self._be_type:
                raise AssertionError(f"{value.type} for {self._be_type}")
            self._whole, self._made_in = value, builder.block

        def __getattr__(self, name: str) -> Any:
            if name not in ("_value", "_outer_ref") or "_whole" not in self.__dict__:
                return super().__getattr__(name)
            # Somebody needs it in memory.
            place = _slot(self._builder, self._be_type)
            with self._builder.goto_block(self._made_in):
                self._builder.store(self.__dict__.pop("_whole"), place)
            self._value = self._outer_ref = place
            return place

        def __getitem__(self, index: int) -> Any:
            if "_whole" in self.__dict__:
                return self._builder.extract_value(self._whole, index)
            return super().__getitem__(index)

        def _getvalue(self) -> Any:
            return self._whole if "_whole" in self.__dict__ else super()._getvalue()

        @property
        def shape(self) -> Any:
            if "_whole" in self.__dict__:
                return self[self._datamodel.get_field_position("shape")]
            return made.shape.fget(self)

    return Whole


# --- Analysis ------------------------------------------------------------------------------------------------------


_process: Any = postproc.PostProcessor.run


def process(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """In place of ``PostProcessor.run``: without the lives of variables, which only generators and ``del`` need."""
    if emit_dels or self.func_ir.is_generator:
        _process(self, emit_dels, extend_lifetimes)
        return
    self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
    self.func_ir.generator_info = None
