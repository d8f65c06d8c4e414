"""What happened: histories of things that live longer than one exchange, such as groups and transactions.

A history is made in three steps:

1. ``steps``: each frame that matters becomes steps, each alone. A step says whose it is (``owner``, ``place``), as far
   as the frame says it, and what the message says in few words (``said``).
2. ``asked``: a response learns from its request whose it is. It has that request as ``Step.request``.
3. ``fold``: a state machine per owner and place takes steps in order of time, and gives rows.

Within a capture ``Story`` does the second and third step in the same pass. Across files, steps are rows that Spark
brings together by connection (2) and then by owner (3): ``kwire.spark.histories``.

Each history is a ``History`` in a module of its own: ``groups`` and so on. The table of the same name makes columns of
its rows (``kwire.tables.histories``).

Rules kept here:

- Rows depend on the steps and their order only, not on windows, engines or files.
- Nothing is invented. A cause is a request that the capture has, a time-out that fits, or not in the capture.
- State is bounded. What is given up is a row with the status ``given_up``.
- State is data: ``save`` gives values of JSON, and ``restore`` checks them.
"""
