import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Steps with Apache Kafka's own clients. See tests/clients/step_programs.py. */
public class Steps {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Duration STEP = Duration.ofSeconds(20);
    static final String MODULES = "org.apache.kafka.common.security.";

    static Properties settings(JsonNode given) throws Exception {
        Properties found = new Properties();
        found.put("bootstrap.servers", given.get("bootstrap").asText());
        found.put("security.protocol", given.get("protocol").asText());
        found.put("ssl.truststore.type", "PEM");
        found.put("ssl.truststore.location", given.get("ca").asText());
        found.put("max.block.ms", "10000");
        found.put("default.api.timeout.ms", "10000");
        found.put("request.timeout.ms", "5000");
        if (given.has("certificate")) {
            found.put("ssl.keystore.type", "PEM");
            found.put("ssl.keystore.location", given.get("certificate").asText());
        }
        if (given.has("mechanism")) {
            String mechanism = given.get("mechanism").asText();
            found.put("sasl.mechanism", mechanism);
            if (given.has("token")) {
                Path file = Files.createTempFile("token", ".jwt");
                file.toFile().deleteOnExit();
                Files.writeString(file, given.get("token").asText());
                System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", file.toUri().toString());
                System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.files", file.toString());
                found.put("sasl.oauthbearer.token.endpoint.url", file.toUri().toString());
                found.put("sasl.login.callback.handler.class", MODULES + "oauthbearer.OAuthBearerLoginCallbackHandler");
                found.put("sasl.jaas.config", MODULES + "oauthbearer.OAuthBearerLoginModule required;");
            } else {
                String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
                found.put("sasl.jaas.config", String.format("%s%s required username=\"%s\" password=\"%s\";",
                    MODULES, module, given.get("username").asText(), given.get("password").asText()));
            }
        }
        return found;
    }

    static KafkaProducer<String, String> producer(Properties settings) {
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static void send(KafkaProducer<String, String> producer, JsonNode step) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode value : step.get("values")) {
            sent.add(producer.send(new ProducerRecord<>(step.get("topic").asText(), value.asText())));
        }
        for (Future<RecordMetadata> each : sent) {
            each.get();
        }
    }

    static List<String> carryOut(String name, JsonNode step, Properties settings) throws Exception {
        switch (name) {
            case "create":
                try (Admin admin = Admin.create(settings)) {
                    NewTopic topic = new NewTopic(step.get("topic").asText(), 1, (short) 1);
                    admin.createTopics(List.of(topic)).all().get();
                }
                return null;
            case "produce":
                try (KafkaProducer<String, String> producer = producer(settings)) {
                    send(producer, step);
                }
                return null;
            case "transaction":
                settings.put("transactional.id", step.get("id").asText());
                try (KafkaProducer<String, String> producer = producer(settings)) {
                    producer.initTransactions();
                    producer.beginTransaction();
                    send(producer, step);
                    producer.commitTransaction();
                }
                return null;
            case "consume":
                settings.put("group.id", step.get("group").asText());
                settings.put("auto.offset.reset", "earliest");
                var text = new StringDeserializer();
                try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
                    consumer.subscribe(List.of(step.get("topic").asText()));
                    List<String> found = new ArrayList<>();
                    long end = System.nanoTime() + STEP.toNanos();
                    while (found.size() < step.get("count").asInt() && System.nanoTime() < end) {
                        consumer.poll(Duration.ofMillis(200)).forEach(record -> found.add(record.value()));
                    }
                    return found;
                }
            default:
                throw new IllegalArgumentException(name);
        }
    }

    static String told(Throwable error) {
        String cause = error.getCause() == null ? "" : "\n" + told(error.getCause());
        return error.getClass().getSimpleName() + ": " + error.getMessage() + cause;
    }

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode given = JSON.readTree(line);
            ArrayNode outcomes = JSON.createArrayNode();
            for (JsonNode each : given.get("steps")) {
                var outcome = outcomes.addObject();
                try {
                    outcome.putPOJO("value", carryOut(each.get(0).asText(), each.get(1), settings(given)));
                } catch (Exception error) {
                    outcome.put("error", told(error));
                }
            }
            System.out.println(outcomes);
        }
    }
}
