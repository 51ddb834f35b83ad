package dev.thole.client;

/** The gateway refused, or did not answer in time ({@link Status#UNAVAILABLE}). */
public final class TholeException extends Exception {
    private final int status;
    private final String state;
    private final String reason;
    private final String nextStep;

    TholeException(long status, String text) {
        this(Wire.Answer.none((int) status, text));
    }

    TholeException(Wire.Answer answer) {
        super((answer.text().isEmpty() ? "status " + answer.status() : answer.text())
            + (answer.nextStep().isEmpty() ? "" : "; try: " + answer.nextStep()));
        status = (int) answer.status();
        state = answer.state();
        reason = answer.reason();
        nextStep = answer.nextStep();
    }

    /** Of the instance that {@link Client#wait} has waited for in vain, as in {@link Instance}; else empty. */
    public String state() {
        return state;
    }

    /** Why it does not go on; empty: it does, or that is not known. */
    public String reason() {
        return reason;
    }

    /** What would let it go on; may be empty. */
    public String nextStep() {
        return nextStep;
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
