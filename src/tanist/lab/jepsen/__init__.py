"""Jepsen's test of Kafka (2013) and its harder successors, on live processes: what `tanist jepsen` does.

`run.play` is all of it: writers and readers in processes of their own (`worker`), faults on a schedule that is drawn
from the seed (`schedule`, `nemesis`) on a cluster of ours (`own`) or on somebody else's (`outside`), final reads, the
account of what was acknowledged (`outcome`), the history checker's verdict, and the picture (`picture`).
docs/jepsen.md is for whoever runs it.
"""
