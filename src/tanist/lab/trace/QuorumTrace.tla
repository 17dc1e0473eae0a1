---------------------------- MODULE QuorumTrace ----------------------------
(*
Runs of tanist's metadata quorum as behaviours of Vanlightly's model of KIP-996, which is used as it is.

`QuorumTraces` (in a module that is written for the runs) has the steps of each run: records of an action of the model,
the server that takes it, and what was seen of its state after it. A step is taken if the model can take that action, and
the state is then as reported. An entry of the model's log is a batch of ours; its first one, which names the servers,
stands for our configuration.

Names: `s` is the server that acts; `from` and `to` are the others.
*)
EXTENDS kraft_kip_996, QuorumTraces

VARIABLES run,   \* which of the traces it is
          taken, \* the number of its steps that are taken
          led    \* << epoch, server >> of those who have become leader

steps == Traces[run]
step == steps[taken + 1]

Reported(field) == field \in DOMAIN step
Agrees(field, value) == Reported(field) => step[field] = value

-----------------------------------------------------------------------------
(* What the configuration puts in the place of definitions of the model. *)

\* For `NewHighwaterMark`, which gives the highest offset that a majority has. A leader's own log counts when it is
\* durable, which the model does not know of, so any offset that a majority has will do: the reported one.
HasMajority(s, ends, offset) ==
    /\ offset \in DOMAIN log[s]
    /\ {k \in config[s].members : k = s \/ ends[k] >= offset} \in Quorum(config[s].members)
    /\ log[s][offset].epoch = current_epoch[s]

CommittedAsReported(s, ends) ==
    IF Reported("hwm") /\ step.hwm > hwm[s] /\ HasMajority(s, ends, step.hwm)
    THEN step.hwm
    ELSE hwm[s]

\* For `NoMorePreVotesToCount`. A server gives up when its time is over, whatever is under way; the model's waits.
GivesUpAnyTime(s) == TRUE

-----------------------------------------------------------------------------
(* What a step tells. *)

LogAsReported(s) ==
    /\ Agrees("end", Len(log'[s]))
    /\ Agrees("hwm", Max({hwm'[s], 1}))
    /\ Agrees("entry_epochs", [n \in 1..(Len(log'[s]) - step.first + 1) |-> log'[s][step.first + n - 1].epoch])

ServerAsReported(s) ==
    /\ Agrees("state", state'[s])
    /\ Agrees("epoch", current_epoch'[s])
    /\ Agrees("leader", leader'[s])
    /\ Agrees("voted", voted_for'[s])
    /\ LogAsReported(s)

IsVote(m) ==
    /\ m.type = RequestVoteRequest /\ m.source = step.from /\ m.dest = step.b
    /\ m.replica_epoch = step.of_epoch /\ m.pre_vote = step.pre_vote
    /\ m.last_log_offset = step.offset /\ m.last_log_epoch = step.last_epoch

IsFetch(m) ==
    /\ m.type = FetchRequest /\ m.source = step.from /\ m.dest = step.b
    /\ m.replica_epoch = step.of_epoch /\ m.fetch_offset = step.offset /\ m.last_fetched_epoch = step.last_epoch

IsBegin(m) ==
    /\ m.type = BeginQuorumEpochRequest /\ m.source = step.from /\ m.dest = step.b
    /\ m.replica_epoch = step.of_epoch

Handled == net_messages \ net_messages'
Sent == net_messages' \ net_messages

-----------------------------------------------------------------------------
(* Actions that the model lacks. *)

OthersUnchanged(changed) ==
    /\ UNCHANGED << server_ids, config, leaderVars, invVars, auxVars, pending_ack >>
    /\ "election" \notin changed => UNCHANGED << state, leader, current_epoch, voted_for, votes_recv >>
    /\ "fetch" \notin changed => UNCHANGED fetch_state
    /\ "log" \notin changed => UNCHANGED logVars
    /\ "network" \notin changed => UNCHANGED NetworkVars

\* A request comes a second time: a connection broke before it was answered.
SentAgain(Is(_)) ==
    /\ \E m \in net_messages_processed :
          /\ Is(m)
          /\ net_messages' = net_messages \union {m}
    /\ UNCHANGED << net_messages_processed, net_connectivity, net_connectivity_ctr >>
    /\ OthersUnchanged({"network"})

\* A fetch is not waited for any more.
FetchLost(s) ==
    /\ fetch_state' = [fetch_state EXCEPT ![s].pending_fetch = Nil]
    /\ OthersUnchanged({"fetch"})

\* A follower misses its leader: it was told that the leader leaves, or its connection to it was refused, or it has not
\* fetched in this epoch. It may grant pre-votes then, of which the model knows the last case only.
MissesLeader(s) ==
    /\ state[s] = Follower
    /\ fetch_state' = [fetch_state EXCEPT ![s].has_fetch_success = FALSE]
    /\ OthersUnchanged({"fetch"})

\* A vote is given again to who has it. The model has the rule, and an illegal state as its outcome.
GrantsAgain(s, peer) ==
    /\ state[s] \in {Unattached, Prospective}
    /\ voted_for[s] = peer /\ current_epoch[s] = step.of_epoch
    /\ \E m \in net_messages :
          /\ IsVote(m) /\ ~m.pre_vote
          /\ Reply(m, [type          |-> RequestVoteResponse,
                       replica_epoch |-> m.replica_epoch,
                       leader        |-> leader[s],
                       vote_granted  |-> TRUE,
                       pre_vote      |-> FALSE,
                       error         |-> Nil,
                       source        |-> s,
                       dest          |-> peer])
    /\ OthersUnchanged({"network"})

\* The answer of a fetch, read when it is sent. The model's has one entry, of the moment when the fetch came; ours waits for
\* entries, and has as many as there are. A follower's high watermark does not go back, so that it may be ahead of the
\* leader's.
AnswerRead(s, to) ==
    /\ state[s] = Leader
    /\ step.high_watermark <= Max({hwm[s], hwm[to], 1})
    /\ step.last \in (step.offset - 1)..Len(log[s])
    /\ \E m \in net_messages :
          /\ m.type = FetchResponse /\ m.source = s /\ m.dest = to /\ m.result = Ok
          /\ m.replica_epoch = current_epoch[s]
          /\ m.correlation.fetch_offset = step.offset
          /\ net_messages' = (net_messages \ {m}) \union
                 {[m EXCEPT !.entries = SubSeq(log[s], step.offset, step.last), !.hwm = step.high_watermark]}
    /\ UNCHANGED << net_messages_processed, net_connectivity, net_connectivity_ctr >>
    /\ OthersUnchanged({"network"})

\* `HandleFetchResponse` for an answer with more than one entry.
ManyEntries(s, peer) ==
    \E m \in net_messages :
        /\ m.type = FetchResponse /\ m.source = peer /\ m.dest = s /\ m.result = Ok
        /\ fetch_state[s].pending_fetch = m.correlation
        /\ Len(m.entries) > 1
        /\ LET new_state == MaybeHandleCommonResponse(s, m.leader, m.replica_epoch, m.error)
           IN ~new_state.handled /\ MaybeSwitchConfigurations(s, config[s], new_state)
        /\ log' = [log EXCEPT ![s] = @ \o m.entries]
        /\ hwm' = [hwm EXCEPT ![s] = m.hwm]
        /\ UpdateFetchStateWithFetchRes(s, m)
        /\ Discard(m)
        /\ UNCHANGED << server_ids, voted_for, pending_ack, invVars, auxVars >>

\* A high watermark that has waited moves: the leader's own log is durable now.
OwnLogCounts(s) ==
    /\ state[s] = Leader
    /\ step.hwm > hwm[s] /\ HasMajority(s, flwr_end_offset[s], step.hwm)
    /\ LET acked == pending_ack[s] \intersect {log[s][n].value : n \in (hwm[s] + 1)..step.hwm}
       IN /\ pending_ack' = [pending_ack EXCEPT ![s] = @ \ acked]
          /\ inv_pos_acked' = inv_pos_acked \union acked
    /\ hwm' = [hwm EXCEPT ![s] = step.hwm]
    /\ UNCHANGED << server_ids, config, current_epoch, state, voted_for, leader, fetch_state, candidateVars, leaderVars,
                    log, inv_sent, inv_neg_acked, auxVars, NetworkVars >>

KnownToLead == step.leader # Nil => << step.epoch, step.leader >> \in led

\* A server hears of an epoch, and perhaps of its leader, in an answer that the model does not have.
Learns(s) ==
    /\ KnownToLead
    /\ \E other \in StartedServers : other # s /\ current_epoch[other] >= step.epoch
    /\ LET heard == MaybeTransition(s, step.leader, step.epoch)
       IN /\ ApplyState(s, heard)
          /\ MaybeLoseLeadership(s, heard)
    /\ ResetFetchStateIfFollower(s)
    /\ UNCHANGED << server_ids, config, logVars, auxVars, NetworkVars >>

\* A server that restarts while it doubts its leader has written down who leads. The model's forgets that.
ReadsLeader(s) ==
    /\ state[s] = Unattached /\ current_epoch[s] = step.epoch
    /\ step.leader # Nil /\ KnownToLead
    /\ ApplyState(s, TransitionToFollower(s, step.leader, step.epoch))
    /\ OthersUnchanged({"election"})

-----------------------------------------------------------------------------
(* The steps. *)

Act(s) ==
    CASE step.action = "VoterFetchTimeout" -> VoterFetchTimeout(s)
      [] step.action = "VoterElectionTimeout" -> VoterElectionTimeout(s)
      [] step.action = "ResignedElectionTimeout" -> ResignedElectionTimeout(s)
      [] step.action = "ConcludePreVote" -> ConcludePreVote(s)
      [] step.action = "BecomeLeader" -> BecomeLeader(s)
      [] step.action = "CheckQuorumResign" -> CheckQuorumResign(s)
      [] step.action = "RestartWithState" -> RestartWithState(s)
      [] step.action = "HandleVoteRequest" ->
            /\ HandleVoteRequest(s, step.from)
            /\ \A m \in Handled : IsVote(m)
            /\ \E m \in net_messages' : /\ m.type = RequestVoteResponse /\ m.source = s /\ m.dest = step.from
                                        /\ m.pre_vote = step.pre_vote /\ m.vote_granted = step.granted
                                        /\ m.replica_epoch = current_epoch'[s]
            /\ \A m \in Sent : m.vote_granted = step.granted
      [] step.action = "HandleVoteResponse" -> HandleVoteResponse(s, step.from)
      [] step.action = "AcceptBeginQuorumRequest" ->
            /\ AcceptBeginQuorumRequest(s, step.from)
            /\ \A m \in Handled : IsBegin(m)
      [] step.action = "HandleClientRequest" ->
            /\ HandleClientRequest(s)
            /\ inv_sent' = inv_sent \union {CHOOSE v \in Value : v \notin inv_sent} \* which value is no matter
      [] step.action = "SendFetchRequest" ->
            /\ SendFetchRequest(s, step.to)
            /\ fetch_state'[s].pending_fetch.replica_epoch = step.of_epoch
            /\ fetch_state'[s].pending_fetch.fetch_offset = step.offset
            /\ fetch_state'[s].pending_fetch.last_fetched_epoch = step.last_epoch
      [] step.action = "AcceptFetchRequest" -> AcceptFetchRequest(s, step.from) /\ \A m \in Handled : IsFetch(m)
      [] step.action = "DivergingFetchRequest" -> DivergingFetchRequest(s, step.from) /\ \A m \in Handled : IsFetch(m)
      [] step.action = "RejectFetchRequest" -> RejectFetchRequest(s, step.from) /\ \A m \in Handled : IsFetch(m)
      [] step.action = "HandleFetchResponse" -> HandleFetchResponse(s, step.from)
      [] step.action = "ManyEntries" -> ManyEntries(s, step.from)
      [] step.action = "VoteSentAgain" -> SentAgain(IsVote)
      [] step.action = "BeginSentAgain" -> SentAgain(IsBegin)
      [] step.action = "FetchSentAgain" -> SentAgain(IsFetch)
      [] step.action = "FetchLost" -> FetchLost(s)
      [] step.action = "MissesLeader" -> MissesLeader(s)
      [] step.action = "GrantsAgain" -> GrantsAgain(s, step.from)
      [] step.action = "AnswerRead" -> AnswerRead(s, step.to)
      [] step.action = "OwnLogCounts" -> OwnLogCounts(s)
      [] step.action = "Learns" -> Learns(s)
      [] step.action = "ReadsLeader" -> ReadsLeader(s)
      [] OTHER -> FALSE \* "NoAction": a change that nothing in the model makes

\* No server knows of a leader, as after formatting. The model begins with a leader.
TraceInit ==
    LET servers == 1..InitClusterSize
    IN /\ NetworkInit(servers)
       /\ server_ids = [s \in servers |-> [host |-> s, disk_id |-> 0]]
       /\ config = [s \in servers |-> [id |-> 1, members |-> servers, committed |-> TRUE]]
       /\ current_epoch = [s \in servers |-> 0]
       /\ state = [s \in servers |-> Unattached]
       /\ leader = [s \in servers |-> Nil]
       /\ voted_for = [s \in servers |-> Nil]
       /\ fetch_state = [s \in servers |-> BlankFetchState]
       /\ pending_ack = [s \in servers |-> {}]
       /\ InitCandidateVars(servers)
       /\ InitLeaderVars(servers)
       /\ InitLogVars(servers, [command |-> InitClusterCommand, epoch |-> 0, value |-> [id |-> 1, members |-> servers]])
       /\ InitInvVars
       /\ InitAuxVars
       /\ led = {} /\ taken = 0 /\ run \in 1..Len(Traces)

TraceNext ==
    /\ taken < Len(steps)
    /\ Act(step.b)
    /\ ServerAsReported(step.b)
    /\ led' = IF step.action = "BecomeLeader" THEN led \union {<< current_epoch[step.b], step.b >>} ELSE led
    /\ taken' = taken + 1
    /\ UNCHANGED run

TraceView == << view, led, run, taken >>

-----------------------------------------------------------------------------
(* The judgement: TLC prints how far it has come, and which of the model's properties ends it. *)

OneLeaderAnEpoch == \A one, other \in led : one[1] = other[1] => one = other

Judged(name, holds) == holds \/ (PrintT(<< "broken", run, taken, name >>) /\ FALSE)

Judgement ==
    /\ PrintT(<< "taken", run, taken >>)
    /\ Judged("NoIllegalState", NoIllegalState)
    /\ Judged("OneLeaderAnEpoch", OneLeaderAnEpoch)
    /\ Judged("ElectionSafety", ElectionSafety)
    /\ Judged("LogMatching", LogMatching)
    /\ Judged("LeaderCompleteness", LeaderCompleteness)
    /\ Judged("Durability", Durability)
    /\ Judged("ValidRolesAndStates", ValidRolesAndStates)

=============================================================================
