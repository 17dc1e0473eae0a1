---------------------------- MODULE SequencesExt ----------------------------
(* What the models use of the module of that name of the TLA+ community modules, which TLC 2.15 does not bring. *)
LOCAL INSTANCE Naturals
LOCAL INSTANCE Sequences

Last(sequence) == sequence[Len(sequence)]

SeqOf(set, n) == UNION {[1..m -> set] : m \in 0..n}

RECURSIVE SetToSeq(_)
SetToSeq(set) ==
    IF set = {} THEN << >> ELSE LET one == CHOOSE one \in set : TRUE IN << one >> \o SetToSeq(set \ {one})
=============================================================================
