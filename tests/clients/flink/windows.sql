SET 'execution.checkpointing.interval' = '500 ms';
SET 'execution.checkpointing.dir' = 'file://{folder}/checkpoints';
SET 'restart-strategy.type' = 'fixed-delay';
SET 'restart-strategy.fixed-delay.attempts' = '20';
SET 'parallelism.default' = '2';

CREATE TABLE words (
  word STRING,
  `at` BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(`at`, 3),
  WATERMARK FOR event_time AS event_time - INTERVAL '60' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = '{source}',
  'properties.bootstrap.servers' = '{bootstrap}',
  'properties.group.id' = 'flink-{source}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE counts (word STRING, since BIGINT, records BIGINT) WITH (
  'connector' = 'kafka',
  'topic' = '{target}',
  'properties.bootstrap.servers' = '{bootstrap}',
  'properties.transaction.timeout.ms' = '120000',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = 'flink-{target}',
  'format' = 'json'
);

INSERT INTO counts
  SELECT word, UNIX_TIMESTAMP(CAST(window_start AS STRING)) * 1000, COUNT(*)
  FROM TABLE(TUMBLE(TABLE words, DESCRIPTOR(event_time), INTERVAL '1' MINUTE))
  WHERE word IS NOT NULL
  GROUP BY word, window_start, window_end;
