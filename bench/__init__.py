"""The benchmark: tanist beside Apache Kafka, in the same run, interleaved. `python -m bench --help`."""
