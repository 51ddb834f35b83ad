package dev.thole.example;

import dev.thole.client.ActivityFailure;
import dev.thole.client.Task;
import dev.thole.client.Worker;
import io.nats.client.Connection;
import io.nats.client.Nats;
import io.nats.client.Options;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** A worker of queue "payments". */
public final class PaymentsWorker {
    private PaymentsWorker() {}

    public static void main(String[] args) throws Exception {
        Options options = Options.builder().server("nats://127.0.0.1:4222").maxReconnects(-1).build();
        try (Connection nats = Nats.connect(options)) {
            Worker worker = Worker.builder(nats, "payments").name("payments-1").slots(20).stopLimit(Duration.ofSeconds(20))
                .activity("charge", PaymentsWorker::charge)
                .activity("import", PaymentsWorker::importRows)
                .build();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                try {
                    worker.close(); // stops, and waits until it has ended
                } catch (InterruptedException err) {
                    Thread.currentThread().interrupt();
                }
            }));
            worker.run();
        }
    }

    private static byte[] charge(Task task) throws Exception {
        if (task.input().length == 0) throw ActivityFailure.last("bad_order", "there is no order"); // no other try
        return bank(task.inputText(), task.key()).getBytes(StandardCharsets.UTF_8); // an exception: another try
    }

    private static String bank(String order, String idempotencyKey) throws InterruptedException {
        Thread.sleep(100); // is interrupted when the task is cancelled
        return "charged " + order + " once, by " + idempotencyKey;
    }

    private static byte[] importRows(Task task) {
        String before = new String(task.details(), StandardCharsets.UTF_8);
        for (int row = before.isEmpty() ? 0 : Integer.parseInt(before); row < 1000; row++) { // goes on where the try before ended
            task.throwIfCancelled();
            // … import the row …
            task.heartbeat(String.valueOf(row + 1));
        }
        return null;
    }
}
