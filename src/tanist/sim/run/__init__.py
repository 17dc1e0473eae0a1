"""One run from a seed to its verdict, and many of them: profiles, pools, coverage."""
