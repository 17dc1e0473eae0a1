"""One file per API. `table.py` says which listener serves which, and in which versions."""
