/* HIST and IN streams as JetStream keeps them. HIST survives everything here; IN may lose what the history
 * has incorporated, and give the same sequences to other messages. */
#ifndef THOLE_LOG_FAKE_H
#define THOLE_LOG_FAKE_H
#include "partition.h"
#include "world.h"

struct log_entry {
    uint64_t sequence;
    enum record_kind kind; /* by subject */
    size_t instance;       /* of a turn's subject; SIZE_MAX otherwise */
    uint64_t execution;
    thole_slice bytes;
    bool deleted;
    bool counts, part_dropped; /* verdict of the independent reader when it was stored: model.c */
    bool whole;                /* a turn in one record */
    uint64_t epoch, n, committed;
};
struct log_stream {
    uint32_t partition;
    struct log_entry *entries; /* entry i has sequence i + 1: deletes leave gaps, numbers never come back */
    size_t len, cap;
};
struct log_stream *log_stream_create(struct world *w, uint32_t partition);

struct log_append {
    enum record_kind kind;
    size_t instance;
    uint64_t execution, expected_last;
    thole_slice bytes;
};
/* 0: refused. */
uint64_t log_append(struct world *w, struct log_stream *log, const struct log_append *append);
void log_delete(struct world *w, struct log_stream *log, uint64_t sequence);
/* Of an instance that was deleted by the record at @p by. */
void log_remove(struct world *w, struct log_stream *log, uint64_t sequence, uint64_t by);

/* Records that are there; instance SIZE_MAX = all. In memory of the world. */
struct log_records {
    struct log_record *items;
    size_t len;
};
struct log_records log_read(struct world *w, const struct log_stream *log, uint64_t from, uint64_t to,
                            size_t instance);
uint64_t log_last_epoch_opened(const struct log_stream *log); /* sequence; 0 = none */
/* A record is damaged, of those that are known to count. False: there is none whose instance may suffer it.
 */
bool log_damage(struct world *w, struct log_stream *log);

struct inbox_entry {
    uint64_t sequence, stored_ns; /* no two have the same stored_ns; it grows */
    size_t instance;              /* of the subject */
    thole_slice route;            /* likewise */
    thole_slice bytes;
    bool purged;
    enum reject_code refused; /* the subject is none of this inbox's */
    enum reject_code why;     /* why it cannot be taken, by its contents alone */
    bool valid;               /* can be taken, by its contents alone */
    bool rejected;            /* kept where people look */
    struct message message;
    uint32_t part, parts;     /* of several results in one message; 0, 0: it is one */
    struct inbox_entry *more; /* the next part: with the same sequence and stored_ns; NULL: none */
};
struct inbox_stream {
    uint32_t partition;
    struct inbox_entry *entries; /* entry i has sequence i + 1 */
    size_t len, cap;
    uint64_t first; /* smallest existing sequence, or len + 1 */
    uint64_t life;  /* grows whenever it goes back: readers of before read nothing more */
    uint64_t stored_ns;
    struct inbox_entry *lost; /* all that it ever lost */
    size_t lost_len, lost_cap;
};
struct inbox_stream *inbox_stream_create(struct world *w, uint32_t partition);
/* Under the subject that the message has from that sender. */
uint64_t inbox_publish(struct world *w, size_t instance, thole_slice bytes, enum message_sender sender);
/* Under a subject of the route; @p refused: it names no instance of that inbox, @p instance says which
 * inbox. */
uint64_t inbox_publish_as(struct world *w, size_t instance, thole_slice bytes, thole_slice route,
                          enum reject_code refused);
/* Several results, as result_list.h writes them, under the subject of such a list. */
uint64_t inbox_publish_list(struct world *w, uint32_t partition, thole_slice bytes);
/* The message, or the part, is kept as rejected: it must be one that was stored, with that reason to be
 * rejected. */
void inbox_reject(struct world *w, struct inbox_stream *inbox, const struct out_reject *out);
void inbox_purge(struct world *w, struct inbox_stream *inbox, uint64_t below);
/* The first message at or above @p from; NULL when there is none yet. */
const struct inbox_entry *inbox_next(const struct inbox_stream *inbox, uint64_t from);
/* The result of that try of an activity in a message: one of its parts, which is valid. NULL: none. */
const struct inbox_entry *inbox_result(const struct inbox_entry *entry, size_t instance, uint64_t execution,
                                       uint64_t id, uint32_t try_number);
/* Whether message @p sequence (0: none) is the one that was stored at @p stored_ns, or has been purged. */
bool inbox_holds(const struct inbox_stream *inbox, uint64_t sequence, uint64_t stored_ns);
/* The inbox loses its tail, or all: nothing that others rely on, by the history. False: no such loss is
 * possible. */
bool inbox_loses(struct world *w, struct inbox_stream *inbox);
#endif
