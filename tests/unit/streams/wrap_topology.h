/* JetStream is played for the topology: it keeps what it is given. */
#ifndef THOLE_WRAP_TOPOLOGY_H
#define THOLE_WRAP_TOPOLOGY_H
#include "thole_cunit.h"
#include "topology.h"

enum { THINGS_MAX = 40, CONFIG_BYTES = 2048, NEVER = 1000 };

struct thing { /* a stream's or consumer's configuration, a key's value */
    char name[160], text[CONFIG_BYTES];
};

struct topology_play {
    struct thing things[THINGS_MAX];
    size_t things_len;
    char log[32 * 1024];   /* of what was made */
    size_t asked, fail_at; /* the number of the request that fails */
    thole_status status;   /* with which */
    const char *answer;    /* or is answered so */
    const char *version;
    bool no_jetstream, forgets; /* forgets: what is made is not there */
    uint64_t delivered, last;
    const char *rival; /* value that another process writes before each of ours */
};
extern struct topology_play play;
extern thole_error play_err;

void play_begin(void);
struct thing *play_find(const char *name);
void play_keep_text(const char *name, const char *text);
void play_forget(const char *name);
thole_status play_ensure_with(struct topology_options options, struct topology *ret);
thole_status play_ensure(void);
void play_change(const char *name, const char *from, const char *to);
void play_check_done(thole_status status);
extern const char rivals_key[];

/* One field differs: whose, and what is needed. Empty: it may. */
struct topology_field {
    const char *name, *from, *to, *text;
};
extern const struct topology_field topology_fields[];
extern const size_t topology_fields_len;
#endif
