"""One partition on a `Disk`: segments, indexes, epoch cache, producer state, recovery. Kafka's files to the byte."""
