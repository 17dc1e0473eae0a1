"""Models of the configurations that the model checker ships, by name."""

from __future__ import annotations

from tanist.lab.model import CONFIGURATIONS
from tanist.lab.model.partition.configuration import Configuration
from tanist.lab.model.partition.model import PartitionModel


def partition_model(name: str) -> PartitionModel:
    configuration = CONFIGURATIONS[name]
    if not isinstance(configuration, Configuration):
        raise TypeError(f"{name} is a configuration of the quorum")
    return PartitionModel(configuration)
