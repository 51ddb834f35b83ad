package dev.thole.client;

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
}
