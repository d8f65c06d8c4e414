"""What ``to_dict`` gives, as bodies have it that are structs: written again, without programs and Arrow types."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from kwire.protocol.error_codes import error_name
from kwire.schema import model


def as_column(value: Any, fields: Sequence[model.Field], structs: Mapping[str, model.Struct], payloads: bool) -> Any:
    """What ``to_dict`` gave, as a typed body has it."""
    out: dict[str, Any] = {}
    for field in fields:
        inner = field.type.element if isinstance(field.type, model.Array) else field.type
        found = value.get(field.name)
        many = isinstance(field.type, model.Array)
        made = []
        for one in (found if many else [found]) if found is not None else []:
            if isinstance(inner, model.StructRef):
                made.append(as_column(one, structs[inner.name].fields, structs, payloads))
            elif isinstance(one, UUID):
                made.append(base64.urlsafe_b64encode(one.bytes)[:22].decode())
            elif isinstance(one, str):
                made.append(one.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
            elif field.name == "error_code":
                made.append(error_name(one) or str(one))
            elif inner == model.Primitive("records") and not payloads:
                made.append({"bytes": len(one)})
            else:
                made.append(one)
        out[field.name] = None if found is None else made if many else made[0]
    return out
