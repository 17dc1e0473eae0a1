"""Metadata as decisions: the present state of the cluster (the image) and its changes (records).

A controller never changes its image of the cluster directly. A *decision* gives metadata records; only replaying a
record changes a `MetadataImage`, on the active controller, on its standbys and on every broker.
"""
