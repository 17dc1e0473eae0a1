"""A shop that takes orders: each is confirmed to the customer once Kafka has acknowledged it."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

# Three replicas, and acks=all needs two of them. But each acknowledges what is in its page cache, and a power failure
# takes all page caches at once. The mend is one more setting: "flush.messages": "1".
TOPIC_SETTINGS = {"min.insync.replicas": "2"}


class Shop:
    """Takes orders, and remembers which it has confirmed."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
        self.confirmed: list[str] = []

    def open(self) -> None:
        """Create the topic of the orders."""
        topic = NewTopic(self._topic, num_partitions=1, replication_factor=3, config=TOPIC_SETTINGS)
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.create_topics([topic])[self._topic].result(30)

    def take(self, orders: list[str]) -> None:
        """Take orders; returns when Kafka has acknowledged all of them."""
        for order in orders:
            self._producer.produce(self._topic, order, on_delivery=self._delivered)
        self._producer.flush(30)

    def orders(self) -> list[str]:
        """All orders there are, as the warehouse reads them."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": f"{self._topic}-warehouse",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        consumer.subscribe([self._topic])
        found = []
        try:
            while (message := consumer.poll(30)) is not None:
                if (error := message.error()) is None:
                    found.append(message.value().decode())
                elif error.code() == KafkaError._PARTITION_EOF:
                    break
        finally:
            consumer.close()
        return found

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.confirmed.append(message.value().decode())
