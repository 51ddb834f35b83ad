/* Inside streams/: the required configuration of a stream; creating it; comparing it field by field. */
#ifndef THOLE_TOPOLOGY_SPEC_H
#define THOLE_TOPOLOGY_SPEC_H
#include "connection.h"
#include "subject.h"

enum { SPEC_SUBJECTS_MAX = 2, SPEC_SUBJECT_BYTES = 160 };

struct stream_spec {
    char name[STREAM_NAME_BYTES_MAX];
    char subjects[SPEC_SUBJECTS_MAX][SPEC_SUBJECT_BYTES];
    size_t subjects_len;
    const char *purpose;       /* why a wrong field matters: ends the refusal */
    const char *retention;     /* "limits", "workqueue" */
    uint32_t replicas;         /* 0: as existing, else 1; ensure and verify set it to the actual number */
    uint64_t max_age_ms;       /* 0: for ever */
    bool keep_max_age;         /* any existing value is accepted; max_age_ms is set to it */
    bool any_max_age;          /* any existing value is accepted, and none at all */
    uint64_t dedupe_ms;        /* for making it; 0: the server's default */
    int64_t max_per_subject;   /* 0: unlimited */
    bool lift_max_per_subject; /* from a stream that an earlier version has made with such a limit */
    bool add_subjects;         /* to a stream that an earlier version has made with the first one alone */
    bool deny_purge, deny_delete, allow_rollup;
    bool discard_old;            /* else messages above the limits are refused */
    bool any_discard;            /* for making it; either is accepted */
    int64_t max_msgs, max_bytes; /* for making it; 0: unlimited */
    bool no_limits; /* on bytes and messages; where discard is "new" they are otherwise the operator's choice
                     */
};

/* Makes the stream unless it is there, then verifies. */
THOLE_NODISCARD thole_status spec_ensure(struct connection *connection, struct stream_spec *spec,
                                         thole_error *reterr);
/* NOT_FOUND; INVALID with one sentence for the first field that does not fit. */
THOLE_NODISCARD thole_status spec_verify(struct connection *connection, struct stream_spec *spec,
                                         thole_error *reterr);

/* Nanoseconds for people: "30s", "1500ms", "7ns". Borrowed from @p text. */
enum { DURATION_BYTES = 32 };
thole_slice duration_text(char text[DURATION_BYTES], uint64_t ns);
#endif
