"""Avro values as columns of Arrow: schemas become programs that a kernel runs over all rows of a column at once."""

from __future__ import annotations

from kwire.values.avro.decoding import STATUSES, Decoded, decode
from kwire.values.avro.schema import Schema, parse

__all__ = ["STATUSES", "Decoded", "Schema", "decode", "parse"]
