package dev.thole.client;

/** Statuses that matter to a worker or a client; {@link TholeException#status} may be another one of thole's. */
public final class Status {
    public static final int OK = 0;
    public static final int INVALID = 2;
    public static final int LIMIT = 3;
    public static final int CANCELLED = 6;
    public static final int APP = 7;
    public static final int CONFLICT = 8;
    public static final int UNAVAILABLE = 9;
    public static final int NOT_FOUND = 10;
    public static final int TIMEOUT = 11;
    public static final int DENIED = 13;
    public static final int FENCED = 14;

    /** No gateway has answered. */
    static final int NO_ANSWER = -1;

    private Status() {}
}
