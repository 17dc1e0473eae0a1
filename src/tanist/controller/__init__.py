"""Metadata as decisions: what the cluster is (the image) and what is to become of it (records).

A controller never changes its picture of the cluster directly. It *decides*, which gives metadata records; replaying a
record is the one thing that changes a `MetadataImage`, on the active controller, on its standbys and on every broker.
"""
