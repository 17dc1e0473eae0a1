"""`tanist lab`, `tanist jepsen` and `tanist what-if`: runs without a cluster."""
