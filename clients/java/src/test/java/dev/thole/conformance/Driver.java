package dev.thole.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.thole.client.Activity;
import dev.thole.client.ActivityFailure;
import dev.thole.client.Client;
import dev.thole.client.Instance;
import dev.thole.client.Status;
import dev.thole.client.Task;
import dev.thole.client.TholeException;
import dev.thole.client.Worker;
import io.nats.client.Connection;
import io.nats.client.Nats;
import io.nats.client.Options;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicInteger;
import sun.misc.Signal;

/** The driver of the conformance kit (../conformance/README.md) for this library. */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Driver() {}

    public static void main(String[] args) throws Exception {
        Options options = Options.builder().server(System.getenv("NATS_URL")).maxReconnects(-1)
            .reconnectWait(Duration.ofMillis(100)).reconnectJitter(Duration.ofMillis(10)).build();
        Connection nats = Nats.connectReconnectOnConnect(options);
        try {
            Client client = new Client(nats, System.getenv("THOLE_NAMESPACE"));
            String actor = System.getenv("CONF_ACTOR"), name = System.getenv("CONF_CLIENT");
            if (actor != null && !actor.isEmpty()) client = client.withActor(actor);
            String vouched = System.getenv("CONF_VOUCHED");
            if (vouched != null) client = client.withVouchedActor(vouched);
            if (name != null && !name.isEmpty()) client = client.withName(name);
            String waitMs = System.getenv("CONF_WAIT_MS");
            if (waitMs != null && !waitMs.isEmpty()) client = client.withWaitLimit(Duration.ofMillis(Long.parseLong(waitMs)));
            if ("client".equals(System.getenv("CONF_MODE"))) commands(client);
            else work(nats);
        } catch (TholeException err) {
            System.err.println(err.status() + ": " + err.getMessage());
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0); // handlers that were given up may still run
    }

    private static void work(Connection nats) throws Exception {
        Worker worker = Worker.builder(nats, System.getenv("THOLE_QUEUE")).namespace(System.getenv("THOLE_NAMESPACE"))
            .name("conf-worker").slots(4).stopLimit(Duration.ofSeconds(3))
            .activity("echo", Task::input)
            .activity("bytes", Driver::reversed)
            .activity("big", Driver::big)
            .activity("fail", Driver::fails)
            .activity("panic", task -> {
                throw new StackOverflowError("the driver panics");
            })
            .activity("throw", task -> {
                throw new IllegalStateException(task.inputText());
            })
            .activity("notify", task -> {
                task.heartbeat(task.input());
                throw new ActivityFailure("declined", "no");
            })
            .activity("hangup", task -> {
                nats.close();
                return task.input();
            })
            .activity("key", task -> bytes(task.key()))
            .activity("resume", Task::details)
            .activity("trace", task -> bytes(task.traceparent() + " " + task.tracestate()))
            .activity("json", Activity.json(Value.class, (value, task) -> new Value(value.n() + 1, value.text() + "!")))
            .activity("later", task -> {
                print(Map.of("event", "later", "instance", task.instance(), "token", task.token()));
                return Task.LATER;
            })
            .activity("deadline", task -> bytes(task.timeout().map(left -> String.valueOf(left.toMillis())).orElse("none")))
            .activity("sleep", task -> {
                pause(task, number(task));
                return task.input();
            })
            .activity("stubborn", Driver::stubborn)
            .activity("beat", Driver::beat)
            .build();
        AtomicInteger stops = new AtomicInteger();
        Signal.handle(new Signal("TERM"), signal -> {
            if (stops.incrementAndGet() > 1) Runtime.getRuntime().halt(1);
            worker.stop();
        });
        worker.run();
    }

    private record Value(long n, String text) {}

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static int number(Task task) {
        return Integer.parseInt(task.inputText());
    }

    private static byte[] reversed(Task task) {
        byte[] in = task.input();
        byte[] out = new byte[in.length];
        for (int i = 0; i < in.length; i++) out[i] = in[in.length - 1 - i];
        return out;
    }

    private static byte[] big(Task task) {
        byte[] out = new byte[number(task)];
        Arrays.fill(out, (byte) 'x');
        return out;
    }

    private static byte[] fails(Task task) throws ActivityFailure {
        throw task.inputText().equals("final") ? ActivityFailure.last("declined", "no") : new ActivityFailure("declined", "no");
    }

    private static byte[] beat(Task task) {
        int n = number(task);
        for (int i = 1; i <= n; i++) {
            task.heartbeat(String.valueOf(i));
            pause(task, 50);
        }
        return bytes(String.valueOf(n));
    }

    private static void print(Map<String, Object> line) {
        try {
            OUT.println(JSON.writeValueAsString(line));
        } catch (IOException err) {
            throw new UncheckedIOException(err);
        }
    }

    /** Sleeps, or ends as cancelled. */
    private static void pause(Task task, long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException err) {
            task.cancellation().ifPresent(why -> {
                Map<String, Object> line = new LinkedHashMap<>();
                line.put("event", "cancelled");
                line.put("instance", task.instance());
                line.put("kind", why.kind());
                line.put("reason", why.reason());
                line.put("grace_ms", why.grace().toMillis());
                print(line);
            });
            throw new CancellationException();
        }
    }

    private static byte[] stubborn(Task task) {
        long end = System.nanoTime() + number(task) * 1_000_000L;
        for (long left = number(task); left > 0; left = (end - System.nanoTime()) / 1_000_000) {
            try {
                Thread.sleep(left);
            } catch (InterruptedException ignored) {
                // it is stubborn
            }
        }
        return bytes("done");
    }

    private static void commands(Client client) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            Map<String, Object> result = new LinkedHashMap<>(Map.of("status", 0, "text", "", "instance", text(asked, "instance"),
                "output", "", "state", "", "error_type", ""));
            result.put("id", asked.get("id"));
            long timeoutMs = asked.path("timeout_ms").asLong(10_000);
            try {
                Client limited = timeoutMs == 0 ? client : client.withTimeout(Duration.ofMillis(timeoutMs));
                command(limited.withTrace(carrier -> trace(asked, carrier)), asked, result);
            } catch (TholeException err) {
                result.put("status", err.status());
                result.put("text", err.getMessage());
                result.putAll(Map.of("state", err.state(), "reason", err.reason(), "next_step", err.nextStep()));
            }
            print(result);
        }
    }

    private static void trace(JsonNode asked, Map<String, String> carrier) {
        for (String name : new String[] {"traceparent", "tracestate"}) if (asked.has(name)) carrier.put(name, text(asked, name));
    }

    private static String text(JsonNode asked, String name) {
        return asked.path(name).asText();
    }

    private static void command(Client client, JsonNode asked, Map<String, Object> result) throws TholeException, InterruptedException {
        String instance = text(asked, "instance");
        byte[] input = Base64.getDecoder().decode(text(asked, "input"));
        switch (text(asked, "op")) {
            case "start" -> {
                int version = asked.path("version").asInt();
                Client.Start start = new Client.Start(instance, input, version, "");
                if (asked.path("require_known").asBoolean()) start = start.onlyKnown();
                if (asked.has("event")) start = start.withEvent(text(asked, "event"), Base64.getDecoder().decode(text(asked, "event_data")));
                result.put("instance", client.start(text(asked, "orchestration"), start));
            }
            case "signal" -> result.put("note", client.signal(instance, text(asked, "event"), input));
            case "cancel" -> result.put("note", client.cancel(instance, text(asked, "reason")));
            case "terminate" -> client.terminate(instance, text(asked, "reason"));
            case "query" -> result.put("output", Base64.getEncoder().encodeToString(client.query(instance, text(asked, "query"), input)));
            case "wait" -> {
                Client.Ended ended = client.wait(instance);
                result.putAll(Map.of("status", ended.status(), "text", ended.text(), "state", ended.state(), "error_type", ended.errorType(),
                    "output", Base64.getEncoder().encodeToString(ended.output())));
            }
            case "describe" -> {
                Instance found = client.describe(instance);
                String nextStep = found.hindrances().isEmpty() ? "" : found.hindrances().get(0).nextStep();
                result.putAll(Map.of("state", found.state(), "reason", found.reason(), "next_step", nextStep));
            }
            case "list" -> {
                List<String> states = new ArrayList<>();
                asked.path("states").forEach(state -> states.add(state.asText()));
                Instance.Filter filter = new Instance.Filter(states, text(asked, "orchestration"), text(asked, "id_prefix"), text(asked, "parent"), "", 0,
                    0, asked.path("limit").asInt(), text(asked, "behind_instance"), asked.path("behind_created_ms").asLong());
                result.put("instances", client.list(filter).stream().map(Instance::instance).toList());
            }
            case "complete" -> client.completeActivity(text(asked, "token"), Base64.getDecoder().decode(text(asked, "output")));
            case "fail" -> client.failActivity(text(asked, "token"), new ActivityFailure(text(asked, "error_type"), text(asked, "text")));
            default -> result.put("status", Status.INVALID);
        }
    }
}
