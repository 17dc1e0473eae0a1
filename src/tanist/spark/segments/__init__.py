"""Segment files as a Spark data source."""
