import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of a share group, one thread each, that say what they get and what was answered.
 *
 * <p>Usage: ShareMembers BOOTSTRAP GROUP TOPIC MEMBERS. A line for each record: "got PARTITION OFFSET COUNT", before its
 * acknowledgement is sent, and "acked PARTITION OFFSET" or "lost PARTITION OFFSET" when that is answered. Every 50th
 * record is released at its first delivery: "released PARTITION OFFSET". Ends when its input does.
 */
public class ShareMembers {
    private static synchronized void say(String kind, int partition, long offset, String rest) {
        System.out.println(kind + " " + partition + " " + offset + rest);
    }

    public static void main(String[] args) throws Exception {
        AtomicBoolean ends = new AtomicBoolean();
        int members = Integer.parseInt(args[3]);
        CountDownLatch left = new CountDownLatch(members);
        for (int i = 0; i < members; i++) {
            new Thread(() -> {
                try {
                    member(args[0], args[1], args[2], ends);
                } catch (Throwable t) {
                    System.out.println("failed " + t);
                } finally {
                    left.countDown();
                }
            }).start();
        }
        System.in.read();
        ends.set(true);
        left.await();
        System.exit(0);
    }

    private static void member(String bootstrap, String group, String topic, AtomicBoolean ends) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", group);
        properties.put("share.acknowledgement.mode", "explicit");
        properties.put("max.poll.records", "100");
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (!ends.get()) {
                var records = consumer.poll(Duration.ofMillis(300));
                for (ConsumerRecord<byte[], byte[]> each : records) {
                    int count = each.deliveryCount().map(Short::intValue).orElse(0);
                    say("got", each.partition(), each.offset(), " " + count);
                    boolean release = each.offset() % 50 == 7 && count == 1;
                    consumer.acknowledge(each, release ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                }
                if (records.isEmpty()) {
                    continue;
                }
                Map<TopicIdPartition, Optional<KafkaException>> answers = consumer.commitSync(Duration.ofSeconds(60));
                for (ConsumerRecord<byte[], byte[]> each : records) {
                    int count = each.deliveryCount().map(Short::intValue).orElse(0);
                    boolean release = each.offset() % 50 == 7 && count == 1;
                    boolean stored = answers.entrySet().stream().anyMatch(answer ->
                        answer.getKey().partition() == each.partition() && answer.getValue().isEmpty());
                    say(!stored ? "lost" : release ? "released" : "acked", each.partition(), each.offset(), "");
                }
            }
        } catch (WakeupException e) {
            // it is to end
        }
    }
}
