/* The tasks that an instance waits for, with facts beside its history: from its rows and the workers. */
#ifndef THOLE_PENDING_H
#define THOLE_PENDING_H
#include "arena.h"
#include "json.h"
#include "roster.h"

enum { PENDING_TEXT_BYTES = 512 };

struct pending_row; /* of worker_queue */
struct pending {
    struct arena arena;
    struct pending_row *rows, **last;
    bool rows_read;
    struct roster roster;
    bool past; /* of a point in the history: what is known of rows and workers is of now */
};
/* Said when a part is not known. */
typedef void pending_note_fn(void *arg, const char *text);

void pending_init(struct pending *pending, bool past);
/* Only asks when there is an activity. On a failure the rows' or the workers' part is left out. */
void pending_read(struct pending *pending, thole_client *client, thole_slice instance,
                  const thole_inspection *inspection, pending_note_fn *note, void *arg);
void pending_release(struct pending *pending);

struct pending_said { /* of an activity */
    const char *state;
    char text[PENDING_TEXT_BYTES];
    thole_slice worker; /* empty: none */
    uint64_t silent_ms;
    bool stands; /* does not run until a user acts */
};
void pending_say(const struct pending *pending, uint64_t execution, const thole_pending *p,
                 struct pending_said *ret);
/* Only of those that have ended are there an output and an error type. */
bool inspection_has_ended(const thole_inspection *inspection);
/* The state of an instance by its history: "input" and "output" with their lengths, and whether they are
 * redacted, "error_type", "pending" and "events_kept". Data is cut as by form_data(). True: an activity does
 * not run until a user acts. */
bool form_inspection(struct json *json, const struct pending *pending, const thole_inspection *inspection,
                     size_t data_max);
#endif
