"""Record sets that other parsers get wrong, by name."""

from __future__ import annotations

import pytest

from kwire import records
from kwire.errors import DecodeError

MAGIC_0 = "0000000000000007 00000010 1fecd70a 00 00 00000001 6b 00000001 76"
MAGIC_1 = "0000000000000008 00000018 39268c33 01 00 0000018bcfe56800 00000001 6b 00000001 76"
MAGIC_2 = (
    "0000000000000009 0000003a ffffffff 02 e99b8dd8 0000 00000000 0000018bcfe56800 0000018bcfe56800"
    "ffffffffffffffff ffff ffffffff 00000001 10 00 00 00 02 6b 02 76 00"
)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 2), (2, 0), (1, 2), (2, 1)])
def test_formats_side_by_side_as_after_an_upgrade_of_the_brokers(order: tuple[int, ...]) -> None:
    """aiokafka 0.14.0: a SystemError, or an unknown codec: it takes all entries for the format of the first one."""
    data = bytes.fromhex("".join((MAGIC_0, MAGIC_1, MAGIC_2)[one] for one in order))
    batches = list(records.decode(data, verify_crc=True))
    assert [batch.magic for batch in batches] == list(order)
    assert [one.offset for batch in batches for one in batch.records] == [7 + one for one in order]
    assert {(one.key, one.value) for batch in batches for one in batch.records} == {(b"k", b"v")}


def test_a_magic_that_there_is_not() -> None:
    """kafka-python 3.0.12, aiokafka 0.14.0: it is read as magic 2."""
    with pytest.raises(DecodeError, match="magic 3 is not known"):
        list(records.decode(bytes.fromhex(MAGIC_2.replace(" 02 e9", " 03 e9"))))
