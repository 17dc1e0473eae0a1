"""Every order that was confirmed is there after all brokers have died, by kill -9 and by a power failure."""

from __future__ import annotations

import pytest
from orders import Shop

from tanist.testing import Kafka, in_sync


@pytest.mark.parametrize("lose", [None, "page-cache"], ids=["kill", "power-failure"])
def test_confirmed_orders_are_kept(kafka: Kafka, lose: str | None) -> None:
    topic = kafka.topic("orders")
    shop = Shop(kafka.bootstrap, topic)
    shop.open()
    shop.take([f"order {number}" for number in range(1, 11)])

    kafka.crash(*kafka.brokers, lose=lose)
    kafka.start()
    kafka.wait_until(in_sync(topic))

    kept = shop.orders()
    lost = [order for order in shop.confirmed if order not in kept]
    assert not lost, f"{len(lost)} of {len(shop.confirmed)} confirmed orders are lost: {', '.join(lost)}"
