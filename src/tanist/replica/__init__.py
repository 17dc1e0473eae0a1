"""One replica of one partition: leader and follower as sans-IO state machines."""
