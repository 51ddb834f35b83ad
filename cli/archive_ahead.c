#include "archive_ahead.h"
#include "memory.h"
#include "side_by_side.h"
#include <stdlib.h>

enum { THREADS_MAX = 32, KEPT_BYTES_MAX = 256 * 1024 };

struct judging {
    struct archive_ahead *ahead;
    thole_client *client;
    const struct archive_picked *picked;
    bool mentioned; /* all of which anything was said are known */
};

static thole_status judge_one(void *arg, size_t i, thole_error *reterr)
{
    const struct judging *const judging = arg;
    struct archive_read *const read = &judging->ahead->reads[i];
    const struct archive_candidate *const candidate = &judging->picked->items[judging->ahead->first + i];
    bool const held =
        !judging->mentioned || holds_mentioned_has(&judging->ahead->mentioned, candidate->instance);
    read->why = ARCHIVE_GOES;
    if (held || candidate->parent.len > 0)
        THOLE_TRY(archive_judge(judging->client, candidate, &read->why, reterr));
    read->judged = true;
    return THOLE_OK;
}

/* Of most nothing was ever said about a hold, and they have no parent: no question is asked. */
static thole_status judge_all(struct archive_ahead *ahead, thole_client *client,
                              const struct archive_picked *picked, thole_error *reterr)
{
    struct judging judging = {.ahead = ahead, .client = client, .picked = picked};
    size_t asked = 0;
    thole_status const status =
        holds_mentioned_read(client->connection, client->topology.ns, &ahead->mentioned, reterr);
    if (status != THOLE_OK && status != THOLE_LIMIT)
        return status;
    judging.mentioned = status == THOLE_OK;
    for (size_t i = 0; i < ahead->len && judging.mentioned; i++)
        asked += picked->items[ahead->first + i].parent.len > 0;
    return side_by_side(ahead->len, judging.mentioned && asked == 0 ? 1 : THREADS_MAX, judge_one, &judging,
                        reterr);
}

/* After the histories were read. */
static thole_status read_owners(struct archive_ahead *ahead, thole_client *client,
                                const struct archive_picked *picked, thole_error *reterr)
{
    uint32_t const partitions = client->topology.partitions;
    struct log_rule *const owners = memory_array(partitions, sizeof *owners);
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < ahead->len && status == THOLE_OK; i++) {
        thole_slice const instance = picked->items[ahead->first + i].instance;
        struct log_rule *const owner = &owners[subject_partition(instance, partitions)];
        if (ahead->reads[i].history.whole && owner->opened == 0)
            status = owner_read(client, instance, owner, reterr);
        ahead->reads[i].owner = *owner;
    }
    free(owners);
    return status;
}

static thole_status read_histories(struct archive_ahead *ahead, thole_client *client,
                                   const struct archive_picked *picked, thole_error *reterr)
{
    thole_slice *const ids = memory_array(ahead->len, sizeof *ids);
    struct linked_history *const histories = memory_array(ahead->len, sizeof *histories);
    size_t *const of = memory_array(ahead->len, sizeof *of);
    thole_status status = THOLE_OK;
    size_t n = 0;
    for (size_t i = 0; i < ahead->len; i++) {
        const struct archive_candidate *const candidate = &picked->items[ahead->first + i];
        if (ahead->reads[i].why != ARCHIVE_GOES || candidate->upto > 0)
            continue;
        ids[n] = candidate->instance;
        of[n++] = i;
    }
    if (n > 0)
        status = linked_histories_read(client, ids, n, KEPT_BYTES_MAX, histories, reterr);
    for (size_t i = 0; i < n; i++)
        ahead->reads[of[i]].history = histories[i];
    free(ids);
    free(histories);
    free(of);
    return status == THOLE_OK ? read_owners(ahead, client, picked, reterr) : status;
}

static void forget_reads(struct archive_ahead *ahead)
{
    for (size_t i = 0; i < ahead->len; i++)
        linked_history_release(&ahead->reads[i].history);
    ahead->len = 0;
}

thole_status archive_ahead_read(struct archive_ahead *ahead, thole_client *client,
                                const struct archive_picked *picked, size_t first, thole_error *reterr)
{
    size_t const left = picked->len - first;
    forget_reads(ahead);
    if (left < SIDE_BY_SIDE_MIN)
        return THOLE_OK;
    ahead->first = first;
    ahead->len = left < ARCHIVE_AHEAD_MAX ? left : ARCHIVE_AHEAD_MAX;
    for (size_t i = 0; i < ahead->len; i++)
        ahead->reads[i] = (struct archive_read){.judged = false};
    THOLE_TRY(judge_all(ahead, client, picked, reterr));
    return read_histories(ahead, client, picked, reterr);
}

const struct archive_read *archive_ahead_of(const struct archive_ahead *ahead, size_t candidate)
{
    bool const within = candidate >= ahead->first && candidate - ahead->first < ahead->len;
    const struct archive_read *const read = within ? &ahead->reads[candidate - ahead->first] : NULL;
    return read != NULL && read->judged ? read : NULL;
}

thole_status archive_read_records(thole_client *client, thole_slice instance, const struct archive_read *read,
                                  client_record_fn *each, void *arg, thole_error *reterr)
{
    bool done = false;
    thole_status status = THOLE_OK;
    if (read != NULL && read->history.whole)
        status =
            linked_history_give(client, instance, &read->history, &read->owner, each, arg, &done, reterr);
    if (done || status != THOLE_OK)
        return status;
    return client_history_records(client, instance, each, arg, reterr);
}

void archive_ahead_release(struct archive_ahead *ahead)
{
    forget_reads(ahead);
    holds_mentioned_release(&ahead->mentioned);
}
