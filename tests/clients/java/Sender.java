import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends what it reads, with Apache Kafka's producer: a value a line, and prints a line for each once it is acknowledged.
 *
 *     java Sender.java BOOTSTRAP TOPIC CLIENT_ID
 *
 * A request that is not answered within two seconds is tried again.
 */
public class Sender {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("client.id", arguments[2]);
        settings.put("request.timeout.ms", "2000");
        try (var producer = new KafkaProducer<String, String>(settings, new StringSerializer(), new StringSerializer())) {
            var lines = new BufferedReader(new InputStreamReader(System.in));
            for (String value = lines.readLine(); value != null; value = lines.readLine()) {
                producer.send(new ProducerRecord<>(arguments[1], value)).get();
                System.out.println(value);
            }
        }
    }
}
