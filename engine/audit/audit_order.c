/* The order of the records: which stand in their places, and what is between them. */
#include "audit_state.h"

#define NUMBER(n) ((unsigned long long)(n))

/* ---- records that are not there ---- */

/* A deletion, a pruning, or a list of dispensable records, that counts, accounts for records before it. */
void audit_account_for_holes(struct audit *audit)
{
    audit->summary.removed += audit->hole.count;
    audit->hole = (struct audit_hole){0};
}

static void note_hole(struct audit *audit, uint64_t from, uint64_t count, uint64_t named_by)
{
    if (count == 0)
        return;
    if (audit->hole.count == 0)
        audit->hole = (struct audit_hole){from, 0, named_by};
    audit_sealed_hole(audit, audit->last.index + 1, count);
    audit->hole.count += count;
    audit->hole_at = audit->trouble = named_by;
}

/* ---- records out of place ---- */

static uint64_t opened_by(const struct audit_place *place)
{
    return place->sequence - place->n;
}

/* A writer stores its record n at n sequences after its own opening or not at all. So records that an older
 * writer has stored at the end of the log do not count, but nobody need have forged them. */
void audit_stray(struct audit *audit, enum audit_fault fault, const struct audit_place *place)
{
    if (audit->stray.count++ == 0) {
        audit->stray.fault = fault;
        audit->stray.first = *place;
    }
    audit->stray.forged |=
        place->epoch == 0 || place->epoch >= audit->last.epoch || opened_by(place) >= audit->opened;
    audit->trouble = place->sequence;
}

/* The strays were not void: a later record, stored @p shift sequences after its number, counts. */
static void accuse_strays(struct audit *audit, uint64_t shift)
{
    const struct audit_place *first = &audit->stray.first;
    if (audit->stray.fault == AUDIT_UNREADABLE)
        audit_say(audit, AUDIT_UNREADABLE, first->sequence, NULL, "it is no record");
    else if (shift != audit->opened && shift == opened_by(first) && shift < audit->opened)
        audit_say(audit, AUDIT_MISSING, first->sequence, NULL,
                  "record %llu of epoch %llu stands here: %llu are missing before it", NUMBER(first->n),
                  NUMBER(first->epoch), NUMBER(audit->opened - shift));
    else if (shift != audit->opened && shift == opened_by(first))
        audit_say(audit, AUDIT_ADDED, first->sequence - 1, NULL,
                  "record %llu of epoch %llu stands behind it, %llu too far: it was put in between",
                  NUMBER(first->n), NUMBER(first->epoch), NUMBER(shift - audit->opened));
    else
        audit_say(audit, audit->stray.fault, first->sequence, NULL,
                  "it is record %llu of epoch %llu, which does not belong here", NUMBER(first->n),
                  NUMBER(first->epoch));
    audit->stray = (struct audit_stray){0};
}

void audit_strays_end(struct audit *audit)
{
    struct audit_summary *summary = &audit->summary;
    const struct audit_place *first = &audit->stray.first;
    if (audit->stray.count == 0)
        return;
    if (first->epoch > audit->last.epoch && audit->last.sequence > 0) {
        audit_say(audit, AUDIT_MISSING, 0, NULL,
                  "the opening of epoch %llu, of which record #%llu is, is not there", NUMBER(first->epoch),
                  NUMBER(first->sequence));
    } else if (audit->stray.forged) {
        accuse_strays(audit, audit->opened);
    } else { /* neither this record nor those after it count */
        summary->voids = audit->stray.count + audit->stray.since;
        summary->records -= audit->stray.since;
    }
}

/* ---- where a record belongs ---- */

static void audit_order_take_first(struct audit *audit, const struct audit_scan *scan,
                                   const struct audit_place *place)
{
    bool const begins =
        scan->kind == RECORD_EPOCH_OPENED && scan->previous_epoch == 0 && !record_hash_known(&scan->previous);
    if (!begins)
        audit_say(audit, AUDIT_TRUNCATED, place->sequence, scan,
                  "the log begins with record %llu of epoch %llu: what was before it is not there",
                  NUMBER(scan->n), NUMBER(scan->epoch));
    if (!begins)
        audit->trouble = place->sequence;
    audit->opened = place->sequence - scan->n;
    audit->whole = begins;
}

/* Whether nothing is between it and the last one. */
static bool opens_behind(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place)
{
    const struct audit_place *last = &audit->last;
    uint64_t const epoch = scan->previous_epoch, n = scan->previous_n, strays = audit->stray.count;
    if (strays > 0)
        accuse_strays(audit, audit->opened);
    audit->opened = place->sequence;
    audit->base += (epoch == last->epoch && n > last->n ? n : last->n) + 1;
    if (epoch > last->epoch && scan->counted > last->index) { /* nothing is left of whole epochs */
        audit->base = scan->counted;
        note_hole(audit, last->sequence + 1, scan->counted - last->index - 1, place->sequence);
        return false;
    }
    if (epoch == last->epoch && n == last->n)
        return strays == 0;
    if (epoch == last->epoch && n > last->n)
        note_hole(audit, last->sequence + 1, n - last->n > strays ? n - last->n - strays : 0,
                  place->sequence);
    else if (epoch > last->epoch)
        audit_say(audit, AUDIT_MISSING, last->sequence + 1, NULL,
                  "record #%llu names epoch %llu before it, which is not there", NUMBER(place->sequence),
                  NUMBER(epoch));
    else
        audit_say(audit, AUDIT_ADDED, last->sequence, NULL,
                  "record #%llu says that record %llu of epoch %llu is the last before it",
                  NUMBER(place->sequence), NUMBER(n), NUMBER(epoch));
    audit->trouble = place->sequence;
    return false;
}

static bool audit_order_follows(struct audit *audit, const struct audit_scan *scan,
                                const struct audit_place *place)
{
    uint64_t const between = scan->n - audit->last.n - 1, strays = audit->stray.count;
    if (strays > 0 && scan->committed >= audit->stray.first.sequence - audit->opened) {
        note_hole(audit, audit->last.sequence + 1, between > strays ? between - strays : 0, place->sequence);
        accuse_strays(audit, audit->opened);
    } else if (strays > 0) {
        audit->stray.since++;
    } else {
        note_hole(audit, audit->last.sequence + 1, between, place->sequence);
    }
    return between == 0;
}

static bool audit_order_in_place(const struct audit *audit, const struct audit_scan *scan,
                                 const struct audit_place *place)
{
    if (scan->kind == RECORD_EPOCH_OPENED)
        return scan->epoch > audit->last.epoch;
    return scan->epoch == audit->last.epoch && place->sequence - audit->opened == scan->n;
}

/* Whether it shows that a record of its epoch was stored where the strays are. */
static bool shows_strays(const struct audit *audit, const struct audit_scan *scan)
{
    return audit->stray.count > 0 && scan->epoch == audit->last.epoch && scan->kind != RECORD_EPOCH_OPENED &&
           scan->committed >= audit->stray.first.sequence - audit->opened;
}

/* All from here on stand at a distance from their places: the check goes on with it. */
static void shift_to(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place)
{
    if (scan->epoch == audit->last.epoch)
        accuse_strays(audit, opened_by(place));
    audit->stray = (struct audit_stray){0};
    if (scan->epoch != audit->last.epoch)
        audit_say(audit, AUDIT_MISSING, 0, NULL,
                  "the opening of epoch %llu, of which record #%llu is, is not there", NUMBER(scan->epoch),
                  NUMBER(place->sequence));
    audit->opened = opened_by(place);
    audit->trouble = place->sequence;
}

static enum audit_fault out_of_place(const struct audit *audit, const struct audit_scan *scan,
                                     const struct audit_place *place)
{
    if (opened_by(place) == audit->opened) /* in its place, except for the epoch */
        return AUDIT_CHANGED;
    bool const later =
        scan->epoch > audit->last.epoch || (scan->epoch == audit->last.epoch && scan->n > audit->last.n);
    return later ? AUDIT_REORDERED : AUDIT_ADDED;
}

/* The second record of an epoch that no record opens. */
static bool is_unopened(const struct audit *audit, const struct audit_scan *scan,
                        const struct audit_place *place)
{
    const struct audit_place *first = &audit->stray.first;
    return scan->epoch > audit->last.epoch && audit->stray.count > 0 && first->epoch == scan->epoch &&
           opened_by(first) == opened_by(place);
}

bool audit_place_of_log(struct audit *audit, const struct audit_scan *scan, const struct audit_place *place,
                        bool *ret_adjacent)
{
    *ret_adjacent = true;
    if (audit->last.sequence == 0) {
        audit_order_take_first(audit, scan, place);
    } else if (audit_order_in_place(audit, scan, place)) {
        *ret_adjacent = scan->kind == RECORD_EPOCH_OPENED ? opens_behind(audit, scan, place)
                                                          : audit_order_follows(audit, scan, place);
    } else if (audit->last.n == 0 && opened_by(place) == audit->opened && audit->stray.count == 0) {
        audit->last.epoch = scan->epoch; /* the opening says another epoch: the links tell who is wrong */
    } else if (is_unopened(audit, scan, place) || shows_strays(audit, scan)) {
        *ret_adjacent = false;
        shift_to(audit, scan, place);
    } else {
        audit_stray(audit, out_of_place(audit, scan, place), place);
        return false;
    }
    return true;
}

/* ---- the records of one instance ---- */

/* An instance's turns are numbered; a pruning may remove some together with their executions. */
static bool audit_order_note_turn(struct audit *audit, const struct audit_scan *scan,
                                  const struct audit_place *place)
{
    bool const first = audit->last.sequence == 0;
    bool const same = !first && !audit->deleted && scan->execution == audit->execution;
    bool const early = audit->deleted && scan->execution == 0; /* an event that came before the next start */
    uint64_t const expected = same ? audit->turn : 1;
    bool const next = same || early || scan->execution == audit->started + 1;
    audit->execution = scan->execution;
    if (scan->execution > audit->started)
        audit->started = scan->execution;
    audit->deleted = scan->kind != RECORD_TURN;
    if (audit->deleted) { /* the records that it names may have been removed */
        audit->turn = 1;
        return !first && record_hash_equal(&scan->previous_of_instance, &audit->last.hash);
    }
    if (!first && !next)
        note_hole(audit, audit->last.sequence + 1, 1, place->sequence);
    if (scan->turn > expected)
        audit_say(audit, first ? AUDIT_TRUNCATED : AUDIT_MISSING, place->sequence, scan,
                  "turn %llu stands here, and turn %llu is not there", NUMBER(scan->turn), NUMBER(expected));
    bool const whole = scan->turn == expected && next;
    audit->turn = scan->more ? scan->turn : scan->turn + 1;
    return !first && whole;
}

/* Other records are between those of one instance. */
bool audit_place_of_instance(struct audit *audit, const struct audit_scan *scan,
                             const struct audit_place *place, bool *ret_adjacent)
{
    const struct audit_place *last = &audit->last;
    bool const same = last->sequence > 0 && scan->epoch == last->epoch;
    if (scan->kind != RECORD_TURN && scan->kind != RECORD_DELETED) {
        audit_say(audit, AUDIT_REPLAYED, place->sequence, scan, "it is no record of an instance");
        return false;
    }
    if (scan->epoch < last->epoch || (same && scan->n <= last->n)) {
        audit_say(audit, AUDIT_REORDERED, place->sequence, scan,
                  "record %llu of epoch %llu stands behind record %llu of epoch %llu", NUMBER(scan->n),
                  NUMBER(scan->epoch), NUMBER(last->n), NUMBER(last->epoch));
        return false;
    }
    if (same && opened_by(place) != opened_by(last))
        audit_say(audit, AUDIT_REORDERED, place->sequence, scan,
                  "record %llu of epoch %llu does not belong here: record %llu is #%llu", NUMBER(scan->n),
                  NUMBER(scan->epoch), NUMBER(last->n), NUMBER(last->sequence));
    *ret_adjacent = audit_order_note_turn(audit, scan, place);
    return true;
}
