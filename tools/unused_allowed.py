"""Names that vulture sees no use of, and why each is used. `make check` reads this file; nothing runs it.

It looks at everything, and then at the product alone: what only tests call goes, unless it has its reason here.

Take a name out when its code goes. A name that is in no list here, and that nothing uses, fails the check.
"""

# Frameworks call these by name.
_.command_class  # click: the class of a group's commands
_.group_class
_.format_commands
_.connection_made  # asyncio.Protocol
_.data_received
_.exc
_.log_message  # http.server
_.on_partitions_assigned  # kafka-python and aiokafka: listeners of a rebalance
_.on_partitions_revoked
_.batchId  # Spark's Python Data Source API
_.getDefaultReadLimit
_.initialOffset
_.latestOffset
_.prepareForTriggerAvailableNow
_.pushFilters
_.reportLatestOffset
_.streamReader
_.streamWriter
_.__getattr__  # Python: the names of tanist.spark are imported when they are first asked for
_.log_errors  # re2.Options

# Looked up by a name that is made at run time.
_.build_increment  # broker/api/table.py: what builds the handlers of an API
_.build_replace
_.build_decide
_.build_heartbeat
_.build_forward
_.build_quorum
_.build_describe
_.build_alter
_.build_delete
_.build_renew
_.build_expire
_.build_decide_renew
_.build_decide_expire
_._rolling  # sim/faults/nemesis.py: each fault's method
_._pause
_._crash_mid_turn
_._crash_leader
_._crash_controller
_._log_dir_failed
_._blackout
_._reborn
_._skew
_._disk_slow
_._disk_failed
_._disk_full
_._rot
_._metadata_disk
_._lost_log
_._last_standing  # lab/jepsen/nemesis.py: the same
_._slow
_._preferred  # sim/workload/operations.py: each operation's method
_._unregister
_._throttled_move
_._unthrottle
_._move_log
_._slow_move_log
_._add_voter  # sim/workload/voter_operations.py: the same
_._remove_voter
_._allow  # sim/workload/access_admin.py: the same
_._deny
_._forget_user
_._give_token
_._set_quota  # sim/workload/quota_admin.py: the same
_._drop_quota
_._drop_quotas
_._end_token
_._producer_perf  # bench/measure.py: each workload's method
_._consumer_perf
_._kcat

# Used by people: pipelines, pytest.
_.attach  # examples/pipelines
_.FrameLogs  # docs/pipeline.md: an audit of DataFrames
_._value_  # Anomaly: an Enum reads it
_.LIVE  # tanist.faults: tools/faults_page.py and tests ask for these rows
_.INJECTED  # lab/jepsen/schedule.py: tests ask for the faults of all tests
_.catalogue  # web/src/lab/worker.ts: Python in the browser
_.TestCommittedOffsets  # rule-based machines, as pytest finds them
_.TestGroups
_.libraries  # a fixture for what it does: confluent-kafka becomes importable

# Members of Kafka's enumerations and layouts, which are there as a whole.
_.LOW
_.HIGH
_.STRING
_.CLASS
_.PREPARING_REBALANCE
_.COMPLETING_REBALANCE
_.BASE_SEQUENCE_AT
_.BASE_OFFSET_AT
_.LEADER_EPOCH_AT
_.BASE_TIMESTAMP_AT
_.LAST_OFFSET_DELTA_AT
_.PRODUCER_EPOCH_AT
_.PRODUCER_ID_AT
_.MV_4_0

# Fields that are read by their position, or compared as part of a tuple.
_.stored_description_topology_epoch  # wire/streams_group_records.py: goes on as Apache Kafka 4.4 has written it
_.failed_description_topology_epoch
_.fewer_records  # runtime/client/salvaged.py: the order of batches
_.restarts  # lab/model/partition/components.py: budgets of the search
_.fences
_.cancellations
_.failovers
_.old_fetches
_.old_replies

# Set to see that it cannot be set.
_.nome

# Properties that are read by their names in Kafka, not from the parsed configuration.
_.log_cleaner_dedupe_buffer_size
_.log_flush_scheduler_interval_ms
_.message_max_bytes
_.metadata_max_idle_interval_ms
_.file_delete_delay_ms

# Properties of Kafka's that are accepted and have no effect: GAPS.md lists them.
_.append_linger_ms
_.controlled_shutdown_enable
_.log_dir_failure_timeout_ms
_.log_flush_offset_checkpoint_interval_ms
_.log_flush_start_offset_checkpoint_interval_ms
_.preallocate
_.queued_max_requests
_.replica_socket_receive_buffer_bytes
_.socket_listen_backlog_size

# A state of Apache Kafka's that is never written.
_.PREPARE_EPOCH_FENCE

# Read by `tanist.web.state.plain`, field by field; set for uvicorn, which reads it (tests/web).
_.quorum_epoch
_.danger
_.records_out
_.replication_in
_.replication_out
_.should_exit

# Fields of messages: the codec reads them.
_.create_timestamp
_.write_timestamp
_.last_caught_up_timestamp
_.last_fetch_timestamp
_.issue_timestamp_ms
_.expiry_timestamp_ms
_.max_timestamp_ms

# What a property's line in the catalogue says, and this program does not ask.
_.importance

# What an archive says of its entries.
_.uid
_.gid
_.mtime
_.uname
_.gname

# Lists that tests hold to be whole: each thing in them is used by its own name.
_.TESTS  # lab/jepsen: the words of the command, which is not to import them
_.ALL  # lab/scenarios/deviations.py

# An observation: without it no test could tell a start that reads too much.
_.segments_scanned
