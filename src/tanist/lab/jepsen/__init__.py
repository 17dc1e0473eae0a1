"""`tanist jepsen`: Jepsen's test of Kafka (2013) and its harder successors, on live processes.

`run.play` is a whole test: writers and readers in processes of their own (`worker`), faults on a schedule that is drawn
from the seed (`schedule`, `nemesis`) on tanist's own cluster (`own`) or another one (`outside`), final reads, the
account of acknowledged writes (`outcome`), the history checker's verdict, and the picture (`picture`). docs/jepsen.md
is its manual.
"""
