--------------------------- MODULE FiniteSetsExt ---------------------------
(* The model names the module of that name of the TLA+ community modules, and uses nothing of it. *)
=============================================================================
