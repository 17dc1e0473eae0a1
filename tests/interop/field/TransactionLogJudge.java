// What Apache Kafka writes into its transaction log of a transaction whose epochs have run out: the two other ids,
// and the last epoch if the format has it. Run as a source file; it prints "previous next epoch".

import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.coordinator.transaction.TransactionLog;
import org.apache.kafka.coordinator.transaction.TransactionState;
import org.apache.kafka.coordinator.transaction.TxnTransitMetadata;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogValue;
import org.apache.kafka.server.common.TransactionVersion;

class TransactionLogJudge {
    public static void main(String[] arguments) {
        long previous = Long.parseLong(arguments[0]);
        long next = Long.parseLong(arguments[1]);
        TxnTransitMetadata metadata = new TxnTransitMetadata(
            7, previous, next, Short.MAX_VALUE, (short) (Short.MAX_VALUE - 1), 60_000,
            TransactionState.PREPARE_COMMIT, new HashSet<>(), 1, 2, TransactionVersion.TV_2);
        ByteBuffer written = ByteBuffer.wrap(TransactionLog.valueToBytes(metadata, TransactionVersion.TV_2));
        short version = written.getShort();
        TransactionLogValue value = new TransactionLogValue(new ByteBufferAccessor(written), version);
        Matcher last = Pattern.compile("lastProducerEpoch=(-?[0-9]+)").matcher(value.toString());
        String epoch = last.find() ? last.group(1) : "none";
        System.out.println(value.previousProducerId() + " " + value.nextProducerId() + " " + epoch);
    }
}
