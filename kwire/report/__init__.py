"""Answers out of tables: which clients an upgrade breaks (``audit``), what goes wrong (``findings``), who writes and
who reads which topic (``lineage``).

Each takes Arrow batches of the tables of ``kwire.tables``, from a capture or from anywhere else, and keeps sums only.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DEFAULT_TARGET"]

DEFAULT_TARGET: Final = "4.0"
"""The release of Kafka that clients are judged against, unless another one is asked for."""
