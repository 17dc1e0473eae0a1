// What Apache Kafka's own quota classes say of a sequence of values, for a test of equality.
//
// stdin: JSON lines {"samples": 11, "sample_ms": 1000, "steps": [[kind, bound, value, now_ms], ...]}, each a new sensor.
//   kind "rate": record the value, then say the time to be throttled for a rate above the bound.
//   kind "bucket": record the value in a bucket of tokens; "strict" refuses it while tokens are owed.
// stdout: one JSON line each: the times, -1 for a refusal that is preceded by its time as [time, -1].
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.server.quota.QuotaUtils;

public class QuotaOracle {
    static MetricConfig config(JsonNode one, double bound) {
        return new MetricConfig()
            .samples(one.get("samples").asInt())
            .timeWindow(one.get("sample_ms").asLong(), TimeUnit.MILLISECONDS)
            .quota(Quota.upperBound(bound));
    }

    static long owed(QuotaViolationException e) {  // ControllerMutationQuotaManager.throttleTimeMs
        return Math.round(-e.value() / e.bound() * 1000);
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        Metrics metrics = new Metrics();
        int number = 0;
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode one = json.readTree(line);
            JsonNode steps = one.get("steps");
            boolean isRate = steps.get(0).get(0).asText().equals("rate");
            MetricConfig first = config(one, steps.get(0).get(1).asDouble());
            Sensor sensor = metrics.sensor("sensor" + number, first);
            MetricName name = metrics.metricName("metric" + number++, "quota");
            sensor.add(name, isRate ? new Rate() : new TokenBucket(), first);
            KafkaMetric metric = metrics.metric(name);
            ArrayNode times = json.createArrayNode();
            for (JsonNode step : steps) {
                String kind = step.get(0).asText();
                double bound = step.get(1).asDouble(), value = step.get(2).asDouble();
                long now = step.get(3).asLong();
                metric.config(config(one, bound));
                try {
                    if (kind.equals("strict")) {
                        sensor.checkQuotas(now);
                        sensor.record(value, now, false);
                    } else {
                        sensor.record(value, now, true);
                    }
                    times.add(0);
                } catch (QuotaViolationException e) {
                    if (kind.equals("rate")) {
                        times.add(QuotaUtils.throttleTime(e, now));
                    } else {
                        times.add(owed(e));
                        if (kind.equals("strict")) times.add(-1);
                    }
                }
            }
            metrics.removeSensor(sensor.name());
            out.println(json.writeValueAsString(times));
        }
        out.flush();
    }
}
