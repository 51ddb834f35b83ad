package dev.thole.example;

import dev.thole.client.ActivityFailure;
import dev.thole.client.Task;
import dev.thole.client.Worker;
import io.nats.client.Connection;
import io.nats.client.Nats;
import io.nats.client.Options;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Serves the activities of the orchestration checkout (examples/checkout.c): THOLE_NATS_URL, THOLE_NAMESPACE, THOLE_QUEUE. */
public final class CheckoutWorker {
    private CheckoutWorker() {}

    public static void main(String[] args) throws Exception {
        Options options = Options.builder().server(setting("THOLE_NATS_URL", "nats://127.0.0.1:4222")).maxReconnects(-1).build();
        try (Connection nats = Nats.connect(options)) {
            Worker worker = Worker.builder(nats, setting("THOLE_QUEUE", "default"))
                .namespace(setting("THOLE_NAMESPACE", "default"))
                .stopLimit(Duration.ofSeconds(20))
                .activity("reserve", task -> bytes("goods-" + field(task, "order", 0)))
                .activity("charge", CheckoutWorker::charge)
                .activity("ship", task -> bytes("parcel with " + task.inputText()))
                .activity("release", CheckoutWorker::undo)
                .activity("refund", CheckoutWorker::undo)
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

    static String setting(String name, String fallback) {
        return System.getenv().getOrDefault(name, fallback);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** The number behind "key=" in "order=17;pay_ms=50". */
    private static long field(Task task, String key, long fallback) {
        for (String pair : task.inputText().split(";")) {
            if (pair.startsWith(key + "=")) return Long.parseLong(pair.substring(key.length() + 1));
        }
        return fallback;
    }

    /** A card that takes its time. A real one would send task.key() along, so that it is charged once however often this runs. */
    private static byte[] charge(Task task) throws Exception {
        if (task.tryNumber() <= field(task, "busy", 0)) throw new IOException("the bank does not answer"); // another try
        Thread.sleep(field(task, "pay_ms", 50)); // is interrupted when the task is cancelled
        if (field(task, "declined", 0) != 0) throw ActivityFailure.last("declined", "the card was declined");
        return bytes("charged");
    }

    /** Must do nothing for what was never done. It only says that it was here. */
    private static byte[] undo(Task task) {
        return bytes(task.activity() + " of order " + field(task, "order", 0));
    }
}
