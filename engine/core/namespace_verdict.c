#include "namespace_verdict.h"
#include <stdio.h>
#include <string.h>

/* ---- identities ---- */

struct namespace_id namespace_id_make(const uint8_t random[16])
{
    static const char digits[] = "0123456789abcdef";
    struct namespace_id id;
    char *at = id.text;
    for (size_t i = 0; i < 16; i++) {
        uint8_t const byte = i == 6   ? (uint8_t)(0x40 | (random[i] & 0x0f))
                             : i == 8 ? (uint8_t)(0x80 | (random[i] & 0x3f))
                                      : random[i];
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[byte >> 4];
        *at++ = digits[byte & 15];
    }
    *at = '\0';
    return id;
}

bool namespace_id_read(thole_slice text, struct namespace_id *ret)
{
    if (text.len != NAMESPACE_ID_BYTES)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char const c = (char)text.ptr[i];
        bool const dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    memcpy(ret->text, text.ptr, text.len);
    ret->text[text.len] = '\0';
    return true;
}

bool namespace_id_is(const struct namespace_id *a, const struct namespace_id *b)
{
    return strcmp(a->text, b->text) == 0;
}

/* ---- parts ---- */

static const struct part_rule {
    bool elsewhere;   /* the contents can be made again, or nothing depends on them */
    const char *loss; /* with it are lost … */
} part_rules[] = {
    [PART_CONFIG] = {false, "the number of partitions, without which no instance is found"},
    [PART_SECRET] = {false, "the key by which results of activities under way are recognised"},
    [PART_INBOX] = {false, "starts, events and results that were acknowledged and not yet recorded"},
    [PART_HISTORY] = {false, "the histories of its instances"},
    [PART_NODES] = {true, "heartbeats, which engines store again"},
    [PART_CRASHES] = {true, "the counts of crashes"},
    [PART_WORK] = {true, "messages of activities, which engines queue again"},
    [PART_REJECTED] = {true, "messages that could not be taken"},
};

enum part_verdict part_judge(enum namespace_part part, bool there, bool made)
{
    if (there)
        return PART_THERE;
    return made && !part_rules[part].elsewhere ? PART_LOST : PART_NEW;
}

const char *part_loss(enum namespace_part part)
{
    return part_rules[part].loss;
}

/* ---- stores ---- */

enum store_verdict store_judge(const struct store_mark *mark, bool there, uint64_t last)
{
    if (!mark->made)
        return there ? STORE_UNMARKED : STORE_NEVER;
    if (!there)
        return STORE_GONE;
    return last < mark->last ? STORE_OLDER : STORE_FITS;
}

bool store_is_lost(enum store_verdict verdict)
{
    return verdict == STORE_GONE || verdict == STORE_OLDER;
}

static const struct store_rule {
    const char *name, *loss;
} store_rules[NAMESPACE_STORES] = {
    [STORE_HOLDS] = {"holds", "the legal holds: no instance may be deleted, as each may be under hold"},
    [STORE_BINDINGS] = {"bindings", "the rules of thole bind"},
    [STORE_AUDIT] = {"audit", "the signed checkpoints of the histories"},
    [STORE_RESTORED] = {"restored", "the histories that were restored from archives"},
    [STORE_EVENTS] = {"events", "the CloudEvents that nobody had read"},
};

const char *store_name(enum namespace_store store)
{
    return store_rules[store].name;
}

const char *store_loss(enum namespace_store store)
{
    return store_rules[store].loss;
}

/* ---- logs ---- */

/* The log has the record, so it has all up to it. A version without marks has written 0. */
static bool log_fit_has(uint64_t sequence, uint64_t mark, uint64_t mark_there)
{
    return sequence > 0 && mark_there != 0 && (mark == 0 || mark == mark_there);
}

/* The log ends before the record, or has another one there. One that is missing in between was removed with
 * its instance. */
static bool log_fit_lacks_record(uint64_t sequence, uint64_t mark, uint64_t last, uint64_t mark_there)
{
    return sequence > last || (mark != 0 && mark_there != 0 && mark != mark_there);
}

enum log_fit log_fit_judge(const struct log_known *known, const struct log_there *there)
{
    if (!there->there)
        return LOG_FIT_GONE;
    if (log_fit_has(known->projected, known->projected_mark, there->projected_mark))
        return LOG_FIT_SAME;
    if (log_fit_lacks_record(known->kept, known->kept_mark, there->last, there->kept_mark))
        return LOG_FIT_OLDER;
    return log_fit_lacks_record(known->projected, known->projected_mark, there->last, there->projected_mark)
               ? LOG_FIT_CUT
               : LOG_FIT_SAME;
}

uint64_t log_fit_lacks(const struct log_known *known, const struct log_there *there)
{
    return known->projected > there->last ? known->projected - there->last : 1;
}

/* ---- the namespace ---- */

enum namespace_verdict namespace_judge(const struct namespace_sides *sides)
{
    bool const known = sides->postgres.text[0] != '\0' || sides->owned > 0;
    if (sides->nats.text[0] != '\0' && sides->postgres.text[0] != '\0' &&
        !namespace_id_is(&sides->nats, &sides->postgres))
        return NAMESPACE_OTHER;
    if (!sides->made)
        return known || sides->orphans ? NAMESPACE_LOST : NAMESPACE_NEW;
    if (sides->lost > 0)
        return NAMESPACE_LOST;
    if (sides->older > 0)
        return NAMESPACE_OLDER;
    return known ? NAMESPACE_SAME : NAMESPACE_EMPTIED;
}

const char *namespace_verdict_name(enum namespace_verdict verdict)
{
    static const char *const names[] = {
        [NAMESPACE_NEW] = "new",     [NAMESPACE_SAME] = "same", [NAMESPACE_EMPTIED] = "emptied",
        [NAMESPACE_OTHER] = "other", [NAMESPACE_LOST] = "lost", [NAMESPACE_OLDER] = "older"};
    return names[verdict];
}

bool namespace_verdict_serves(enum namespace_verdict verdict)
{
    return verdict == NAMESPACE_NEW || verdict == NAMESPACE_SAME || verdict == NAMESPACE_EMPTIED;
}
