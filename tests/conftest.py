"""How tests run: property tests as in CONTRIBUTING.md, and processes that Ctrl-C ends.

A shell that runs pytest in the background has it ignore SIGINT, and so do the processes that tests start.
"""

from __future__ import annotations

import signal

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

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
