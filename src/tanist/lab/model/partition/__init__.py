"""The model of one partition: its controller and its brokers, real objects all of them, as a space of states."""
