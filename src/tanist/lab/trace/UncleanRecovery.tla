-------------------------- MODULE UncleanRecovery --------------------------
(*
The public model with the second part of KIP-966: unclean recovery by each of its strategies, LastKnownELR as the KIP has
it, and which end of a broker counts as clean.

While a partition has no leader, replicas tell the controller where their logs end, and it elects by its strategy. An
answer is read, arrives and counts at one step: later it counts as long as it is fresh, which is what the KIP asks of it.
Times are left out: whatever a timeout allows is allowed at once.

`Broken` has the names of rules that are broken, so that one can see which property finds it: {} is the protocol.
*)
EXTENDS LostSuffix

CONSTANT Broken

VARIABLES log_answers,   \* per broker: what the controller has heard of its log, or Nil
          inv_recovery   \* for the properties: what is wrong with the unclean elections so far

recovery_vars == << log_answers, inv_recovery >>

Whole(rule) == rule \notin Broken

RecoveryInit ==
    /\ log_answers = [b \in Brokers |-> Nil]
    /\ inv_recovery = [unclean |-> FALSE, lost |-> FALSE, excused |-> FALSE,
                       early |-> FALSE, needless |-> FALSE, worse |-> FALSE]

-----------------------------------------------------------------------------
(* LastKnownELR: who was eligible since the ISR fell below the minimum, and is no longer. *)

\* For `ApplyPartitionChange`, whose LastKnownELR keeps a member that is elected, and lacks one that leaves the ISR by an
\* unclean registration.
ApplyWithLastKnown(replicas, leader, isr, elr, leader_epoch, partition_epoch, adding, removing) ==
    LET md         == con_partition_metadata
        known_last == IF Cardinality(isr) >= MinISR \/ ~Whole("last-known")
                      THEN {}
                      ELSE replicas \intersect ((md.last_known_elr \union md.elr \union md.isr) \ (isr \union elr))
        now        == [replicas        |-> replicas,
                       isr             |-> isr,
                       elr             |-> elr,
                       last_known_elr  |-> known_last,
                       leader          |-> leader,
                       leader_epoch    |-> leader_epoch,
                       partition_epoch |-> partition_epoch,
                       adding          |-> adding,
                       removing        |-> removing]
    IN /\ con_partition_metadata' = now
       /\ con_metadata_log' = Append(con_metadata_log, [type |-> PartitionChangeRecord] @@ now)

-----------------------------------------------------------------------------
(* The end of a log that is cut. *)

\* For `TruncateToSafePoint`, which leaves the high watermark where it was, perhaps beyond the end of the log.
Truncated(b, diverging_epoch) ==
    LET end == FindTruncatePoint(b, diverging_epoch)
    IN [log |-> SubSeq(LogOf(b), 1, end - 1),
        leo |-> end,
        hwm |-> IF HwmOf(b) > end THEN end ELSE HwmOf(b)]

-----------------------------------------------------------------------------
(* The end of a broker, and its next registration. *)

\* It writes its epoch down when all its logs are closed.
StopClean(b) ==
    /\ NoDataLossShutdown(b)
    /\ broker_state'[b].broker_epoch # 0 \/ broker_state[b].broker_epoch = 0

\* What was written down is gone since it has started.
Crash(b, kept) ==
    IF Whole("clean-mark")
    THEN SuffixLossShutdown(b, kept)
    ELSE EndsWithSuffixLost(b, kept, broker_state[b].broker_epoch, TRUE)

\* It is back before anybody has missed it.
CrashUnnoticed(b, kept) == EndsWithSuffixLost(b, kept, 0, FALSE)

\* It registers, and stays fenced until it has caught up. The model's is unfenced at once. It has stopped cleanly if it
\* tells the epoch of its last registration.
RegisterFenced(b) ==
    \E m \in messages :
        /\ m.type = RegisterBrokerRequest /\ m.source = b
        /\ IF m.broker_epoch # con_broker_reg[b].broker_epoch
           THEN MaybeUpdatePartitionOnBrokerChange(RemoveBrokerFromISR(con_partition_metadata.isr, b),
                                                   con_partition_metadata.elr \ {b}, con_unfenced \ {b})
           ELSE NoPartitionChange
        /\ con_unfenced' = con_unfenced \ {b}
        /\ con_broker_reg' = [con_broker_reg EXCEPT ![b] = [status         |-> FENCED,
                                                            broker_epoch   |-> aux_broker_epoch + 1,
                                                            incarnation_id |-> m.incarnation_id]]
        /\ Reply(m, [type            |-> RegisterBrokerResponse,
                     broker_epoch    |-> aux_broker_epoch + 1,
                     incarnation_id  |-> m.incarnation_id,
                     metadata_offset |-> Len(con_metadata_log),
                     dest            |-> b,
                     source          |-> Controller])
        /\ aux_broker_epoch' = aux_broker_epoch + 1
        /\ UNCHANGED << broker_vars, part_vars, inv_vars, aux_ctrs, aux_flo >>

-----------------------------------------------------------------------------
(* What the controller hears of logs. *)

LastEpoch(log) == IF log = << >> THEN 0 ELSE Last(log).epoch

\* Where logs end: epochs first.
IsAhead(one, other) ==
    \/ LastEpoch(one) > LastEpoch(other)
    \/ LastEpoch(one) = LastEpoch(other) /\ Len(one) > Len(other)

\* Whether a log is known to begin with all of the other one, as far as epochs tell.
BeginsWith(one, other) ==
    IF other = << >> \/ LastEpoch(one) = LastEpoch(other)
    THEN Len(one) >= Len(other)
    ELSE LET later == { n \in DOMAIN one : one[n].epoch > LastEpoch(other) }
         IN /\ later # {}
            /\ \A n \in later : n > Len(other)
            /\ \E n \in DOMAIN one : one[n].epoch = LastEpoch(other)

\* An answer does not count after a new registration, nor in another leader epoch.
Fresh(b) ==
    /\ log_answers[b] # Nil
    /\ Whole("broker-epoch") => log_answers[b].broker_epoch = con_broker_reg[b].broker_epoch
    /\ log_answers[b].leader_epoch = con_partition_metadata.leader_epoch

Heard == { b \in con_unfenced \intersect con_partition_metadata.replicas : Fresh(b) }

\* Whose answers Balanced needs.
Needed ==
    IF con_partition_metadata.last_known_elr # {}
    THEN con_partition_metadata.last_known_elr
    ELSE con_partition_metadata.replicas

Eligible == con_partition_metadata.isr \union con_partition_metadata.elr

\* Whether logs are compared. A member of the ELR that is there is elected instead.
Comparing(strategy) ==
    /\ con_partition_metadata.leader = NoLeader
    /\ Whole("eligible") => Eligible \intersect con_unfenced = {}
    /\ CASE strategy = "Aggressive" -> TRUE
         [] strategy = "Balanced"   -> /\ Whole("eligible") => Eligible = {}
                                       /\ Whole("all-last-known") => Needed \subseteq con_unfenced
         [] OTHER                   -> FALSE

AnswerLogInfo(b) ==
    /\ con_partition_metadata.leader = NoLeader
    /\ broker_state[b].status = RUNNING
    /\ b \in con_partition_metadata.replicas \intersect con_unfenced
    /\ log_answers' = [log_answers EXCEPT ![b] = [broker_epoch |-> broker_state[b].broker_epoch,
                                                  leader_epoch |-> partition_metadata[b].leader_epoch,
                                                  log          |-> LogOf(b)]]
    /\ log_answers' # log_answers
    /\ UNCHANGED << vars, inv_recovery >>

-----------------------------------------------------------------------------
(* The election. *)

\* How many of the committed records a replica has.
Kept(b) ==
    CHOOSE n \in 0..Len(inv_consumed) :
        /\ n <= Len(LogOf(b)) /\ SubSeq(LogOf(b), 1, n) = SubSeq(inv_consumed, 1, n)
        /\ \/ n = Len(inv_consumed)
           \/ n = Len(LogOf(b))
           \/ LogOf(b)[n + 1] # inv_consumed[n + 1]

\* What is lost by it is committed no more. `excused`: others may go on committing among themselves, who were eligible.
ElectUncleanly(b, early, needless, worse) ==
    LET md  == con_partition_metadata
        now == [md EXCEPT !.isr             = {b},
                          !.elr             = {},
                          !.last_known_elr  = IF Whole("forgets") THEN {} ELSE @,
                          !.leader          = b,
                          !.leader_epoch    = @ + 1,
                          !.partition_epoch = @ + 1]
        kept == Kept(b)
    IN /\ con_partition_metadata' = now
       /\ con_metadata_log' = Append(con_metadata_log, [type |-> PartitionChangeRecord] @@ now)
       /\ inv_true_hwm' = IF inv_true_hwm > kept + 1 THEN kept + 1 ELSE inv_true_hwm
       /\ inv_consumed' = SubSeq(inv_consumed, 1, kept)
       /\ inv_pos_acked' = { v \in inv_pos_acked : \E n \in 1..kept : inv_consumed[n].value = v }
       /\ inv_recovery' = [unclean  |-> TRUE,
                           lost     |-> inv_recovery.lost \/ kept < Len(inv_consumed),
                           excused  |-> inv_recovery.excused \/ Eligible # {},
                           early    |-> inv_recovery.early \/ early,
                           needless |-> inv_recovery.needless \/ needless,
                           worse    |-> inv_recovery.worse \/ worse]
       /\ log_answers' = [other \in Brokers |-> Nil]
       /\ UNCHANGED << con_broker_vars, broker_vars, part_vars, NetworkVars, inv_sent, inv_neg_acked, aux_vars >>

\* Of those that have answered the one whose log is ahead. Balanced elects one outside of LastKnownELR only if nothing of
\* theirs is lost by it.
Candidates(strategy) ==
    LET log(b)    == log_answers[b].log
        known     == Heard \intersect Needed
        foremost  == { b \in known : \A other \in known : ~IsAhead(log(other), log(b)) }
        allowed   == IF strategy = "Balanced" /\ known # {}
                     THEN { b \in Heard : \/ b \in foremost
                                          \/ \E least \in foremost : BeginsWith(log(b), log(least)) }
                     ELSE Heard
    IN { b \in allowed : \A other \in allowed : ~IsAhead(log(other), log(b)) }

Recover(b, strategy) ==
    /\ Comparing(strategy)
    /\ strategy = "Balanced" /\ Whole("all-last-known") => Needed \subseteq Heard
    /\ b \in Candidates(strategy)
    /\ ElectUncleanly(b,
           \/ Eligible \intersect con_unfenced # {}
           \/ strategy = "Balanced" /\ Eligible # {},
           strategy = "Balanced" /\ \E other \in Needed : Kept(other) > Kept(b),
           strategy = "Aggressive" /\ \E other \in Heard : IsAhead(LogOf(other), LogOf(b)))

\* An operator's choice, who may lose what he likes.
Designate(b) ==
    /\ b \in con_unfenced \intersect con_partition_metadata.replicas
    /\ ElectUncleanly(b, FALSE, FALSE, FALSE)

-----------------------------------------------------------------------------
(* Properties. *)

\* Unclean elections: none while somebody is eligible (Aggressive: and there), Balanced loses only what all of
\* LastKnownELR have lost, and Aggressive elects who is ahead of those that were heard.
NeverBesideTheEligible == ~inv_recovery.early
BalancedLosesWhatAllHaveLost == ~inv_recovery.needless
AggressiveElectsTheForemost == ~inv_recovery.worse

\* As many as the minimum are in the ISR, the ELR or LastKnownELR, and each in one of them.
LastKnownIsKept ==
    LET md == con_partition_metadata
    IN /\ inv_recovery.unclean \/ Cardinality(md.isr \union md.elr \union md.last_known_elr) >= MinISR
       /\ md.last_known_elr \intersect (md.isr \union md.elr) = {}
       /\ Cardinality(md.isr) >= MinISR => md.last_known_elr = {}

\* After committed records were lost, replicas that have not heard of it differ; those that can lead do not.
LogsMatch ==
    inv_recovery.excused \/
    IF inv_recovery.lost
    THEN \A b1, b2 \in Eligible : \A n \in 1..Cardinality(Values) :
            partition_data[b1].hwm > n /\ partition_data[b2].hwm > n
                /\ partition_data[b1].leo > n /\ partition_data[b2].leo > n
                => LogOf(b1)[n] = LogOf(b2)[n]
    ELSE LogMatchingProperty

Excused(property) == inv_recovery.excused \/ property
LeaderIsComplete == Excused(LeaderCompletenessProperty)
CandidatesAreComplete == Excused(LeaderCandidateCompletenessProperty)
ReadsAreConsistent == Excused(ConsistentReadProperty)
=============================================================================
