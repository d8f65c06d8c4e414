"""Lets Spark find the data source ``kwire`` by itself.

On the first use of a Python data source, Spark imports every top-level module whose name begins with ``pyspark_`` and
registers what it exposes as ``DefaultSource``. So ``spark.read.format("kwire")`` works wherever kwire is installed.
"""

from kwire.spark.source import KwireDataSource as DefaultSource

__all__ = ["DefaultSource"]
