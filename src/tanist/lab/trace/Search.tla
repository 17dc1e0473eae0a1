------------------------------- MODULE Search -------------------------------
(*
What TLC searches: the public model and `UncleanRecovery`, with one strategy.

`Prompt` has the kinds of messages that are handled before anything else happens: fetches and their answers, the answers
of the controller, the metadata. {} leaves all orders. What is prompt makes larger sizes searchable; its orders are those
of the public model, which others have searched.
*)
EXTENDS UncleanRecovery

CONSTANTS Strategy, Prompt

Deliver(b) ==
    \/ "fetch" \in Prompt /\ (ReceiveFetchRequest(b) \/ ReceiveFetchResponse(b))
    \/ "alter" \in Prompt /\ (ReceiveAlterPartitionRequest(b) \/ ReceiveAlterPartitionResponse(b))
    \/ "register" \in Prompt /\ (RegisterFenced(b) \/ ReceiveBrokerRegResponse(b))
    \/ "metadata" \in Prompt /\ ReceiveMetadataUpdate(b)

Act(b) ==
    \/ BrokerStart(b)
    \/ RegisterFenced(b)
    \/ ReceiveBrokerRegResponse(b)
    \/ ReceiveMetadataUpdate(b)
    \/ SendAlterPartitionRequest(b)
    \/ ReceiveAlterPartitionRequest(b)
    \/ ReceiveAlterPartitionResponse(b)
    \/ SendFetchRequest(b)
    \/ ReceiveFetchRequest(b)
    \/ ReceiveFetchResponse(b)
    \/ WriteRecordToLeader(b) /\ inv_sent' = 1..(Cardinality(inv_sent) + 1)
    \/ StopClean(b)
    \/ \E kept \in 0..Cardinality(Values) : Crash(b, kept)
    \/ FenceBroker(b)
    \/ UnfenceBroker(b)

SearchInit == Init /\ RecoveryInit

SearchNext ==
    IF \E b \in Brokers : ENABLED Deliver(b)
    THEN LET first == CHOOSE b \in Brokers : ENABLED Deliver(b) /\ \A other \in 1..(b - 1) : ~ENABLED Deliver(other)
         IN Deliver(first) /\ UNCHANGED recovery_vars
    ELSE \E b \in Brokers :
            \/ Act(b) /\ UNCHANGED recovery_vars
            \/ Comparing(Strategy) /\ AnswerLogInfo(b)
            \/ Recover(b, Strategy)

\* For `PreviouslySent`, which keeps the model from sending what was refused before, so that liveness can be checked.
NeverSent(m) == FALSE

-----------------------------------------------------------------------------
(* States that differ in nothing that anybody will look at are one. *)

Runs(b) == broker_state[b].status = RUNNING
Running == { b \in Brokers : Runs(b) }
Quiet == messages = {}

\* Only how epochs compare matters while no message tells one.
Registered(b) ==
    << con_broker_reg[b].status, broker_state[b].status, broker_state[b].registered,
       broker_state[b].broker_epoch = con_broker_reg[b].broker_epoch,
       IF Quiet THEN 0 ELSE << con_broker_reg[b], broker_state[b] >> >>

Behind(b) == Len(con_metadata_log) - Len(broker_metadata_log[b])
MostBehind == IF Running = {} THEN 0 ELSE Behind(CHOOSE b \in Running : \A other \in Running : Behind(b) >= Behind(other))

OfReplica(b) ==
    << partition_status[b], partition_data[b], aux_flo[b],
       IF Runs(b)
       THEN << broker_fetchers[b], partition_leso[b], Behind(b),
               [partition_metadata[b] EXCEPT !.partition_epoch = con_partition_metadata.partition_epoch - @],
               partition_pending_ap[b].epoch = 0 \/ partition_pending_ap[b].epoch <= partition_metadata[b].partition_epoch,
               IF Quiet THEN 0 ELSE partition_pending_ap[b],
               [other \in Brokers |->
                   << partition_replica_state[b][other].leo,
                      partition_replica_state[b][other].broker_epoch = con_broker_reg[other].broker_epoch,
                      IF Quiet THEN 0 ELSE partition_replica_state[b][other] >>] >>
       ELSE << >>,
       IF Fresh(b) THEN log_answers[b].log ELSE Nil >>

SearchView ==
    << [b \in Brokers |-> << Registered(b), OfReplica(b) >>],
       [con_partition_metadata EXCEPT !.partition_epoch = IF Quiet THEN 0 ELSE @],
       [n \in 1..MostBehind |->
           [con_metadata_log[Len(con_metadata_log) + 1 - n] EXCEPT !.partition_epoch = con_partition_metadata.partition_epoch - @]],
       messages, inv_vars, inv_recovery,
       [aux_ctrs EXCEPT !.incarn_ctr = 0] >>
=============================================================================
