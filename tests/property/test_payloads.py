"""100,000 damaged frames in columns of payloads, with machine code: each row is what it is by itself."""

from __future__ import annotations

from random import Random

import pytest
from payload_frames import (
    check_requests,
    check_responses,
    check_told,
    check_told_responses,
    golden,
    size_in_front,
    with_damage,
)

from kwire.kernels.engine import MACHINE, using


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_damaged_frames_each(seed: int) -> None:
    with using(MACHINE):
        check_requests(list(with_damage(golden()[0], 5000, 10 + seed)))
        check_responses(list(with_damage(golden()[1], 5000, 20 + seed)))


@pytest.mark.wide
@pytest.mark.parametrize("seed", range(5))
def test_frames_with_and_without_a_size_alone_and_together_whole_and_damaged(seed: int) -> None:
    random = Random(seed)
    requests, responses = golden()
    joined = [b"".join(map(size_in_front, random.choices(requests, k=random.randrange(1, 4)))) for _ in range(1000)]
    kinds: dict[tuple[int | None, int | None], list[bytes]] = {}
    for data, *of in responses:
        kinds.setdefault((of[0], of[1]), []).append(data or b"")
    answers = [
        (b"".join(map(size_in_front, random.choices(kinds[of], k=random.randrange(1, 4)))), *of)
        for of in random.choices(list(kinds), k=1000)
    ]
    with using(MACHINE):
        check_told([*with_damage(joined, 3000, 30 + seed), *with_damage(requests, 1000, 40 + seed)])
        check_told_responses([*with_damage(answers, 3000, 50 + seed), *with_damage(responses, 1000, 60 + seed)])
