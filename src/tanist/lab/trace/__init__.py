"""Trace validation: what the nodes of a run did, as a behaviour of the public TLA+ models of KIP-966 and KIP-996.

* `recording`: a run of the simulator, or the event files of processes, as observations.
* `ordering`: observations of a partition, causes first.
* `mapping`, `controlling`, `replicating`, `writing`: observations -> steps of the model. Pure.
* `runs`: the runs that the command plays; `live`: those of processes.
* `steps`: steps as the text that TLC reads.
* `tlc`: TLC, which accepts the steps or names the first that it does not.
* `Trace.tla`: how a step constrains the model, and the actions that the model lacks.
* `quorum_recording`, `quorum_mapping`, `quorum_runs`, `QuorumTrace.tla`: the same for the metadata quorum.

Nobody imports it but the command. Neither TLC nor the model is a part of tanist.
"""
