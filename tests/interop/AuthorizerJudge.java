// Asks Apache Kafka's StandardAuthorizer. Each line of the input is a case, each line of the output its verdicts:
//   {"properties": {..}, "acls": [[type, name, pattern, principal, host, operation, permission], ..],
//    "questions": [[principal, host, operation, type, name or null], ..]}
// A verdict is a letter: y for allowed, n for denied, x for an exception. A null name asks about any resource of the type.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.InetAddress;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

public class AuthorizerJudge {
    private static final class Asker implements AuthorizableRequestContext {
        private final KafkaPrincipal who;
        private final InetAddress where;

        Asker(String principal, String host) throws Exception {
            String[] parts = principal.split(":", 2);
            who = new KafkaPrincipal(parts[0], parts[1]);
            where = InetAddress.getByName(host);
        }

        @Override public KafkaPrincipal principal() { return who; }
        @Override public InetAddress clientAddress() { return where; }
        @Override public String listenerName() { return "EXTERNAL"; }
        @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.SSL; }
        @Override public int requestType() { return 0; }
        @Override public int requestVersion() { return 9; }
        @Override public String clientId() { return "judge"; }
        @Override public int correlationId() { return 1; }
    }

    private static StandardAcl acl(JsonNode entry) {
        return new StandardAcl(
            ResourceType.fromCode((byte) entry.get(0).asInt()), entry.get(1).asText(),
            PatternType.fromCode((byte) entry.get(2).asInt()), entry.get(3).asText(), entry.get(4).asText(),
            AclOperation.fromCode((byte) entry.get(5).asInt()), AclPermissionType.fromCode((byte) entry.get(6).asInt()));
    }

    private static char verdict(StandardAuthorizer authorizer, JsonNode question) {
        try {
            Asker asker = new Asker(question.get(0).asText(), question.get(1).asText());
            AclOperation operation = AclOperation.fromCode((byte) question.get(2).asInt());
            ResourceType type = ResourceType.fromCode((byte) question.get(3).asInt());
            AuthorizationResult result;
            if (question.get(4).isNull()) {
                result = authorizer.authorizeByResourceType(asker, operation, type);
            } else {
                ResourcePattern resource = new ResourcePattern(type, question.get(4).asText(), PatternType.LITERAL);
                result = authorizer.authorize(asker, List.of(new Action(operation, resource, 1, false, false))).get(0);
            }
            return result == AuthorizationResult.ALLOWED ? 'y' : 'n';
        } catch (Exception unexpected) {
            return 'x';
        }
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        Metrics metrics = new Metrics();
        Scanner input = new Scanner(System.in, "UTF-8");
        while (input.hasNextLine()) {
            JsonNode given = mapper.readTree(input.nextLine());
            try (StandardAuthorizer authorizer = new StandardAuthorizer();
                 PluginMetricsImpl plugin = new PluginMetricsImpl(metrics, Map.of())) {
                authorizer.configure(mapper.convertValue(given.get("properties"), Map.class));
                authorizer.withPluginMetrics(plugin);
                authorizer.loadSnapshot(StreamSupport.stream(given.get("acls").spliterator(), false)
                    .collect(Collectors.toMap(entry -> Uuid.randomUuid(), AuthorizerJudge::acl)));
                authorizer.completeInitialLoad();
                StringBuilder verdicts = new StringBuilder();
                given.get("questions").forEach(question -> verdicts.append(verdict(authorizer, question)));
                System.out.println(verdicts);
            }
        }
    }
}
