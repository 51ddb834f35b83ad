/*
 * The floor: the steps of I/O that the guarantees of one workflow need, made by one process that does nothing
 * else. It stands in for client, engine and worker, and waits for each step before the next, as durability
 * demands:
 *
 *   1. publish the start to the inbox stream; it is delivered to a consumer
 *   2. append the turn to the history stream, with the expected last sequence; acknowledged
 *   for each activity:
 *   3. Postgres, one transaction: the activity's row (of the first one also the instance's)
 *   4. publish the work message; it is delivered to a pull consumer
 *   5. Postgres: claim the row
 *   6. Postgres: delete the row
 *   7. publish the result to the inbox stream, delivered; acknowledge the work message
 *   8. append the turn to the history stream; acknowledged
 *   9. publish the end (core NATS); it is delivered
 *
 * Streams are files, Postgres commits as thole's own sessions do (synchronous_commit off: rows can be made
 * again from the streams). One workflow at a time gives the floor of the latency; many at a time, each step
 * for all of them at once (pipelined publishes, one statement), the floor of CPU time and messages.
 *
 * It is a kind of load (load.h): "floor-N", a workflow with N activities.
 */
#ifndef THOLE_BENCH_FLOOR_H
#define THOLE_BENCH_FLOOR_H
#include "bench.h"

/* The client process for a kind "floor-N". */
bool floor_is(int argc, char **argv);
int floor_main(int argc, char **argv);
#endif
