package dev.thole.example;

import dev.thole.client.Client;
import dev.thole.client.Status;
import dev.thole.client.TholeException;
import io.nats.client.Connection;
import io.nats.client.Nats;
import java.nio.charset.StandardCharsets;

/** Starts an instance and waits for it. */
public final class Checkout {
    private Checkout() {}

    public static void main(String[] args) throws Exception {
        try (Connection nats = Nats.connect("nats://127.0.0.1:4222"); Client client = new Client(nats, "default")) {
            try {
                client.start("checkout", new Client.Start("order-1", "{\"amount\":42}".getBytes(StandardCharsets.UTF_8)));
            } catch (TholeException err) {
                if (err.status() != Status.CONFLICT) throw err; // it was started before
            }
            client.signal("order-1", "paid", "yes".getBytes(StandardCharsets.UTF_8));
            Client.Ended ended = client.wait("order-1");
            System.out.println(ended.state() + " " + new String(ended.output(), StandardCharsets.UTF_8) + " " + ended.text());
        }
    }
}
