import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/**
 * Runs the statements of a file, as Flink's SQL client does. What they insert goes on until the process is killed.
 *
 *     Statements FILE
 */
public final class Statements {
    public static void main(String[] arguments) throws Exception {
        TableEnvironment environment = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
        for (String statement : Files.readString(Path.of(arguments[0])).split(";")) {
            String text = statement.strip();
            if (text.startsWith("SET ")) {
                String[] setting = text.substring(4).split("=", 2);
                environment.getConfig().set(unquoted(setting[0]), unquoted(setting[1]));
            } else if (text.startsWith("INSERT ")) {
                environment.executeSql(text).await();
            } else if (!text.isEmpty()) {
                environment.executeSql(text);
            }
        }
    }

    private static String unquoted(String text) {
        return text.strip().replaceAll("^'|'$", "");
    }
}
