"""The message classes by name: ``kwire.messages.ProduceRequest``, ``kwire.messages.FetchResponse`` and so on.

A class is made when its name is first used. A nested struct is an attribute of its message's class
(``ProduceRequest.TopicProduceData``). The stub beside this module is generated from the schemas (``python -m
kwire.codec.stubs``). It gives type checkers and editors the fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire import schema
from kwire.codec import registry
from kwire.errors import SchemaError

if TYPE_CHECKING:
    from kwire.codec.objects import WireMessage


def __getattr__(name: str) -> type[WireMessage]:
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        made = registry.message_class(schema.message(name))
    except SchemaError as error:
        raise AttributeError(f"kwire knows no message named {name!r}") from error
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted(schema.names())
