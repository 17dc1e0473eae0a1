"""Groups and transactions as sans-IO state machines. Each shard has one partition of the topic that stores them.

* `group_shard.GroupShard`: the groups and committed offsets of one partition of `__consumer_offsets`.
* `transactions.transaction_shard.TransactionShard`: the transactional ids of one partition of `__transaction_state`.

A broker hosts the shards of the partitions that it leads (`broker.coordinator_runtime`). For the requests of clients it
has a `GroupCoordinator` (`broker.groups`) and a `TransactionCoordinator` (`broker.transactions`).
"""
