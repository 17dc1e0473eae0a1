import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * An application of Java's clients that an older version of theirs has as well: creates a topic, writes 300 records, the
 * last hundred in a transaction, reads them all in a group, commits, and prints how many it has read.
 *
 *     java OldClient.java BOOTSTRAP TOPIC
 */
public class OldClient {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        Properties common = new Properties();
        common.put("bootstrap.servers", arguments[0]);
        common.put("default.api.timeout.ms", "30000");
        common.put("request.timeout.ms", "15000");
        try (Admin admin = Admin.create(common)) {
            System.out.println("nodes " + admin.describeCluster().nodes().get().size());
            admin.createTopics(List.of(new NewTopic(topic, 3, (short) 3))).all().get();
        }
        send(common, topic, 0, 200, null);
        send(common, topic, 200, 300, topic + "-transactional");
        Properties reading = (Properties) common.clone();
        reading.put("group.id", topic + "-group");
        reading.put("auto.offset.reset", "earliest");
        reading.put("enable.auto.commit", "false");
        reading.put("isolation.level", "read_committed");
        TreeSet<String> values = new TreeSet<>();
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
            while (values.size() < 300 && System.nanoTime() < end) {
                consumer.poll(Duration.ofSeconds(1)).forEach(record -> values.add(record.value()));
            }
            consumer.commitSync();
        }
        System.out.println("read " + values.size());
        try (Admin admin = Admin.create(common)) {
            long committed = admin.listConsumerGroupOffsets(topic + "-group").partitionsToOffsetAndMetadata().get()
                .values().stream().mapToLong(each -> each.offset()).sum();
            System.out.println("committed " + committed);
        }
    }

    private static void send(Properties common, String topic, int first, int end, String id) throws Exception {
        Properties settings = (Properties) common.clone();
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true");
        settings.put("compression.type", "zstd");
        if (id != null) {
            settings.put("transactional.id", id);
        }
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            if (id != null) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            for (int number = first; number < end; number++) {
                producer.send(new ProducerRecord<>(topic, number % 3, null, String.format("%05d", number)));
            }
            producer.flush();
            if (id != null) {
                producer.commitTransaction();
            }
        }
    }
}
