import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Copies one topic to another, exactly once: a sink's transactions are committed by checkpoints. It runs until it is killed.
 *
 *     ExactlyOnce BOOTSTRAP SOURCE TARGET CHECKPOINTS FAIL-AT
 *
 * The job fails at the first record whose value is FAIL-AT, and Flink starts it again from its last checkpoint.
 */
public final class ExactlyOnce {
    private static final int PARALLELISM = 2;
    private static final Duration CHECKPOINT = Duration.ofMillis(500);

    /** Takes its time, so that there are some checkpoints. */
    static final class FailsOnce implements MapFunction<String, String> {
        private static final AtomicBoolean FAILED = new AtomicBoolean();
        private final String at;

        FailsOnce(String at) {
            this.at = at;
        }

        @Override
        public String map(String value) throws InterruptedException {
            Thread.sleep(4);
            if (value.equals(at) && FAILED.compareAndSet(false, true)) {
                System.out.println("fails on purpose");
                throw new IllegalStateException("on purpose");
            }
            return value;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        Configuration settings = new Configuration();
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, "file://" + arguments[3]);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 20);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofSeconds(1));
        StreamExecutionEnvironment environment =
            StreamExecutionEnvironment.createLocalEnvironment(PARALLELISM, settings);
        environment.enableCheckpointing(CHECKPOINT.toMillis());

        KafkaSource<String> source = KafkaSource.<String>builder()
            .setBootstrapServers(bootstrap)
            .setTopics(arguments[1])
            .setGroupId("flink-" + arguments[1])
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
        Properties producer = new Properties();
        producer.setProperty("transaction.timeout.ms", "120000"); // Flink's own is above the brokers' limit
        KafkaSink<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(bootstrap)
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                .setTopic(arguments[2])
                .setValueSerializationSchema(new SimpleStringSchema())
                .build())
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix("flink-" + arguments[2])
            .setKafkaProducerConfig(producer)
            .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "source")
            .map(new FailsOnce(arguments[4]))
            .sinkTo(sink);
        environment.execute("exactly-once");
    }
}
