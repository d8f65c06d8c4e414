"""Everything that numba compiles, in stages, and the record types that the stages share. Nothing else imports numba.

::

    packets    capture bytes -> packets                    numbers    reading numbers out of bytes
    tracking   packets -> TCP segments, connections        layouts    record types, words
    streams    segments -> bytes in order                  names      byte strings that occur over and over
    roles      who is the client, is it Kafka at all       programs   layouts of messages as programs
    framing    bytes -> frames                             checksums  CRC-32 and CRC-32C
    pairing    responses to their requests
    records    record sets -> columns                      segments   log segments

``engine`` says which way a kernel runs, as Python or as machine code. ``compiling``, ``intrinsics`` and ``cache`` make
and keep the machine code. What only needs Python (files, schemas, Arrow) is no concern of this package.
"""
