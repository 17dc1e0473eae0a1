"""The process of one node: start, metrics over HTTP, and several at once."""
