------------------------------- MODULE Trace -------------------------------
(*
Runs of tanist as behaviours of Vanlightly's model of KIP-966, which is used as it is.

`Traces` (in a module that is written for the runs) has the steps of each run: records of an action of the model, the
broker that takes it, and what tanist's events tell of the state after it. A step is taken if the model can take that
action, and the state is then as reported. What the model decides freely is decided by the step. A part of this module has
the actions that the model lacks.

Names: `b` is the broker that acts; `from` and `to` are the others.
*)
EXTENDS UncleanRecovery, Traces

VARIABLES run,  \* which of the traces it is
          taken \* the number of its steps that are taken

steps == Traces[run]
step == steps[taken + 1]

Reported(field) == field \in DOMAIN step
Agrees(field, value) == Reported(field) => step[field] = value

-----------------------------------------------------------------------------
(* What the configuration puts in the place of definitions of the model. *)

\* For `Converged`. A follower of ours asks all the time; the model's stops, so that liveness can be checked.
NeverConverged(leader, follower) == FALSE

\* For `GetCommitOffset`, which gives the highest offset that is committed. A high watermark may wait at a lower one: for
\* a follower that is about to join the ISR.
CommittedAsReported(b, maximal_isr, leo, replica_state) ==
    IF /\ Reported("hwm")
       /\ step.hwm \in 2..leo
       /\ IsCommitted(b, maximal_isr, replica_state, step.hwm - 1)
    THEN step.hwm - 1
    ELSE 0

\* For `ProposeNewISR`. Of the followers that are caught up the leader takes some; the model's takes all.
ProposedAsReported(b, curr_isr, timed_out_isr) ==
    { b1 \in partition_metadata[b].replicas :
        \/ b1 = b
        \/ /\ FollowerIsCaughtUp(b, b1, partition_replica_state[b][b1].leo, curr_isr, timed_out_isr)
           /\ b1 \in curr_isr \/ b1 \in step.isr }

-----------------------------------------------------------------------------
(* What a step tells. *)

LogAsReported(b) ==
    /\ Agrees("maximal_isr", partition_metadata'[b].maximal_isr)
    /\ Agrees("leo", partition_data'[b].leo)
    /\ Agrees("hwm", partition_data'[b].hwm)
    /\ Agrees("record_epochs", [n \in 1..(partition_data'[b].leo - step.first) |->
                                    partition_data'[b].log[step.first + n - 1].epoch])

ReplicaAsReported(b) ==
    /\ Agrees("leader", partition_metadata'[b].leader)
    /\ Agrees("leader_epoch", partition_metadata'[b].leader_epoch)
    /\ Agrees("partition_epoch", partition_metadata'[b].partition_epoch)
    /\ Agrees("isr", partition_metadata'[b].isr)
    /\ Agrees("leso", partition_leso'[b])
    /\ LogAsReported(b)

PartitionAsReported ==
    /\ Agrees("leader", con_partition_metadata'.leader)
    /\ Agrees("leader_epoch", con_partition_metadata'.leader_epoch)
    /\ Agrees("partition_epoch", con_partition_metadata'.partition_epoch)
    /\ Agrees("isr", con_partition_metadata'.isr)
    /\ Agrees("elr", con_partition_metadata'.elr)
    /\ Agrees("last_known_elr", con_partition_metadata'.last_known_elr)

Handled == messages \ messages'
Sent == messages' \ messages

-----------------------------------------------------------------------------
(* Actions that the model lacks. *)

\* The answer of a fetch, read when it is sent. The model's has one record, of the moment when the fetch came; ours
\* waits for records, has as many as there are, and a high watermark that the leader had meanwhile.
AnswerRead(b, to, end, hwm) ==
    \E m \in messages :
        /\ m.type = FetchResponse /\ m.source = b /\ m.dest = to
        /\ m.partition.error = Nil /\ m.partition.diverging_epoch = Nil
        /\ broker_state[b].status = RUNNING
        /\ partition_status[b] = Leader
        /\ partition_metadata[b].leader_epoch = m.partition.leader_epoch
        /\ end \in m.partition.fetch_offset..LeoOf(b)
        /\ hwm <= HwmOf(b)
        /\ messages' = (messages \ {m}) \union
               {[m EXCEPT !.partition.records = SubSeq(LogOf(b), m.partition.fetch_offset, end - 1),
                          !.partition.hwm = hwm]}
        /\ UNCHANGED << messages_discard, con_vars, broker_vars, part_vars, inv_vars, aux_vars >>

\* A connection breaks, or the follower does not use an answer. The model's network loses nothing.
FetchLost(b, to) ==
    /\ broker_fetchers[b][to].pending_response
    /\ broker_fetchers' = [broker_fetchers EXCEPT ![b][to].pending_response = FALSE]
    /\ Drop({m \in messages : \/ m.type = FetchRequest /\ m.source = b /\ m.dest = to
                              \/ m.type = FetchResponse /\ m.source = to /\ m.dest = b})
    /\ UNCHANGED << con_vars, broker_state, broker_metadata_log, part_vars, inv_vars, aux_vars >>

\* The high watermark after a restart is that of a checkpoint. The model's is the last one.
CheckpointRead(b, hwm) ==
    /\ hwm <= HwmOf(b)
    /\ partition_status[b] # Leader
    /\ partition_data' = [partition_data EXCEPT ![b].hwm = hwm]
    /\ UNCHANGED << con_vars, broker_vars, partition_status, partition_metadata, partition_leso,
                    partition_replica_state, partition_pending_ap, NetworkVars, inv_vars, aux_vars >>

\* A high watermark that has waited moves: it waits for nobody any more.
WaitsNoMore(b) ==
    /\ partition_status[b] = Leader
    /\ MaybeUpdateHwmAndAckOnPartitionChange(b, partition_metadata[b], FALSE)
    /\ UNCHANGED << con_vars, broker_vars, partition_status, partition_metadata, partition_leso,
                    partition_replica_state, partition_pending_ap, NetworkVars, aux_vars >>

\* An operator has the preferred leader elected, or another order of the replicas. The model has no operators.
ElectAnother(b) ==
    LET md == con_partition_metadata
    IN /\ b \in md.isr /\ b \in con_unfenced
       /\ ApplyPartitionChange(md.replicas, b, md.isr, md.elr, md.leader_epoch + 1, md.partition_epoch + 1,
                               md.adding, md.removing)
       /\ UNCHANGED << con_broker_vars, broker_vars, part_vars, NetworkVars, inv_vars, aux_vars >>

ReorderReplicas ==
    LET md == con_partition_metadata
    IN /\ ApplyPartitionChange(md.replicas, md.leader, md.isr, md.elr, md.leader_epoch, md.partition_epoch + 1,
                               md.adding, md.removing)
       /\ UNCHANGED << con_broker_vars, broker_vars, part_vars, NetworkVars, inv_vars, aux_vars >>

-----------------------------------------------------------------------------
(* The steps. *)

Act(b) ==
    CASE step.action = "WriteRecordToLeader" ->
            /\ WriteRecordToLeader(b)
            /\ inv_sent' = 1..(Cardinality(inv_sent) + 1) \* which value is no matter
            /\ LogAsReported(b)
      [] step.action = "SendFetchRequest" ->
            /\ SendFetchRequest(b)
            /\ \E m \in Sent : /\ m.dest = step.to
                               /\ m.partition.leader_epoch = step.leader_epoch
                               /\ m.partition.fetch_offset = step.offset
      [] step.action = "ReceiveFetchRequest" ->
            /\ ReceiveFetchRequest(b)
            /\ \A m \in Handled : m.source = step.from
            /\ \A m \in Sent : /\ m.partition.error = Nil
                               /\ (m.partition.diverging_epoch # Nil) = Reported("diverges")
            /\ LogAsReported(b)
      [] step.action = "ReceiveFetchResponse" ->
            /\ ReceiveFetchResponse(b)
            /\ \A m \in Handled : m.source = step.from
            /\ LogAsReported(b)
      [] step.action = "ReceiveMetadataUpdate" ->
            /\ ReceiveMetadataUpdate(b)
            /\ con_metadata_log[Len(broker_metadata_log'[b])].partition_epoch = step.partition_epoch
            /\ ReplicaAsReported(b)
      [] step.action = "SendAlterPartitionRequest" ->
            /\ partition_metadata[b].partition_epoch = step.request_epoch
            /\ SendAlterPartitionRequest(b)
            /\ \A m \in Sent : m.isr = step.isr
            /\ Agrees("maximal_isr", partition_metadata'[b].maximal_isr)
      [] step.action = "ReceiveAlterPartitionRequest" ->
            /\ ReceiveAlterPartitionRequest(b)
            /\ \A m \in Sent : (m.error = Nil) = step.accepted
            /\ PartitionAsReported
      [] step.action = "ReceiveAlterPartitionResponse" ->
            /\ ReceiveAlterPartitionResponse(b)
            /\ \A m \in Handled : (m.error = Nil) = step.accepted
            /\ ReplicaAsReported(b)
      [] step.action = "FenceBroker" -> FenceBroker(b) /\ PartitionAsReported
      [] step.action = "UnfenceBroker" -> UnfenceBroker(b) /\ PartitionAsReported
      [] step.action = "NoDataLossShutdown" ->
            /\ NoDataLossShutdown(b)
            /\ (broker_state'[b].broker_epoch # 0) = step.clean
            /\ PartitionAsReported
      [] step.action = "SuffixLossShutdown" -> SuffixLossShutdown(b, step.leo - 1) /\ PartitionAsReported
      [] step.action = "CrashUnnoticed" -> CrashUnnoticed(b, step.leo - 1) /\ PartitionAsReported
      [] step.action = "BrokerStart" -> BrokerStart(b)
      [] step.action = "ReceiveBrokerRegResponse" -> ReceiveBrokerRegResponse(b)
      [] step.action = "AnswerRead" -> AnswerRead(b, step.to, step.end, step.high_watermark)
      [] step.action = "FetchLost" -> FetchLost(b, step.to)
      [] step.action = "RegisterFenced" -> RegisterFenced(b) /\ PartitionAsReported
      [] step.action = "CheckpointRead" -> CheckpointRead(b, step.high_watermark)
      [] step.action = "WaitsNoMore" -> WaitsNoMore(b) /\ LogAsReported(b)
      [] step.action = "ElectAnother" -> ElectAnother(b) /\ PartitionAsReported
      [] step.action = "ReorderReplicas" -> ReorderReplicas /\ PartitionAsReported
      [] OTHER -> FALSE \* "NoAction": a change that nothing in the model makes

\* What the model has no variables for.
Take(b) ==
    CASE step.action = "AnswerLogInfo" ->
            /\ LeoOf(b) = step.leo
            /\ LastEpoch(LogOf(b)) = step.last_epoch
            /\ AnswerLogInfo(b)
      [] step.action = "Recover" -> Recover(b, step.strategy) /\ PartitionAsReported
      [] step.action = "Designate" -> Designate(b) /\ PartitionAsReported
      [] OTHER -> Act(b) /\ UNCHANGED recovery_vars

TraceInit == Init /\ RecoveryInit /\ taken = 0 /\ run \in 1..Len(Traces)
TraceNext == taken < Len(steps) /\ Take(step.b) /\ taken' = taken + 1 /\ UNCHANGED run

TraceView == << view, recovery_vars, run, taken >>

-----------------------------------------------------------------------------
(* The judgement: TLC prints how far it has come, and which of the model's properties ends it. *)

Judged(name, holds) == holds \/ (PrintT(<< "broken", run, taken, name >>) /\ FALSE)

Judgement ==
    /\ PrintT(<< "taken", run, taken >>)
    /\ Judged("LeaderIsComplete", LeaderIsComplete)
    /\ Judged("CandidatesAreComplete", CandidatesAreComplete)
    /\ Judged("ReadsAreConsistent", ReadsAreConsistent)
    /\ Judged("LogsMatch", LogsMatch)
    /\ Judged("NeverBesideTheEligible", NeverBesideTheEligible)
    /\ Judged("BalancedLosesWhatAllHaveLost", BalancedLosesWhatAllHaveLost)
    /\ Judged("AggressiveElectsTheForemost", AggressiveElectsTheForemost)
    /\ Judged("ReplicationQuorumSupersetProperty", ReplicationQuorumSupersetProperty)
    /\ Judged("ValidReplicaState", ValidReplicaState)
    /\ Judged("ValidControllerState", ValidControllerState)
    /\ Judged("ValidControllerIsrAndElr", ValidControllerIsrAndElr)

=============================================================================
