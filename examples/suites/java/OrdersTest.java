import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A suite in Java: JUnit, Apache Kafka's producer, and a cluster that it breaks with `tanist`. */
class OrdersTest {
    static Path data;
    static KafkaProducer<String, String> producer;

    /** Runs a command, and gives what it prints. */
    static String tanist(String... words) throws Exception {
        var command = new ArrayList<>(List.of("tanist"));
        command.addAll(List.of(words));
        var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put("TANIST_DATA", data.toString());
        var process = builder.start();
        var printed = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), () -> String.join(" ", command) + " printed " + printed);
        return printed;
    }

    @BeforeAll
    static void up() throws Exception {
        data = Files.createTempDirectory("orders-").resolve("cluster");
        var ready = Pattern.compile("\"bootstrap\": \"(.*)\"").matcher(tanist("up", "--detach", "--port", "0", "--json"));
        assertTrue(ready.find());
        tanist("topics", "create", "orders", "--partitions", "1", "--replication-factor", "3");
        var settings = new Properties();
        settings.put("bootstrap.servers", ready.group(1));
        producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    @AfterEach
    void heal() throws Exception {
        tanist("heal");
    }

    @AfterAll
    static void down() throws Exception {
        producer.close();
        tanist("down", "--wipe", "--yes");
    }

    @Test
    void anOrderIsSentAgainWhenTooFewReplicasAreInSync() throws Exception {
        tanist("faults", "inject", "error", "PRODUCE", "NOT_ENOUGH_REPLICAS", "--once");
        producer.send(new ProducerRecord<>("orders", "order 1")).get();
        assertTrue(tanist("faults", "list").contains("once (1 hit of "));
    }

    @Test
    void anOrderSurvivesTheDeathOfABroker() throws Exception {
        tanist("crash", "1");
        producer.send(new ProducerRecord<>("orders", "order 2")).get();
        tanist("start", "1");
        tanist("wait", "--topic", "orders", "--isr", "3");
    }
}
