"""100,000 damaged frames in columns of payloads, with machine code: each row is what it is by itself."""

from __future__ import annotations

import pytest
from payload_frames import check_requests, check_responses, golden, with_damage

from kwire.kernels.engine import MACHINE, using


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_damaged_frames_each(seed: int) -> None:
    with using(MACHINE):
        check_requests(list(with_damage(golden()[0], 5000, 10 + seed)))
        check_responses(list(with_damage(golden()[1], 5000, 20 + seed)))
