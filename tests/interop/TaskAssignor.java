// What Apache Kafka's own assignor of Streams tasks makes of groups, for a comparison.
//
// stdin: JSON lines {"standbys": 1, "parts": {name: [tasks, is stateful]}, "members": {id: {"process": name,
//   "active": {part: [index]}, "standby": {part: [index]}, "offsets": {part: {index: offset}}}}}.
// stdout: one JSON line each: {id: [{part: [index]}, {part: [index]}]}, what each works on and what it follows.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

public class TaskAssignor {
    static Map<String, Set<Integer>> tasks(JsonNode of) {
        Map<String, Set<Integer>> found = new HashMap<>();
        of.fields().forEachRemaining(part -> {
            Set<Integer> indexes = new HashSet<>();
            part.getValue().forEach(index -> indexes.add(index.asInt()));
            found.put(part.getKey(), indexes);
        });
        return found;
    }

    static Map<String, Map<Integer, Long>> offsets(JsonNode of) {
        Map<String, Map<Integer, Long>> found = new HashMap<>();
        of.fields().forEachRemaining(part -> {
            Map<Integer, Long> reached = new HashMap<>();
            part.getValue().fields().forEachRemaining(
                each -> reached.put(Integer.valueOf(each.getKey()), each.getValue().asLong()));
            found.put(part.getKey(), reached);
        });
        return found;
    }

    static class Parts implements TopologyDescriber {
        private final JsonNode parts;

        Parts(JsonNode parts) {
            this.parts = parts;
        }

        public List<String> subtopologies() {
            List<String> names = new ArrayList<>();
            parts.fieldNames().forEachRemaining(names::add);
            return names;
        }

        public int maxNumInputPartitions(String name) {
            return parts.get(name).get(0).asInt();
        }

        public boolean isStateful(String name) {
            return parts.get(name).get(1).asBoolean();
        }
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode one = json.readTree(line);
            Map<String, MemberMetadataAndStateImpl> members = new TreeMap<>();
            one.get("members").fields().forEachRemaining(each -> {
                JsonNode member = each.getValue();
                members.put(each.getKey(), new MemberMetadataAndStateImpl(
                    Optional.empty(), Optional.empty(), member.get("process").asText(), Map.of(),
                    tasks(member.get("active")), tasks(member.get("standby")), Map.of(),
                    offsets(member.get("offsets")), Map.of()));
            });
            GroupSpecImpl group = new GroupSpecImpl(
                members, new AssignmentConfigsImpl(one.get("standbys").asInt(), List.of()));
            Map<String, List<Object>> said = new TreeMap<>();
            new StickyTaskAssignor().assign(group, new Parts(one.get("parts"))).members().forEach(
                (id, made) -> said.put(id, List.of(made.activeTasks(), made.standbyTasks())));
            out.println(json.writeValueAsString(said));
        }
        out.flush();
    }
}
