"""A log segment that tests make."""

from __future__ import annotations

import random

from kwire.records import Codec, Record, encode


def segment_bytes(batches: int = 50, *, codec: Codec = "none", magic: int = 2, each: int = 20) -> bytes:
    some = random.Random(batches)
    return b"".join(
        encode(
            [
                Record(
                    b"%d" % index,
                    some.randbytes(some.randrange(300)),
                    timestamp=1_700_000_000_000 + number * 100 + index,
                )
                for index in range(each)
            ],
            magic=magic,
            compression=codec,
            base_offset=number * each,
        )
        for number in range(batches)
    )
