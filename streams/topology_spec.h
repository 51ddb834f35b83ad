/* Inside streams/: the required configuration of a stream; creating it; comparing it field by field. */
#ifndef THOLE_TOPOLOGY_SPEC_H
#define THOLE_TOPOLOGY_SPEC_H
#include "connection.h"
#include "defect.h"
#include "message.h"
#include "namespace_verdict.h"
#include "subject.h"

enum { SPEC_SUBJECTS_MAX = 2, SPEC_SUBJECT_BYTES = 160 };

struct stream_spec {
    enum defect_object object;
    uint32_t p; /* IN, HIST */
    char ns[THOLE_NAME_BYTES_MAX + 1];
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
    bool write_once;  /* the first message of a subject stays, and others are refused; an earlier version has
                         made the bucket otherwise, which works, too */
    bool discard_old; /* else messages above the limits are refused */
    bool any_discard; /* for making it; either is accepted */
    int64_t max_msgs, max_bytes; /* for making it; 0: unlimited */
    bool no_limits; /* on bytes and messages; where discard is "new" they are otherwise the operator's choice
                     */
};

/* Makes the stream unless it exists, then verifies it. THOLE_CONFLICT: it does not exist, and since the
 * namespace is @p made it is lost: part_judge(). */
THOLE_NODISCARD thole_status spec_ensure_part(struct connection *connection, enum namespace_part part,
                                              bool made, struct stream_spec *spec, thole_error *reterr);
/* Like spec_ensure_part(), for a stream of which nothing is known. */
THOLE_NODISCARD thole_status spec_ensure(struct connection *connection, struct stream_spec *spec,
                                         thole_error *reterr);
/* NOT_FOUND; INVALID with one sentence for the first field that does not fit. */
THOLE_NODISCARD thole_status spec_verify(struct connection *connection, struct stream_spec *spec,
                                         thole_error *reterr);

/*
 * Compares a configuration, as the server answers it, with the spec: one call of @p each for each difference.
 * Pure. All of it is one table: who starts refuses the first difference of weight DEFECT_REFUSED, who runs
 * and thole doctor say all of them.
 */
void spec_compare(const struct stream_spec *spec, thole_slice config, defect_fn *each, void *arg);
/* A server may have been removed from those that keep the stream, and no other have come: @p info is what the
 * server answers of the whole stream. Pure. */
void spec_compare_peers(const struct stream_spec *spec, thole_slice info, defect_fn *each, void *arg);
/* The defect of a stream that is not there. */
void spec_missing(const struct stream_spec *spec, struct defect *ret);
/* Puts those differences right that the server lets change in a stream; the others stay. */
THOLE_NODISCARD thole_status spec_mend(struct connection *connection, const struct stream_spec *spec,
                                       thole_error *reterr);

/* Nanoseconds for people: "30s", "1500ms", "7ns". Borrowed from @p text. */
enum { DURATION_BYTES = 32 };
thole_slice duration_text(char text[DURATION_BYTES], uint64_t ns);
#endif
