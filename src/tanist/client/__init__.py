"""The client of any Kafka, without input and output. The simulator, the commands and Spark's tasks drive the same code.

Its state machines give requests (`requests.Ask`) and take answers. `errors` says what an answer means.
"""
