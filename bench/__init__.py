"""The benchmark: tanist beside Apache Kafka 4.3.1, in the same run, interleaved. `python -m bench --help`."""
