/*
 * Which records of a log are dispensable (docs/architecture.md, "What goes after its time"): a later record
 * says what they say, or no repetition can ask for them any more.
 *
 *   a position          when a later record has one: that is the record that lists it
 *   a list (Folded)     when it is older than deletions are kept, and not the newest: auditors read it
 *   an EpochOpened      when its epoch has no other record, and the next one says how many records counted
 *                       before it; the log's first one stays, as its beginning
 *   a deletion          when it is older than deletions are kept, and the last record of its instance
 *
 * The host reads records and asks here. The machine (folding.c) lists them in a record, and removes them when
 * that record is committed. Pure.
 *
 *   dispensable_control()     for each list in order, while it returns true: one that is young ends it, as
 *                             there may be thousands; so for positions, then for openings
 *   dispensable_next_epoch()  while it gives an epoch; dispensable_epoch() when that epoch has no record of
 *                             an instance, and no list
 *   dispensable_deletion()    for each deletion, in order, while the answer is neither YOUNG nor FULL
 *   dispensable_list()        the result
 */
#ifndef THOLE_DISPENSABLE_H
#define THOLE_DISPENSABLE_H
#include "partition_io.h"
#include "record_hash.h"

enum {
    DISPENSABLE_CONTROLS_MAX = FOLDED_MAX / 2,
    DISPENSABLE_DELETIONS_MAX = FOLDED_MAX / 2,
    DISPENSABLE_LOOKS_MAX = 4 * DISPENSABLE_DELETIONS_MAX, /* deletions that are looked at at a time */
};

struct dispensable;
/* The memory that @p asked points to is not kept; @p ns is borrowed. */
struct dispensable *dispensable_create(const struct out_find_dispensable *asked, thole_slice ns,
                                       uint32_t partition);
void dispensable_destroy(struct dispensable *d); /* NULL-safe */

/* False: enough. */
bool dispensable_control(struct dispensable *d, uint64_t sequence, thole_slice bytes);

/* The next epoch that may go, unless a record of an instance or a list stands after @p ret_from and before
 * @p ret_until. False: no such epoch is left. */
bool dispensable_next_epoch(struct dispensable *d, uint64_t *ret_from, uint64_t *ret_until);
void dispensable_epoch(struct dispensable *d); /* the one that was just returned: there is no such record */

enum dispensable_verdict {
    DISPENSABLE_YOUNG,  /* so are those after it */
    DISPENSABLE_FULL,   /* will be looked at next time */
    DISPENSABLE_PASSED, /* stays: cannot be read, or its instance lives again */
    DISPENSABLE_LISTED,
};
/* @p last: it is the last record of its instance. */
enum dispensable_verdict dispensable_deletion(struct dispensable *d, uint64_t sequence, thole_slice bytes,
                                              bool last);
/* The age of a record. OLD: it is worth asking for the records after it. */
enum dispensable_age { DISPENSABLE_AGE_UNREADABLE, DISPENSABLE_AGE_YOUNG, DISPENSABLE_AGE_OLD };
enum dispensable_age dispensable_age(const struct dispensable *d, thole_slice bytes);

/* Borrowed from @p d. */
struct in_dispensable dispensable_list(struct dispensable *d);
#endif
