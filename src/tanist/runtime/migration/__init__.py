"""A roll of a Kafka cluster from Apache Kafka to tanist, or back, node by node: what is read, judged and awaited."""
