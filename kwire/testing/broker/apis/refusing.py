"""The answer to a request that the broker does not carry out: an error for all that the request names.

Kafka's requests make such answers of themselves (``getErrorResponse``). Here the answer is made of the layouts of both
messages: where the response has no error code of its own, each struct of the request's arrays has one in the response.
"""

from __future__ import annotations

from typing import Any

from kwire import schema
from kwire.codec import registry
from kwire.codec.objects import WireMessage, WireStruct
from kwire.schema import model
from kwire.testing.broker.asking import Ask

__all__ = ["refuse"]


def refuse(ask: Ask, code: int) -> WireMessage:
    """A response with an error code, at its top or in each struct that the request has something for."""
    message = schema.response(ask.key)
    assert message is not None
    layout = model.layout(message, ask.version)
    made: Any = registry.message_class(message)()
    if any(one.name == "error_code" for one in layout.fields):
        made.error_code = code
    else:
        _fill(message, layout, ask.body, made, code)
    answer: WireMessage = made
    return answer


def _fill(message: model.Message, layout: model.StructLayout, asked: WireStruct, made: Any, code: int) -> None:
    """Copy what both sides have, and go down where both have an array."""
    names = [one.name for one in asked.FIELDS]
    arrays = [value for value in (getattr(asked, name) for name in names) if isinstance(value, list | tuple)]
    for one in layout.fields:
        element = getattr(one.type, "element", None)
        if one.name == "error_code":
            made.error_code = code
        elif isinstance(element, model.StructLayout):
            of_structs = [some for some in arrays if not some or isinstance(some[0], WireStruct | int)]
            setattr(made, one.name, [_one(message, element, each, code) for each in (of_structs or [()])[0]])
        elif isinstance(one.type, model.PrimitiveLayout):
            if one.name in names:
                setattr(made, one.name, getattr(asked, one.name))
            elif one.nullable:
                setattr(made, one.name, None)


def _one(message: model.Message, layout: model.StructLayout, asked: Any, code: int) -> Any:
    made: Any = registry.struct_class(message, layout.name)()
    if isinstance(asked, WireStruct):
        _fill(message, layout, asked, made, code)
    else:
        # A number, such as that of a partition, is the first field of its result.
        setattr(made, layout.fields[0].name, asked)
        made.error_code = code
    return made
