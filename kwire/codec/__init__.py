"""Layouts to byte-exact codecs: generated Python (``decoder``, ``encoder``), its twin (``tracked``), the reference."""
