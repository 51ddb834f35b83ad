package dev.thole.client;

import java.time.Duration;

/**
 * Why a task is to end.
 *
 * @param kind requested, select_loser, explicit, ended, timeout, terminated, cancelled, shutdown; lease_lost: another worker
 *     may run it now, and what this one returns is dropped.
 * @param grace time that the activity had to end when it was told.
 */
public record Cancellation(String kind, String reason, Duration grace) {}
