"""A client of a cluster, in blocking calls. It imports `wire` and `log` only: it works with any Kafka."""
