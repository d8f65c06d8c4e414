"""What may still be decompressed, after some was and some could not be."""

from __future__ import annotations

from kwire.limits import Limits
from kwire.records.budget import Budget

MIB = 1 << 20


def test_what_fails_costs_a_kibibyte_for_each_of_its_bytes_and_four_more() -> None:
    budget = Budget(Limits(decompressed=4 * MIB, total=4 * MIB))
    # A quarter of the total is for failures, which cost 8 KiB each.
    for _ in range(MIB // 8192):
        assert budget.limit(4) == 4 * MIB
        budget.failed(budget.limit(4), 4)
    assert budget.limit(4) == 64 * 4 + MIB
    # From now on they are charged to the total, but no more than they were allowed to become.
    budget.failed(budget.limit(4), 4)
    assert budget.limit(MIB) == 4 * MIB - 8192
    budget.failed(100, 4)
    assert budget.limit(MIB) == 4 * MIB - 8192 - 100
