package dev.thole.example;

import dev.thole.client.Client;
import dev.thole.client.Status;
import dev.thole.client.TholeException;
import io.nats.client.Connection;
import io.nats.client.Nats;
import java.nio.charset.StandardCharsets;

/** Starts a checkout and waits for it: [ORDER], with THOLE_NATS_URL, THOLE_NAMESPACE. */
public final class Checkout {
    private Checkout() {}

    public static void main(String[] args) throws Exception {
        String order = args.length > 0 ? args[0] : "17";
        String instance = "order-" + order;
        try (Connection nats = Nats.connect(CheckoutWorker.setting("THOLE_NATS_URL", "nats://127.0.0.1:4222"))) {
            Client client = new Client(nats, CheckoutWorker.setting("THOLE_NAMESPACE", "default"));
            try {
                client.start("checkout", new Client.Start(instance, CheckoutWorker.bytes("order=" + order + ";pay_ms=50")));
            } catch (TholeException err) {
                if (err.status() != Status.CONFLICT) throw err;
                System.out.println("it was started before");
            }
            Client.Ended ended = client.wait(instance);
            System.out.println(ended.state() + " " + new String(ended.output(), StandardCharsets.UTF_8) + " " + ended.text());
        }
    }
}
