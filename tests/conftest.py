"""How property tests run here: CONTRIBUTING.md, "Property tests"."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tanist",
    settings.get_profile("default"),
    derandomize=False,  # where CI is set, Hypothesis draws the same examples in every run, and finds nothing new
    print_blob=True,
    deadline=None,  # a busy machine is no defect
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tanist")
