/* A connection to NATS that is up or down, as the test says; takes and returns of its link are counted. */
#ifndef THOLE_WRAP_LINK_H
#define THOLE_WRAP_LINK_H
#include "link.h"

struct played_nats {
    struct link link;
    uint64_t now_ms;
    bool down;
    unsigned acquired, broken; /* acquired: and not released */
};
extern struct played_nats nats;

void played_nats_begin(void); /* connected */
#endif
