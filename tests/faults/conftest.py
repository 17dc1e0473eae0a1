"""The harness is a namespace package under the checkout; `pytest` alone does not put that on the path."""

from __future__ import annotations

from tests.interop.cluster import interrupt_on_sigterm

interrupt_on_sigterm()
