"""Commands that work on a cluster: one module for each group of `tanist --help`."""
