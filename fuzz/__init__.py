"""Fuzz harnesses: ``python -m fuzz``. Each module states the invariant that it holds kwire to in its first comment."""
