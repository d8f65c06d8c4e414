"""Answers out of tables: which clients an upgrade breaks (``audit``), what goes wrong (``findings``), who writes and
who reads which topic (``lineage``).

Each takes Arrow batches of the tables of ``kwire.tables``, from a capture or from anywhere else, and keeps sums only.
"""
