"""Layouts to byte-exact codecs: generated Python (``emit``), its careful twin (``tracked``), and the reference."""
