/*
 * A load: a client process that keeps so many workflows in flight (closed loop), or starts so many each
 * second whether or not the earlier ones have ended (open loop). Each result is compared with what the
 * workflow must give; one that differs, or does not come, fails the load.
 *
 * Latency: closed loop, from the call until the result; open loop, from the time at which the call was due,
 * so that calls that wait for a slow answer count too (coordinated omission).
 */
#ifndef THOLE_BENCH_LOAD_H
#define THOLE_BENCH_LOAD_H
#include "stand.h"
#include <stdio.h>

struct load {
    const char *kind; /* an orchestration of program.c */
    const char
        *prefix; /* of the instances' ids, which continue with 'w' or 'm' and a number; NULL: a new one */
    unsigned in_flight;    /* open loop: at most */
    unsigned warm_up;      /* workflows before what is measured */
    unsigned count;        /* workflows at most; 0: no limit */
    unsigned milliseconds; /* 0: until count */
    double rate;           /* per second; 0: closed loop */
};

struct load_result {
    uint64_t done, wall_us;
    struct spread us;
};

struct load_client {
    FILE *to, *from;
    char prefix[32];
};

/* Starts the client process; its warm-up begins. */
bool load_start(struct stand *stand, const struct load *load, struct load_client *ret);
/* Until the warm-up is over. */
bool load_ready(struct load_client *client);
/* From "go" to the last answer. */
bool load_run(struct load_client *client, struct load_result *ret);
/* The two halves of load_run(). */
bool load_go(struct load_client *client);
bool load_result(struct load_client *client, struct load_result *ret);
/* Ends the client process. */
void load_stop(struct stand *stand, struct load_client *client);

/* The client process: argv[1] is "client". Its exit code. */
int load_main(int argc, char **argv);
#endif
