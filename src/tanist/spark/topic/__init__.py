"""Reading a topic over the network as a Spark data source."""
