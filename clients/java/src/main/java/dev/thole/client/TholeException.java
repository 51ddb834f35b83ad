package dev.thole.client;

/** The gateway refused, or did not answer in time ({@link Status#UNAVAILABLE}). */
public final class TholeException extends Exception {
    private final int status;

    TholeException(long status, String text) {
        super(text.isEmpty() ? "status " + status : text);
        this.status = (int) status;
    }

    /** A namespace, queue, worker, activity, orchestration, event or query; others do not get into a subject. */
    static String name(String what, String value) throws TholeException {
        if (isName(value)) return value;
        throw new TholeException(Status.INVALID, "\"" + value + "\" is no " + what + ": [A-Za-z0-9_-]{1,64}");
    }

    static boolean isName(String value) {
        return value.matches("[A-Za-z0-9_-]{1,64}");
    }

    /** One of {@link Status}, or another one of thole's. */
    public int status() {
        return status;
    }
}
