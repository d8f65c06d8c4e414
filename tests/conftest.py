"""What every test directory shares: the Hypothesis profiles.

``quick`` (the default) keeps ``make test`` short; ``exhaustive`` (``--hypothesis-profile=exhaustive``) is for a change
to a codec and for the night. Neither has a deadline: the machines of continuous integration pause at will, and a codec
is compiled on its first use.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile(
    "exhaustive", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("quick")
