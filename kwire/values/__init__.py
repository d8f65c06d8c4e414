"""Values of records, typed: Avro, Protobuf and JSON behind any registry's framing, for whole columns.

    from kwire.values import Schemas, decode

    found = decode(column, Schemas.of("schemas/"), headers=headers, topics="orders")
    found.values, found.status          # JSON text, and what became of each value

``column`` is a ``pyarrow`` array of bytes, from wherever. ``Schemas.of`` takes a folder, the URL of a registry, a
broker's data folder with the topic ``_schemas``, or texts by topic. With ``Reader.of`` values become one Arrow type.

- ``framing``: what stands in front of a value, and which schema it names
- ``sources``, ``registry``, ``written``: where schemas come from
- ``avro``, ``protobuf``, ``json``, ``binary`` (MessagePack and CBOR): the formats
- ``validity``: whether JSON holds to its JSON Schema
- ``decoding``: which claim holds, and what the value says
- ``texts``: Arrow arrays as JSON text; ``masking``: fields that nobody is shown

Needs the extras ``capture`` and ``values``. Importing this package alone imports neither numpy nor pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.values.decoding import Decoded, Reader, decode
    from kwire.values.masking import Mask
    from kwire.values.registry import Registry
    from kwire.values.sources import Schemas
    from kwire.values.written import Written

__all__ = ["Decoded", "Mask", "Reader", "Registry", "Schemas", "Written", "decode"]

_MODULES = {
    "Decoded": "decoding",
    "Mask": "masking",
    "Reader": "decoding",
    "Registry": "registry",
    "Schemas": "sources",
    "Written": "written",
    "decode": "decoding",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import importlib

        return getattr(importlib.import_module(f"kwire.values.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
