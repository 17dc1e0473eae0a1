"""`tanist.testing.aio` is what tools/generate_aio.py makes of the synchronous side."""

from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from tanist.testing import AsyncCluster
from tanist.testing.aio import AsyncKafka
from tanist.testing.operations import Operations
from tanist.testing.request_faults import InjectedFault
from tools.generate_aio import MIRRORED, TARGET, module

PATIENCE_S = 12.5


def test_it_is_what_the_synchronous_side_gives() -> None:
    assert TARGET.read_text() == module(), "run: python tools/generate_aio.py"


class Cabled(Operations):
    """Operations, and one more."""

    def unplug(self, node: int, *others: int, cable: str = "power", timeout: float = PATIENCE_S) -> list[object]:
        """Pull a cable.

        kafka.unplug(1)
        """
        return [node, *others, cable, timeout, threading.current_thread()]


def test_a_new_operation_can_be_awaited() -> None:
    names: dict[str, type] = {}
    exec(module({Operations: "", Cabled: "`Cabled`, awaited."}), names)
    cabled = names["AsyncCabled"]
    unplug = cabled.unplug  # type: ignore[attr-defined]
    assert cabled.__mro__[1] is names["AsyncOperations"]
    assert inspect.iscoroutinefunction(unplug)
    assert str(inspect.signature(unplug)) == str(inspect.signature(Cabled.unplug)).replace("PATIENCE_S", "12.5")
    assert inspect.getdoc(unplug) == "Pull a cable.\n\nawait kafka.unplug(1)"
    *said, thread = asyncio.run(cabled(Cabled.__new__(Cabled)).unplug(1, 2, cable="network"))
    assert said == [1, 2, "network", 12.5]
    assert thread is not threading.current_thread()


class Static(Operations):
    @staticmethod
    def version() -> str:
        return "4.3"


class Nested(Operations):
    def fault_of(self, api: str) -> InjectedFault | None:
        return None


@pytest.mark.parametrize(
    ("odd", "text"),
    [(Static, "Static.version: there is no rule for @staticmethod"), (Nested, "Nested.fault_of: there is no rule for")],
)
def test_what_no_rule_covers_is_refused(odd: type, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        module({**MIRRORED, odd: ""})


def test_another_cluster_and_a_fault_as_a_block(kafka_async: AsyncKafka) -> None:
    async def story() -> list[str]:
        async with await AsyncCluster.connect(kafka_async.bootstrap) as other:
            assert other.brokers == kafka_async.brokers
        async with await kafka_async.disconnect_on("END_TXN").every_time() as fault:
            assert [str(fault)] == [line.partition(" (")[0] for line in await kafka_async.faults()]
        return await kafka_async.faults()

    assert asyncio.run(story()) == []
