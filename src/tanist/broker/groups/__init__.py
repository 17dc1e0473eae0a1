"""The group coordinator on a broker: what ties `tanist.coordinator` to partitions, requests and clocks."""
