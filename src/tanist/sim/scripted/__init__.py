"""A small cluster of whole nodes for a script: who says what happens, and when."""
