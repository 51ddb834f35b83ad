/*
 * A rule of `thole bind`: which messages of a stream start or signal which instances. Stored as JSON in the
 * bucket THOLE_<ns>_BINDINGS, one key for each rule; its revision is that of the key. Pure.
 */
#ifndef THOLE_BIND_RULE_H
#define THOLE_BIND_RULE_H
#include "arena.h"
#include "json.h"

enum {
    BIND_RULE_FORMAT = 1,
    BIND_RULE_JSON_MAX = 8192,
    BIND_SUBJECT_MAX = 256,
    BIND_STREAM_MAX = 100,
    BIND_IN_FLIGHT_DEFAULT = 256,
    BIND_IN_FLIGHT_MAX = 10000,
};
enum bind_action { BIND_START, BIND_SIGNAL, BIND_SIGNAL_WITH_START, BIND_ACTIONS };
/* Which part of a message becomes the input or the event's data. */
enum bind_data { BIND_DATA, BIND_EVENT, BIND_DATAS };
/* Where a rule's consumer begins when it is made. */
enum bind_from { BIND_ALL, BIND_NEW, BIND_FROMS };
extern const char *const bind_action_names[BIND_ACTIONS + 1]; /* ends with NULL, as do the next two */
extern const char *const bind_data_names[BIND_DATAS + 1];
extern const char *const bind_from_names[BIND_FROMS + 1];

struct bind_rule {
    thole_slice subject; /* filter; may have wildcards */
    thole_slice stream;
    enum bind_action action;
    thole_slice orchestration; /* not of a signal */
    thole_slice instance;      /* template */
    thole_slice event;         /* template; not of a start */
    enum bind_data data;
    enum bind_from from;
    uint64_t in_flight; /* messages that are delivered and not acknowledged, over all binders */
};
/* THOLE_INVALID: the text says what is wrong and what to write instead. */
THOLE_NODISCARD thole_status bind_rule_check(const struct bind_rule *rule, thole_error *reterr);
/* Whether there can be a message that it takes and has an instance for: what is not asked of a rule that is
 * stored already. THOLE_INVALID. */
THOLE_NODISCARD thole_status bind_rule_check_places(const struct bind_rule *rule, thole_error *reterr);
/* Whether the subject of a message is one that the rule's filter matches. */
bool bind_rule_matches(const struct bind_rule *rule, thole_slice subject);
/* As JSON, with `format`. */
void bind_rule_write(const struct bind_rule *rule, struct json *json);
/* Into @p arena, checked. THOLE_UNSUPPORTED: of a newer thole. THOLE_CORRUPT; THOLE_INVALID. */
THOLE_NODISCARD thole_status bind_rule_read(thole_slice text, struct arena *arena, struct bind_rule *ret,
                                            thole_error *reterr);
#endif
