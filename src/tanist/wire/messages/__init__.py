"""One module per message: a dataclass that is the superset of all its versions, with the field table the codec needs.

Import the module of the message that you want; nothing is imported from here, so that a node loads only the messages
that it speaks. All but `get_replica_log_info_*` are written by `tools/generate_messages.py`.
"""
