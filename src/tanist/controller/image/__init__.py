"""The metadata image: brokers, topics, partitions and configurations, as the records of the metadata log say."""
