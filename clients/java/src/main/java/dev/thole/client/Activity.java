package dev.thole.client;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;

/** What to do for the tasks of one name. */
@FunctionalInterface
public interface Activity {
    /**
     * Runs on a thread of the worker, which is interrupted when the task is cancelled.
     *
     * @return the output; null is an empty one.
     * @throws Exception the try has failed, see {@link ActivityFailure}; or, when the task was cancelled, it has ended because of that.
     */
    byte[] run(Task task) throws Exception;

    /** One of values, as Jackson reads and writes them. */
    @FunctionalInterface
    interface OfValues<I, O> {
        O run(I value, Task task) throws Exception;
    }

    /** An activity of values in JSON. An input that cannot be read as one is a final failure of type bad_input. */
    static <I, O> Activity json(Class<I> type, OfValues<I, O> activity) {
        ObjectMapper json = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
        return task -> {
            I value;
            try {
                value = json.readValue(task.input(), type);
            } catch (IOException err) {
                throw ActivityFailure.last("bad_input", "the input cannot be read: " + err.getMessage());
            }
            return json.writeValueAsBytes(activity.run(value, task));
        };
    }
}
