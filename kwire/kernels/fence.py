"""Every private part of numba that kwire uses, each with a probe: what has changed is not used.

Strategy: each use is a ``_Fence`` with the signatures that it was written for. They are compared once, before the first
use. Where one differs, its fence is closed: kernels then compile as any other function does. That is slower, and
nothing else changes. ``closed()`` names the fences that are; a test asks for none with the newest numba allowed.

What is used, and what for:

- ``cache``: the machine code stands in a folder of our choice (``kwire.kernels.cache``). Closed: it is not kept.
- ``indices``: an index is compared once with the size of its array. Without it, numba adds the size to a negative index
  and then compares twice. No kernel counts from the end, and a negative index is an ``IndexError``.
- ``libraries``: kernels that are parts of others are optimised once. This happens with the kernel that Python calls.
  Without it, numba optimises each function with all that it calls, and makes machine code of it, before it becomes a
  part of the next. Closed: a leaf four calls deep goes through LLVM five times.
- ``inference``: which statements are asked for types (``kwire.kernels.inferring``). numba asks all of them, and again.
- ``kept``: for which types a kernel has machine code on disk. Closed: nothing is loaded ahead of its first call.
- ``lowering``: how a kernel is written for LLVM (``kwire.kernels.lowering``). It takes a third of the instructions. And
  how it gets its arguments (``kwire.kernels.arguments``): a fifth of them.
- ``names``: what a function is called in LLVM's text. numba names it by the types of all its arguments, which is some
  thousand characters long for a kernel, in each call.
- ``passes``: a kernel goes through 12 of numba's 27 passes. The others are for what no kernel has: closures, ``with``,
  overloads that are inlined, literals that a loop is unrolled over, annotated source. The machine code is the same.
- ``calls``: for which types numba found which implementation of an operator or a function of its own. numba asks all
  its templates again for each ``+``. And a kernel that is called with 0 is not compiled for 0 alone.
- ``stages``: a kernel is there twice, at once with machine code that LLVM has not thought about, and optimised later.
  Closed: a kernel is there when it is optimised.
- ``variables``: which variables a statement has. numba asks each value for its class four times.

Rules kept here:

- What is replaced is replaced while a kernel of ours compiles, under numba's own lock, and put back after it.
- Loading machine code comes first: what only compiling needs is imported, and replaced, where nothing was kept.
- Only ``kwire.kernels.compiling`` imports this module.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

from numba import typeof
from numba.core import caching as _caching
from numba.core import cgutils as _cgutils
from numba.core import codegen as _codegen
from numba.core import compiler as _compiler
from numba.core import compiler_machinery as _machinery
from numba.core import dispatcher as _dispatching
from numba.core import errors as _errors
from numba.core import ir as _ir
from numba.core import itanium_mangler as _mangler
from numba.core import typed_passes as _typed
from numba.core import typeinfer as _typeinfer
from numba.core import types as _types_of_numba
from numba.core import untyped_passes as _untyped
from numba.core.compiler_lock import global_compiler_lock as _compiler_lock
from numba.core.registry import cpu_target as _cpu_target
from numba.core.types import functions as _functions

from kwire.kernels import cache

__all__ = ["closed", "entry", "in_stages", "keep", "load", "options", "part", "quick_entry", "types_of"]

# numba's own annotations do not have all of what is used here.
caching: Any = _caching
cgutils: Any = _cgutils
codegen: Any = _codegen
compiler: Any = _compiler
dispatching: Any = _dispatching
errors: Any = _errors
functions: Any = _functions
ir: Any = _ir
mangler: Any = _mangler
machinery: Any = _machinery
typeinfer: Any = _typeinfer
types: Any = _types_of_numba
compiler_lock: Any = _compiler_lock
cpu_target: Any = _cpu_target


class _Fence:
    """A use of private parts. ``open``: whether each of them still has the parameters that it is called with."""

    def __init__(self, name: str, parts: dict[str, tuple[Any, str]]) -> None:
        self.name = name
        self.open = all(_has(owner, path.rpartition(".")[2], wanted) for path, (owner, wanted) in parts.items())


def _has(owner: Any, name: str, wanted: str) -> bool:
    found = getattr(owner, name, None)
    try:
        return found is not None and " ".join(inspect.signature(found).parameters) == wanted
    except (TypeError, ValueError):
        return False


@functools.cache
def _arrayobj() -> Any:
    """What numba knows about arrays: only compiling needs it."""
    from numba.np import arrayobj

    return arrayobj


@functools.cache
def _indices() -> _Fence:
    return _Fence(
        "indices",
        {
            "arrayobj.fix_integer_index": (_arrayobj(), "context builder idxty idx size"),
            "cgutils.do_boundscheck": (cgutils, "context builder ind dimlen axis"),
        },
    )


@functools.cache
def _lowering() -> _Fence:
    from numba.core import callconv, datamodel, lowering, postproc

    convention = getattr(callconv, "CPUCallConv", None)
    lower = getattr(lowering, "Lower", None)
    return _Fence(
        "lowering",
        {
            "CPUCallConv.call_function": (convention, "self builder callee resty argtys args attrs"),
            "CPUCallConv.return_user_exc": (convention, "self builder exc exc_args loc func_name"),
            "CPUCallConv.return_status_propagate": (convention, "self builder status"),
            "CPUCallConv.set_static_user_exc": (convention, "self builder exc exc_args loc func_name"),
            "CPUCallConv._return_errcode_raw": (convention, "self builder code"),
            "CPUCallConv._get_excinfo_argument": (convention, "self func"),
            "CPUCallConv._get_arg_packer": (convention, "self argtypes"),
            "ArgPacker.__init__": (getattr(datamodel, "ArgPacker", None), "self dmm fe_args"),
            "ArgPacker.as_arguments": (getattr(datamodel, "ArgPacker", None), "self builder values"),
            "ArgPacker.from_arguments": (getattr(datamodel, "ArgPacker", None), "self builder args"),
            "BooleanModel.from_data": (getattr(datamodel.models, "BooleanModel", None), "self builder value"),
            "BaseContext.get_abi_sizeof": (type(cpu_target.target_context), "self ty"),
            "callconv.Status": (
                callconv,
                "code is_ok is_none is_error is_stop_iteration is_python_exc is_user_exc excinfoptr",
            ),
            "Lower.setup_function": (lower, "self fndesc"),
            "Lower.lower_normal_function": (lower, "self fndesc"),
            "Lower.lower_assign": (lower, "self ty inst"),
            "Lower.lower_block": (lower, "self block"),
            "Lower.lower_inst": (lower, "self inst"),
            "Lower.pre_block": (lower, "self block"),
            "Lower.post_block": (lower, "self block"),
            "Lower.alloca_lltype": (lower, "self name lltype datamodel"),
            "Lower.storevar": (lower, "self value name argidx"),
            "Lower.delvar": (lower, "self name"),
            "Lower.getvar": (lower, "self name"),
            "Lower._find_singly_assigned_variable": (lower, "self"),
            "PostProcessor.run": (getattr(postproc, "PostProcessor", None), "self emit_dels extend_lifetimes"),
            "arrayobj.make_array": (_arrayobj(), "array_type"),
            "cgutils.alloca_once": (cgutils, "builder ty size name zfill"),
            "ValueStructProxy.__init__": (getattr(cgutils, "ValueStructProxy", None), "self context builder value ref"),
        },
    )


@functools.cache
def _written() -> Any:
    """How kernels are written for LLVM: only compiling needs it."""
    from kwire.kernels import lowering

    return lowering


_libraries: Final = _Fence(
    "libraries",
    {
        "JITCodeLibrary.finalize": (getattr(codegen, "JITCodeLibrary", None), "self"),
        "JITCodeLibrary.get_pointer_to_function": (getattr(codegen, "JITCodeLibrary", None), "self name"),
        "JITCodeLibrary.add_linking_library": (getattr(codegen, "JITCodeLibrary", None), "self library"),
        "JITCodeLibrary._finalize_dynamic_globals": (getattr(codegen, "JITCodeLibrary", None), "self"),
        "JITCodeLibrary._optimize_functions": (getattr(codegen, "JITCodeLibrary", None), "self ll_module"),
        "JITCodeLibrary._optimize_final_module": (getattr(codegen, "JITCodeLibrary", None), "self"),
        "JITCPUCodegen._module_pass_manager": (getattr(codegen, "JITCPUCodegen", None), "self kwargs"),
        "JITCodeLibrary._get_module_for_linking": (getattr(codegen, "JITCodeLibrary", None), "self"),
        "JITCodeLibrary._get_compiled_object": (getattr(codegen, "JITCodeLibrary", None), "self"),
        "JITCodeLibrary.serialize_using_object_code": (getattr(codegen, "JITCodeLibrary", None), "self"),
        "JITCPUCodegen.create_library": (getattr(codegen, "JITCPUCodegen", None), "self name kwargs"),
        "JITCPUCodegen.set_env": (getattr(codegen, "JITCPUCodegen", None), "self env_name env"),
        "JitEngine.is_symbol_defined": (getattr(codegen, "JitEngine", None), "self name"),
    },
)
_cache: Final = _Fence(
    "cache",
    {
        "FunctionCache.load_overload": (getattr(caching, "FunctionCache", None), "self sig target_context"),
        "FunctionCache._load_overload": (getattr(caching, "FunctionCache", None), "self sig target_context"),
        "FunctionCache.save_overload": (getattr(caching, "FunctionCache", None), "self sig data"),
        "FunctionCache._guard_against_spurious_io_errors": (getattr(caching, "FunctionCache", None), "self"),
        "_CacheLocator.from_function": (getattr(caching, "_CacheLocator", None), "py_func py_file"),
        "_CacheLocator.get_cache_path": (getattr(caching, "_CacheLocator", None), "self"),
        "_CacheLocator.get_source_stamp": (getattr(caching, "_CacheLocator", None), "self"),
        "_CacheLocator.get_disambiguator": (getattr(caching, "_CacheLocator", None), "self"),
        "_CacheLocator.ensure_cache_path": (getattr(caching, "_CacheLocator", None), "self"),
        "caching.CompileResultCacheImpl": (caching, "py_func"),
    },
)
_kept: Final = _Fence(
    "kept",
    {
        "FunctionCache._index_key": (getattr(caching, "FunctionCache", None), "self sig codegen"),
        "IndexDataCacheFile._load_index": (getattr(caching, "IndexDataCacheFile", None), "self"),
    },
)
_PASSES: Final = (
    (_untyped, ("TranslateByteCode", "FixupArgs", "IRProcessing", "RewriteSemanticConstants", "DeadBranchPrune")),
    (_untyped, ("GenericRewrites", "ReconstructSSA")),
    (_typed, ("NopythonTypeInference", "PreLowerStripPhis", "IRLegalization", "NativeLowering", "NoPythonBackend")),
)
"""The passes that a kernel goes through, in numba's order."""
_passes: Final = _Fence(
    "passes",
    {
        "PassManager.add_pass": (getattr(machinery, "PassManager", None), "self pss description"),
        "PassManager.finalize": (getattr(machinery, "PassManager", None), "self"),
        "CompilerBase.define_pipelines": (getattr(compiler, "CompilerBase", None), "self"),
        **{
            f"{name}.run_pass": (getattr(owner, name, None), "self state") for owner, names in _PASSES for name in names
        },
    },
)
_calls: Final = _Fence(
    "calls",
    {
        "BaseFunction.get_call_type": (getattr(functions, "BaseFunction", None), "self context args kws"),
        "Dispatcher.get_call_template": (getattr(dispatching, "Dispatcher", None), "self args kws"),
    },
)
_inference: Final = _Fence(
    "inference",
    {
        "ConstraintNetwork.propagate": (getattr(typeinfer, "ConstraintNetwork", None), "self typeinfer"),
        "TypeInferer.add_type": (getattr(typeinfer, "TypeInferer", None), "self var tp loc unless_locked"),
        "TypeInferer.copy_type": (getattr(typeinfer, "TypeInferer", None), "self src_var dest_var loc"),
        "TypeVarMap.__getitem__": (getattr(typeinfer, "TypeVarMap", None), "self name"),
        "TypeVar.add_type": (getattr(typeinfer, "TypeVar", None), "self tp loc"),
        "WarningsFixer.catch_warnings": (getattr(errors, "WarningsFixer", None), "self filename lineno"),
    },
)
_names: Final = _Fence(
    "names",
    {
        "BaseContext.mangler": (type(cpu_target.target_context), "self name types abi_tags uid"),
        "itanium_mangler.mangle": (mangler, "ident argtys abi_tags uid"),
    },
)
_stages: Final = _Fence(
    "stages",
    {
        "JITCodeLibrary._finalize_final_module": (getattr(codegen, "JITCodeLibrary", None), "self"),
        "JITCPUCodegen._customize_tm_options": (getattr(codegen, "JITCPUCodegen", None), "self options"),
        "FunctionCache.save_overload": (getattr(caching, "FunctionCache", None), "self sig data"),
        "CompileResultCacheImpl.get_filename_base": (
            getattr(caching, "CompileResultCacheImpl", None),
            "self fullname abiflags",
        ),
        "CompileResult._reduce": (getattr(compiler, "CompileResult", None), "self"),
    },
)
_variables: Final = _Fence("variables", {"Inst._rec_list_vars": (getattr(ir, "Inst", None), "self val")})


def closed() -> list[str]:
    """The names of the fences whose parts of numba have changed: kernels compile without them."""
    every = (
        _indices(),
        _lowering(),
        _libraries,
        _cache,
        _kept,
        _passes,
        _calls,
        _inference,
        _names,
        _stages,
        _variables,
    )
    return [one.name for one in every if not one.open]


# --- Where machine code is kept ----------------------------------------------------------------------------------


if _cache.open:

    class _Locator(caching._CacheLocator):  # type: ignore[misc]
        """Tells numba the folder; the name of the folder says all that a stamp could."""

        def __init__(self, function: Any) -> None:
            self._function = function

        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> _Locator:
            return cls(py_func)

        def get_cache_path(self) -> str:
            return str(cache.folder())

        def get_source_stamp(self) -> str:
            return cache.digest()

        def get_disambiguator(self) -> None:
            return None

        def ensure_cache_path(self) -> None:
            pass

    class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (_Locator,)

    class _Cache(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = _Implementation

        counts_references = True
        """Whether the function may: then its code calls what numba sets up when a context is refreshed."""

        claim: Callable[[], None] = staticmethod(lambda: None)
        """Called where there is no machine code. It waits until no other process makes it."""
        missed: Callable[[], None] = staticmethod(lambda: None)
        """Called where there is still none, before it is made."""

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            found = self._found(sig, target_context)
            if found is None:
                self.claim()
                found = self._found(sig, target_context)
            if found is None:
                self.missed()
            return found

        def types(self, target_context: Any) -> list[Any]:
            """Those of the arguments for which machine code is kept."""
            codegen_ = target_context.codegen()
            try:
                found = self._cache_file._load_index()
                return [key[0] for key in found if key == self._index_key(key[0], codegen_)]
            except Exception:  # of damaged bytes, as below: a file that is damaged is as good as none
                return []

        def _found(self, sig: Any, target_context: Any) -> Any:
            try:
                if self.counts_references:
                    return super().load_overload(sig, target_context)
                # A refresh makes everything known that numba can compile: 0.3 s. Code of a kernel needs none of it, and
                # compiling refreshes the context by itself.
                with self._guard_against_spurious_io_errors():
                    return self._load_overload(sig, target_context)
            except Exception:  # what unpickling of damaged bytes raises may be anything
                with contextlib.suppress(OSError):
                    self.flush()
                return None

        @contextlib.contextmanager
        def _guard_against_spurious_io_errors(self) -> Iterator[None]:
            with contextlib.suppress(OSError):
                yield


def keep(dispatcher: Any) -> None:
    """The machine code of a dispatcher of numba is kept on disk, and loaded from there."""
    if _cache.open:
        dispatcher._cache = _Cache(dispatcher.py_func)
        dispatcher._cache.counts_references = dispatcher.targetoptions.get("_nrt", True)


# --- How an index is checked -------------------------------------------------------------------------------------


def _index(context: Any, builder: Any, idxty: Any, idx: Any, size: Any) -> Any:
    """In place of ``arrayobj.fix_integer_index``: an index as it is."""
    return context.cast(builder, idx, idxty, _arrayobj().types.intp)


def _check(context: Any, builder: Any, ind: Any, dimlen: Any, axis: Any = None) -> None:
    """In place of ``cgutils.do_boundscheck``: a negative index is larger than any, as a number without a sign."""
    outside = builder.icmp_unsigned(">=", ind, dimlen)
    if _lowering().open and _written().index_error(context, builder, outside):
        return
    with cgutils.if_unlikely(builder, outside):
        context.call_conv.return_user_exc(builder, IndexError, ("index is out of bounds",))


# --- What is optimised, and when ---------------------------------------------------------------------------------


_PASSES_OF_LLVM: Final = hasattr(getattr(codegen, "JITCPUCodegen", None), "_pass_builder")
"""Whether this numba has LLVM's new pass managers."""
_FROM_PYTHON: Final = "_ZN7cpython"
"""What the names of functions begin with that Python calls."""

if _libraries.open:

    class _Part(codegen.JITCodeLibrary):  # type: ignore[misc]
        """The code of a kernel that is a part of others: LLVM's intermediate representation, as it was written."""

        def _optimize_functions(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout

        def finalize(self) -> None:
            self._raise_if_finalized()
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0

    class _Entry(codegen.JITCodeLibrary):  # type: ignore[misc]
        """The code of a kernel that Python calls. All its parts are linked into it, then all is optimised once."""

        def finalize(self) -> None:
            found: dict[Any, None] = {}
            waiting: list[Any] = list(self._linking_libraries)
            while waiting:
                one = waiting.pop()
                if one not in found:
                    found[one] = None
                    # Another library is complete: numba has linked into it what it calls.
                    if isinstance(one, _Part):
                        waiting.extend(one._linking_libraries)
            self._linking_libraries: list[Any] = list(found)
            super().finalize()

        def _optimize_functions(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout

        def _hide_parts(self) -> None:
            """Nobody else calls the parts: LLVM may inline what is called once, and drop what is left over."""
            for one in self._final_module.functions:
                if one.is_declaration:
                    continue
                if one.linkage == codegen.ll.Linkage.linkonce_odr:
                    one.linkage = "internal"
                    continue
                if _PASSES_OF_LLVM and one.name.startswith(_FROM_PYTHON):
                    # It takes arguments out of Python's objects, once for each call. numba inlines nothing into it.
                    one.add_function_attribute("noinline")
                    one.add_function_attribute("optnone")

        def _optimize_final_module(self) -> None:
            self._hide_parts()
            if not _PASSES_OF_LLVM:
                super()._optimize_functions(self._final_module)
                super()._optimize_final_module()
                return
            passes, builder = self._codegen._module_pass_manager()
            # numba would optimise each function, then all that is inlined by order, then the whole. The last does all
            # of it. But it looks at a function's size before it has seen that most of its variables are no memory.
            first = codegen.ll.create_new_function_pass_manager()
            first.add_sroa_pass()
            first.add_simplify_cfg_pass()
            for one in self._final_module.functions:
                if not one.is_declaration:
                    first.run(one, builder)
            passes.run(self._final_module, builder)

        def serialize_using_object_code(self) -> Any:
            """The machine code, with a module that has its names and no bodies. Nobody links an entry into another
            kernel. To read the whole module takes as long as to load the code."""
            self._ensure_finalized()
            module = self._final_module
            lines = [f'target triple = "{module.triple}"', f'target datalayout = "{module.data_layout}"']
            for made, body in (
                (module.functions, "define void @{}() {{ unreachable }}"),
                (module.global_variables, "@{} = global i64 0"),
            ):
                lines += [
                    body.format(f'"{one.name}"')
                    for one in made
                    if not one.is_declaration
                    and one.linkage not in (codegen.ll.Linkage.internal, codegen.ll.Linkage.private)
                ]
            names = codegen.ll.parse_assembly("\n".join(lines))
            return self.name, "object", (self._get_compiled_object(), names.as_bitcode())


# --- Quick machine code ------------------------------------------------------------------------------------------


@functools.cache
def _quick_machine() -> Any:
    """What makes machine code without thinking about it."""
    options_: dict[str, Any] = {"opt": 0}
    cpu_target.target_context.codegen()._customize_tm_options(options_)
    target = codegen.ll.Target.from_triple(codegen.ll.get_process_triple())
    return target.create_target_machine(**options_)


if _cache.open and _libraries.open and _stages.open:

    class _InStages(_Entry):
        """The code of a kernel that this process does not run: it makes the machine code twice, for others."""

        _final_module: Any

        def _optimize_final_module(self) -> None:
            self._hide_parts()

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

        def _made_by(self, machine: Any, module: Any) -> None:
            self._compiled, self._compiled_object = True, machine.emit_object(module)

        @contextlib.contextmanager
        def quick(self, names: dict[str, str]) -> Iterator[None]:
            """Within the block it has the machine code that is made at once, of functions with these names."""
            whole = self._final_module
            self._final_module = codegen.ll.parse_bitcode(whole.as_bitcode())
            try:
                for name, other in names.items():
                    self._final_module.get_function(name).name = other
                self._made_by(_quick_machine(), self._final_module)
                yield
            finally:
                self._final_module = whole

        def optimise(self) -> None:
            """Makes the machine code as an entry has it."""
            super()._optimize_final_module()
            self._made_by(self._codegen._tm, self._final_module)

    class _QuickImplementation(_Implementation):
        def get_filename_base(self, fullname: str, abiflags: str) -> str:
            base: str = super().get_filename_base(cache.QUICK + fullname, abiflags)
            return base

        def reduce(self, data: Any) -> Any:
            # Parts need no environment. Where nothing is optimised they still have a name for it, and no place.
            return (*super().reduce(data)[:-1], ())

    class _QuickCache(_Cache):
        """Quick machine code, which stands beside the other."""

        _impl_class = _QuickImplementation

    class _Both:
        """In place of a cache: keeps quick machine code at once. ``finish`` keeps what is optimised."""

        def __init__(self, function: Any) -> None:
            self._quick, self._full = _QuickCache(function), _Cache(function)
            self.claim: Callable[[], None] = lambda: None
            self.missed: Callable[[], None] = lambda: None
            self.finish: Callable[[], None] = lambda: None

        def load_overload(self, sig: Any, target_context: Any) -> None:
            self.missed()

        def save_overload(self, sig: Any, data: Any) -> None:
            library, described = data.library, data.fndesc
            # One process loads both, and finds functions by their names.
            name = described.mangled_name
            wrapper = described.llvm_cpython_wrapper_name
            described.mangled_name = f"{name}.quick"
            try:
                with library.quick({name: f"{name}.quick", wrapper: described.llvm_cpython_wrapper_name}):
                    self._quick.save_overload(sig, data)
            finally:
                described.mangled_name = name

            def finish() -> None:
                with compiler_lock:
                    library.optimise()
                    self._full.save_overload(sig, data)

            self.finish = finish


def in_stages(dispatcher: Any, complete: Callable[[], None], types: tuple[Any, ...]) -> Callable[[], None] | None:
    """Keeps quick machine code of a kernel, for others. Returns what makes that which is optimised, and keeps it.

    Returns ``None``, and has done nothing, where a fence is closed."""
    if not (_cache.open and _libraries.open and _stages.open):
        return None
    dispatcher._cache = both = _Both(dispatcher.py_func)
    _fenced(dispatcher, _InStages, complete).compile(types)
    return both.finish


# --- What numba need not do --------------------------------------------------------------------------------------


if _passes.open:

    class _Passes(compiler.CompilerBase):  # type: ignore[misc]
        """What a kernel goes through on its way to machine code."""

        def define_pipelines(self) -> list[Any]:
            made = machinery.PassManager("kwire")
            ours = {"NativeLowering": _written().Lowering, "IRLegalization": None} if _lowering().open else {}
            for owner, names in _PASSES:
                for name in names:
                    if (one := ours.get(name, getattr(owner, name))) is not None:
                        made.add_pass(one, name)
            made.finalize()
            return [made]


def options() -> dict[str, Any]:
    """What ``numba.njit`` is told about a kernel besides what ``kwire.kernels.compiling`` tells it."""
    return {"pipeline_class": _Passes} if _passes.open else {}


class _Calls:
    """In place of ``BaseFunction.get_call_type``: what was found for these types once is found again.

    The type of a function keeps the implementation of each signature, which anyone may replace. So it is set again."""

    def __init__(self) -> None:
        self.found: dict[Any, tuple[Any, Any]] = {}
        self.find: Any = functions.BaseFunction.get_call_type if _calls.open else None

    def get_call_type(self, function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return self.find(function, context, args, kws)
        key = context, function, args
        found = self.found.get(key)
        if found is None:
            signature = self.find(function, context, args, kws)
            found = self.found[key] = signature, function._impl_keys[signature.args]
        signature, function._impl_keys[signature.args] = found
        return signature


@functools.cache
def _of_types(types: tuple[Any, ...], tags: tuple[str, ...]) -> str:
    return hashlib.blake2b("\n".join(map(str, (*types, *tags))).encode(), digest_size=8).hexdigest()


def _mangled(self: Any, name: str, types: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """In place of ``BaseContext.mangler``: a name with a digest of the types in place of all of them."""
    made: str = mangler.mangle(name, (), abi_tags=(_of_types(tuple(types), tuple(abi_tags)),), uid=uid)
    return made


_types: Final = _Calls()


def _get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
    return _types.get_call_type(self, context, args, kws)


def _rec_list_vars(self: Any, val: Any) -> list[Any]:
    """In place of ``Inst._rec_list_vars``: the same, where most values are told by their class alone."""
    kind = val.__class__
    if kind is ir.Var:
        return [val]
    if kind in _PLAIN:
        return []
    if isinstance(val, ir.Inst):
        return val.list_vars()
    if isinstance(val, dict):
        val = val.values()
    elif not isinstance(val, list | tuple):
        return [val] if isinstance(val, ir.Var) else []
    found: list[Any] = []
    for one in val:
        found += _rec_list_vars(self, one)
    return found


_PLAIN: Final = frozenset({str, int, bool, type(None), getattr(ir, "Loc", type(None))})


class _Compiling:
    """The kernels that are being compiled, the innermost last, with the class of the library of each."""

    def __init__(self) -> None:
        self.stack: list[tuple[str, Any]] = []

    def create_library(self, name: str, **options: Any) -> Any:
        """In place of ``JITCPUCodegen.create_library``. What numba compiles for itself has another name."""
        made_by = cpu_target.target_context.codegen()
        kind = self.stack[-1][1] if self.stack[-1][0] == name else made_by._library_class
        return kind(made_by, name, **options)

    def set_env(self, env_name: str, env: Any) -> None:
        """In place of ``JITCPUCodegen.set_env``: a part has no place for it, since it is no machine code."""
        made_by = cpu_target.target_context.codegen()
        if made_by._engine.is_symbol_defined(env_name):
            codegen.JITCPUCodegen.set_env(made_by, env_name, env)


_compiling: Final = _Compiling()


@contextlib.contextmanager
def _replaced() -> Iterator[None]:
    """Within the block, numba compiles with what stands above, as far as fences are open. For the outermost kernel."""
    made_by = cpu_target.target_context.codegen()
    with contextlib.ExitStack() as undo:
        if _indices().open:
            arrayobj = _arrayobj()
            undo.callback(setattr, arrayobj, "fix_integer_index", arrayobj.fix_integer_index)
            undo.callback(setattr, cgutils, "do_boundscheck", cgutils.do_boundscheck)
            arrayobj.fix_integer_index, cgutils.do_boundscheck = _index, _check
        if _passes.open and _lowering().open:
            from numba.core import callconv, datamodel, postproc

            written, convention = _written(), callconv.CPUCallConv
            for owner, name, ours in (
                (convention, "_get_arg_packer", written.argument_packer),
                (convention, "call_function", written.call_function),
                (convention, "return_user_exc", written.return_user_error),
                (convention, "return_status_propagate", written.return_status),
                (datamodel.models.BooleanModel, "from_data", written.truth),
                (postproc.PostProcessor, "run", written.process),
                (_arrayobj(), "make_array", written.array_maker),
            ):
                undo.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, ours)
        if _calls.open:
            undo.callback(setattr, functions.BaseFunction, "get_call_type", functions.BaseFunction.get_call_type)
            functions.BaseFunction.get_call_type = _get_call_type
        if _names.open:
            named = type(cpu_target.target_context)
            undo.callback(setattr, named, "mangler", named.mangler)
            named.mangler = _mangled
        if _inference.open:
            from kwire.kernels import inferring

            for owner, name in (
                (typeinfer.ConstraintNetwork, "propagate"),
                (typeinfer.TypeInferer, "add_type"),
                (typeinfer.TypeInferer, "copy_type"),
            ):
                undo.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, getattr(inferring, name))
        if _variables.open:
            undo.callback(setattr, ir.Inst, "_rec_list_vars", ir.Inst._rec_list_vars)
            ir.Inst._rec_list_vars = _rec_list_vars
        if _libraries.open:
            undo.callback(delattr, made_by, "create_library")
            made_by.create_library = _compiling.create_library
            undo.callback(delattr, made_by, "set_env")
            made_by.set_env = _compiling.set_env
        yield


def _fenced(
    dispatcher: Any,
    library: Any,
    complete: Callable[[], None] | None = None,
    claimed: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> Any:
    """``complete``: of a kernel whose machine code is kept, what to do before it is compiled. ``claimed``: around."""
    compile_: Callable[[Any], Any] = dispatcher.compile

    def compile_so(signature: Any) -> Any:
        with compiler_lock, contextlib.ExitStack() as undo:
            outermost = not _compiling.stack

            def begin() -> None:
                if complete is not None:
                    complete()
                if outermost:
                    undo.enter_context(_replaced())

            _compiling.stack.append((dispatcher.py_func.__qualname__, library))
            try:
                if complete is not None and _cache.open:
                    dispatcher._cache.claim = lambda: undo.enter_context(claimed())
                    dispatcher._cache.missed = begin
                else:
                    begin()
                return compile_(signature)
            finally:
                _compiling.stack.pop()

    dispatcher.compile = compile_so
    return dispatcher


def entry(
    dispatcher: Any,
    complete: Callable[[], None] = lambda: None,
    claimed: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> Any:
    """``dispatcher``, of a kernel that Python calls, compiled within the fences. Its machine code is kept.

    ``complete`` is called before it is compiled, and not where machine code is loaded. ``claimed`` is entered where
    there is no machine code. What another process has made when it is entered is loaded."""
    keep(dispatcher)
    return _fenced(dispatcher, _Entry if _libraries.open else None, complete, claimed)


def quick_entry(dispatcher: Any, claimed: Callable[[], contextlib.AbstractContextManager[object]]) -> Any:
    """``dispatcher`` as an ``entry`` whose quick machine code is loaded. ``None`` where none can be.

    Nothing is compiled for it: ``claimed`` is called in place of that, and should raise what the caller expects."""
    if not (_cache.open and _libraries.open and _stages.open and _kept.open):
        return None
    dispatcher._cache = _QuickCache(dispatcher.py_func)
    dispatcher._cache.counts_references = dispatcher.targetoptions.get("_nrt", True)
    made = _fenced(dispatcher, _Entry, lambda: None, claimed)
    return made if load(made) else None


def types_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types of arguments, as a dispatcher finds them."""
    return tuple(map(typeof, args))


def part(dispatcher: Any) -> Any:
    """``dispatcher``, of a kernel that other kernels call, compiled within the fences."""
    if _calls.open:
        find = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: find(tuple(map(_general, args)), kws)
    return _fenced(dispatcher, _Part if _libraries.open else None)


def _general(type_: Any) -> Any:
    """The type with which a kernel is compiled for an argument of a type. A number has one, whether it is known, of an
    enum, or short: or the kernel would be compiled for each."""
    if isinstance(type_, types.IntegerLiteral | types.IntEnumMember) or (type_ in types.signed_domain):
        return types.int64
    return type_


def load(dispatcher: Any) -> int:
    """Loads the machine code that is kept of an ``entry``, and compiles none. Returns for how many types there is."""
    if not (_cache.open and _kept.open):
        return 0
    found = dispatcher._cache.types(cpu_target.target_context)
    for one in found:
        dispatcher.compile(one)
    return len(found)
