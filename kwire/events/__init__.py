"""What travels inside records and requests: CloudEvents, Eclipse Hono telemetry, client telemetry.

There is one module per specification, and none imports another:

- ``cloudevents``: the Kafka protocol binding of CloudEvents 1.0
- ``hono``: the Telemetry API for Kafka
- ``telemetry``: KIP-714, with ``otlp`` and ``sessions``

``media`` holds the rules of media types, which the first two need. ``rules`` says what violations are. They work on one
record; ``columns`` does the same for whole columns of records, and reads patterns and words from them. Spark
(``kwire.spark.events``) and the command line call ``columns``.

Importing this package imports nothing. What an optional package is needed for (``kwire[events]``) is imported where it
is used.
"""
