"""The model of the metadata quorum: real quorum nodes as a space of states."""
