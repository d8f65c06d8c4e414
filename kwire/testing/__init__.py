"""Valid and hostile input, for the tests of kwire and of anyone else's Kafka parser.

``strategies`` makes messages, frames and layouts for Hypothesis; ``mutation`` damages bytes. Needs the ``fuzz`` extra
(``pip install 'kwire[fuzz]'``).
"""

from __future__ import annotations

from kwire.errors import MissingExtraError

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError:
    raise MissingExtraError("kwire.testing", "fuzz") from None

from kwire.testing.mutation import mutate, mutations
from kwire.testing.strategies import Frame, frames, layouts, messages

__all__ = ["Frame", "frames", "layouts", "messages", "mutate", "mutations"]
