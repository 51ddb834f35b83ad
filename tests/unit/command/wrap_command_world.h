/* The client and the system that the command is given, played. */
#ifndef THOLE_WRAP_COMMAND_WORLD_H
#define THOLE_WRAP_COMMAND_WORLD_H
#include "thole/types.h"
#include <stdbool.h>
#include <stdint.h>

struct played_command {
    char ns[64];
    int owned;         /* opened, or given to the command, and not released */
    unsigned refusals; /* of thole_client_open(), before it answers */
    uint64_t waited_ms;
    bool tty;
};
extern struct played_command play;
/* The result of a call: the status that the namespace's name is, else THOLE_OK. */
thole_status command_world_ends(thole_error *reterr);
#endif
