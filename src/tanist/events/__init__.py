"""What a node decides and sees, as typed values without text.

A part of a node emits an event where it decides: an election, a truncation, a refused fetch. Everything that observes
a node listens to its events: the operator's log, metrics, the simulator's checkers, the replay, the live view, tests.

* `event`: the base of all events, and events as JSON.
* `stream`: `Events`, the port through which a node emits them, and `Recent`, the last of them.
* `replication`, `storage`, `metadata`, `quorum`, `coordination`, `process`: the events, by who emits them.
* `text`: `describe`, the operator's line of an event. It is the only place with sentences.
"""
