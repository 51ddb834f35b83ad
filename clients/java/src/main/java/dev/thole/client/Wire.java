package dev.thole.client;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.TypeAdapter;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.math.BigInteger;
import java.util.Base64;
import java.util.List;

/** The messages of proto/gateway.proto in the JSON mapping, as far as a worker and a client read and write them. */
final class Wire {
    static final Gson GSON = new GsonBuilder().disableHtmlEscaping().registerTypeAdapter(byte[].class, new Bytes().nullSafe())
        .registerTypeAdapter(int.class, new Unsigned32().nullSafe()).registerTypeAdapter(Integer.class, new Unsigned32().nullSafe())
        .registerTypeAdapter(long.class, new Unsigned64().nullSafe()).registerTypeAdapter(Long.class, new Unsigned64().nullSafe()).create();

    private Wire() {}

    record OpenSession(String worker, int slots, List<String> activities, String inbox) {}

    record NextTasks(int max, long waitMs) {}

    record RunningTask(String claim, byte[] details, Boolean heartbeat) {}

    record RenewTasks(List<RunningTask> running) {}

    record Failure(String text, String type, @com.google.gson.annotations.SerializedName("final") boolean last) {}

    record Outcome(String claim, byte[] output, Failure failure, Boolean cancelled) {}

    record CompleteTasks(List<Outcome> outcomes) {}

    record CloseSession(long limitMs) {}

    /** A client's request, whatever it is: null is left out. */
    record Ask(String instance, byte[] input, byte[] data, String reason, String requestId, Integer version, Long waitMs) {}

    /** Any answer: what it does not have is empty. */
    static final class Answer {
        int status;
        String text = "";
        String subject = ""; // SessionOpened
        long leaseMs;
        long renewMs;
        long graceMs;
        long payloadMax;
        List<Task> tasks = List.of(); // Tasks
        List<Notice> cancelled = List.of(); // TasksRenewed
        List<String> gone = List.of();
        List<Result> results = List.of(); // TasksCompleted
        String instance = ""; // of a client's
        String state = "";
        byte[] output = {};
        String errorType = "";

        static Answer none(int status, String text) {
            Answer answer = new Answer();
            answer.status = status;
            answer.text = text;
            return answer;
        }
    }

    static final class Notice {
        String claim = "";
        String kind = "";
        String reason = "";
        long graceMs;
    }

    static final class Result {
        int status;
        String text = "";
    }

    /** All numbers are unsigned: an int or a long above half of its range is negative here. */
    private static final class Unsigned32 extends TypeAdapter<Integer> {
        @Override
        public void write(JsonWriter out, Integer number) throws IOException {
            out.value(Integer.toUnsignedLong(number));
        }

        @Override
        public Integer read(JsonReader in) throws IOException {
            return Integer.parseUnsignedInt(in.nextString());
        }
    }

    private static final class Unsigned64 extends TypeAdapter<Long> {
        @Override
        public void write(JsonWriter out, Long number) throws IOException {
            out.value(new BigInteger(Long.toUnsignedString(number)));
        }

        @Override
        public Long read(JsonReader in) throws IOException {
            return Long.parseUnsignedLong(in.nextString());
        }
    }

    private static final class Bytes extends TypeAdapter<byte[]> {
        @Override
        public void write(JsonWriter out, byte[] bytes) throws IOException {
            out.value(Base64.getEncoder().encodeToString(bytes));
        }

        @Override
        public byte[] read(JsonReader in) throws IOException {
            return Base64.getDecoder().decode(in.nextString());
        }
    }
}
