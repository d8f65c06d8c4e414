"""What may be a column of payloads, and the columns beside it: arrays of Arrow, or of whoever gives some.

pandas Series, Polars Series and others give Arrow arrays by its protocols. Rules kept here:

- What comes out is ``binary``, ``large_binary``, integers or bool, as kernels read it.
- Whatever cannot be a column is refused in a sentence that says what to give.
- A column beside the payloads has exactly as many rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import KwireError

__all__ = ["Column", "beside", "binary", "chunks"]

Column = Any
"""A ``pyarrow.Array``, a ``ChunkedArray``, or what gives one (``__arrow_c_stream__``, ``__arrow_c_array__``,
``__arrow_array__``, a Series of pandas)."""

_GIVES = ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__")


def chunks(column: Column) -> list[pa.Array]:
    """The arrays of a column, each of bytes. Raises ``KwireError`` for what is no column of bytes."""
    return [binary(one) for one in _arrays(column)]


def binary(column: pa.Array) -> pa.Array:
    """An array as ``binary`` or ``large_binary``. Raises ``KwireError`` for one that is not of bytes."""
    plain = _plain(column)
    type_ = plain.type
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return plain
    # NULL in SQL has no type.
    if pa.types.is_null(type_) or pa.types.is_fixed_size_binary(type_):
        return plain.cast(pa.large_binary() if plain.nbytes >> 31 else pa.binary())
    if type_ == pa.binary_view():
        return plain.cast(pa.large_binary())
    said = f"the payload is a column of bytes (BINARY), not of the type {column.type}"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or type_ == pa.string_view():
        raise KwireError(f"{said}: make bytes of the text first (hexadecimal: unhex, base64: unbase64, in Spark)")
    if pa.types.is_struct(type_):
        raise KwireError(f"{said}: give one of its fields")
    raise KwireError(said)


def beside(parts: Sequence[pa.Array], of: Any, what: str) -> list[pa.Array]:
    """A column beside the payloads, in arrays as long as ``parts``, or one value for all of them.

    ``what``: what it is, for errors: ``"metadata"`` is bool, anything else integers. Raises ``KwireError``.
    """
    lengths = [len(one) for one in parts]
    flags = what == "metadata"
    if isinstance(of, bool) if flags else _is_number(of):
        try:
            value = pa.scalar(of if flags else index(of), pa.bool_() if flags else pa.int64())
        except (OverflowError, pa.ArrowInvalid):
            raise KwireError(f"{what} are numbers of 16 bits, not {of}") from None
        return [pa.repeat(value, length) for length in lengths]
    kind = "bools, one for each payload, or a bool" if flags else "integers, one for each payload, or a number"
    said = f"metadata is a column of {kind}" if flags else f"{what} are columns of {kind}"
    if not _gives(of):
        raise KwireError(f"{said}, not {type(of).__name__}")
    arrays = [_plain(one) for one in _arrays(of)]
    whole = pa.chunked_array(arrays, arrays[0].type if arrays else pa.null())
    if pa.types.is_null(whole.type):
        whole = whole.cast(pa.bool_() if flags else pa.int64())
    if not (pa.types.is_boolean if flags else pa.types.is_integer)(whole.type):
        raise KwireError(f"{said}, not of the type {whole.type}: cast it first")
    if len(whole) != sum(lengths):
        raise KwireError(f"{said}: there are {sum(lengths):,} payloads and {len(whole):,} values")
    made, first = [], 0
    for length in lengths:
        made.append(whole.slice(first, length).combine_chunks())
        first += length
    return made


def _arrays(column: Column) -> list[pa.Array]:
    if isinstance(column, pa.Array):
        return [column]
    if not isinstance(column, pa.ChunkedArray):
        column = _given(column)
    return list(column.chunks)


def _gives(value: Any) -> bool:
    """Whether this is a column, or gives one."""
    series = type(value).__name__ == "Series"
    return series or isinstance(value, pa.Array | pa.ChunkedArray) or any(hasattr(value, name) for name in _GIVES)


def _given(value: Any) -> pa.ChunkedArray:
    """What another library has as a column."""
    kind = type(value).__name__
    if isinstance(value, pa.Table | pa.RecordBatch) or kind in ("DataFrame", "LazyFrame", "DuckDBPyRelation"):
        raise KwireError(f"payloads are a column of bytes, not {kind}: give one of its columns")
    if not _gives(value):
        raise KwireError(f"payloads are a pyarrow array of bytes, not {kind}: pa.array(values) makes one")
    try:
        made = pa.chunked_array(value) if hasattr(value, "__arrow_c_stream__") else pa.array(value)
    except (pa.ArrowException, TypeError) as wrong:
        said = " ".join(str(wrong).split())
        raise KwireError(f"this {kind} gives no array of bytes: pa.array(values, pa.binary()) does ({said})") from None
    return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])


def _plain(column: pa.Array) -> pa.Array:
    """An array without a dictionary, without runs, and without a type of its own."""
    type_ = column.type
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage)
    if pa.types.is_run_end_encoded(type_):
        return _plain(pc.run_end_decode(column))
    if pa.types.is_dictionary(type_):
        values = type_.value_type
        # The same value many times may be more than an array of small offsets holds.
        return column.cast(pa.large_binary() if pa.types.is_binary(values) else values)
    return column


def _is_number(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool) and not hasattr(value, "__len__")
