--------------------------- MODULE FiniteSetsExt ---------------------------
(* What the models use of the module of that name of the TLA+ community modules, which TLC 2.15 does not bring. *)
LOCAL INSTANCE Integers
LOCAL INSTANCE FiniteSets

Quantify(set, Holds(_)) == Cardinality({one \in set : Holds(one)})

Max(numbers) == CHOOSE n \in numbers : \A other \in numbers : n >= other

Min(numbers) == CHOOSE n \in numbers : \A other \in numbers : n <= other
=============================================================================
