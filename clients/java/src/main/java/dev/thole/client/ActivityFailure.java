package dev.thole.client;

/** Thrown by an activity: the try has failed. Any other exception is a failure of the type of its class. */
public final class ActivityFailure extends Exception {
    private final String type;
    private final boolean last;

    /** @param type {@code [A-Za-z0-9_.-]{0,64}}: orchestrations decide by it. */
    public ActivityFailure(String type, String text) {
        this(type, text, false);
    }

    private ActivityFailure(String type, String text, boolean last) {
        super(text);
        this.type = type;
        this.last = last;
    }

    /** A failure after which there is no other try. */
    public static ActivityFailure last(String type, String text) {
        return new ActivityFailure(type, text, true);
    }

    public String type() {
        return type;
    }

    public boolean isLast() {
        return last;
    }
}
