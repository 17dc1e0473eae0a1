----------------------------- MODULE LostSuffix -----------------------------
(*
The public model with logs that lose their end: a power failure takes what a broker had not synced, which may be all of
its log, a part, or nothing. The model's `DataLossShutdown` loses all, its `NoDataLossShutdown` nothing. The broker
starts again as one that stopped uncleanly.
*)
EXTENDS kafka_replication_kip_966

\* `kept` is the number of records that are left.
\* `epoch` is what its next life finds of the file that a clean stop writes: nothing, which is 0. `noticed`: the broker is
\* fenced, as in the model; else it registers again before anybody has missed it.
EndsWithSuffixLost(b, kept, epoch, noticed) ==
    /\ aux_ctrs.data_loss_shutdown_ctr < DataLossShutdownLimit
    /\ broker_state[b].status \notin { OFFLINE_CLEAN, OFFLINE_DIRTY }
    /\ kept \in 0..Len(LogOf(b))
    /\ broker_state' = [broker_state EXCEPT ![b] = [status         |-> OFFLINE_DIRTY,
                                                    broker_epoch   |-> epoch,
                                                    incarnation_id |-> 0,
                                                    registered     |-> FALSE]]
    /\ partition_data' = [partition_data EXCEPT ![b] =
                             [log |-> SubSeq(LogOf(b), 1, kept),
                              leo |-> kept + 1,
                              hwm |-> IF HwmOf(b) > kept + 1 THEN kept + 1 ELSE HwmOf(b)]]
    /\ partition_status' = [partition_status EXCEPT ![b] = Nil]
    /\ partition_leso' = [partition_leso EXCEPT ![b] = Nil]
    /\ partition_replica_state' = [partition_replica_state EXCEPT ![b] = [b1 \in Brokers |-> BlankReplicaState]]
    /\ ResetPendingAlterPartition(b)
    /\ DropFetchSessions(b)
    /\ FailPendingWritesIfLeader(b)
    /\ ResetPendingAcks(b)
    /\ IF noticed
       THEN HandleBrokerFenced(b) /\ con_broker_reg' = [con_broker_reg EXCEPT ![b].status = FENCED]
       ELSE UNCHANGED con_vars
    /\ aux_ctrs' = [aux_ctrs EXCEPT !.data_loss_shutdown_ctr = @ + 1]
    /\ UNCHANGED << partition_metadata, broker_metadata_log, inv_true_hwm, inv_consumed, inv_sent, aux_broker_epoch >>

SuffixLossShutdown(b, kept) == EndsWithSuffixLost(b, kept, 0, TRUE)

SuffixNext == Next \/ \E b \in Brokers, kept \in 0..Cardinality(Values) : SuffixLossShutdown(b, kept)
=============================================================================
