#include "archive_purge.h"
#include "archive_folder.h"
#include "archive_hook.h"
#include "client_archive.h"
#include "clock.h"
#include "side_by_side.h"
#include "text.h"
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    RECEIPT_BYTES_MAX = 64 * 1024,
    DELETE_TRIES = 3,
    REASON_BYTES = 512,
    PRUNE_LOOK_MS = 50,
    PURGE_THREADS_MAX = 64
};

static thole_status archive_purge_verify(const struct archive_finisher *finisher, const char *path,
                                         struct archive_check *check, thole_error *reterr)
{
    struct archive_first_finding first = {.then = "nothing of it was purged", .reterr = reterr};
    check->keys = finisher->keys;
    check->found = archive_first_found;
    check->arg = &first;
    THOLE_TRY(archive_check_file(check, path, reterr));
    if (check->findings > 0)
        return THOLE_CORRUPT;
    if (!check->is_archive)
        return thole_fail(reterr, THOLE_INVALID,
                          "it is an export, which thole archive run has not written: move it out of --dir; "
                          "nothing of it was purged");
    if (strcmp(check->ns, finisher->client->topology.ns) != 0)
        return thole_fail(reterr, THOLE_INVALID, "it is an archive of namespace %s: its folder is not of %s",
                          check->ns, finisher->client->topology.ns);
    return THOLE_OK;
}

static thole_status archive_purge_store(const struct archive_finisher *finisher, const char *path,
                                        struct archive_result *result, thole_error *reterr)
{
    const struct cli_options *const o = &finisher->cli->options;
    if (o->to_command == NULL || archive_mark_is_there(path, ".sent"))
        return THOLE_OK;
    THOLE_TRY(archive_hook_send(o->to_command, path, reterr));
    thole_status const status =
        o->back_command == NULL ? THOLE_OK : archive_hook_compare(o->back_command, path, reterr);
    result->came_back_wrong = status == THOLE_CORRUPT;
    THOLE_TRY(status);
    return archive_mark_write(path, ".sent", THOLE_STR("stored by --to-command\n"), reterr);
}

/* ---- purging ---- */

static bool archive_purge_goes_on(const struct archive_facts *facts)
{
    return facts->status == THOLE_INSTANCE_CONTINUED_AS_NEW;
}

/* Of an instance that goes on: what is archived is pruned, all before the last of these executions. */
static thole_status archive_purge_prune_one(const struct archive_finisher *finisher,
                                            struct archive_facts *facts, thole_slice reason,
                                            struct archive_result *result, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    thole_status status = THOLE_UNAVAILABLE;
    for (int i = 0; i < DELETE_TRIES && status == THOLE_UNAVAILABLE; i++)
        status = thole_client_prune(finisher->client, facts->instance, facts->execution + 1, reason, &why);
    facts->asked = status == THOLE_OK;
    if (status == THOLE_CONFLICT) { /* held; or it has ended: then all of it is archived later */
        cli_note(finisher->cli, "%s", why.text);
        result->kept++;
    } else if (status == THOLE_NOT_FOUND) {
        result->purged++;
    } else if (status != THOLE_OK) {
        return thole_fail(reterr, status, "%s", why.text);
    }
    return THOLE_OK;
}

static thole_status is_pruned(const struct archive_finisher *finisher, const struct archive_facts *facts,
                              bool *ret, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    uint64_t last = 0;
    thole_status status =
        place_execution(finisher->client, facts->instance, facts->execution, &place, reterr);
    if (status == THOLE_OK)
        status = place_last(finisher->client, &place, &last, NULL, reterr);
    place_release(&place);
    *ret = last == 0;
    return status;
}

/* The request is stored; its engine removes the records when all their effects are done. */
static thole_status await_pruned(const struct archive_finisher *finisher, const struct archive_check *check,
                                 struct archive_result *result, thole_error *reterr)
{
    struct timespec const pause = clock_timespec(PRUNE_LOOK_MS);
    uint64_t const until_ms = clock_monotonic_ms() + finisher->client->timeout_ms;
    for (size_t i = 0; i < check->instances_len; i++) {
        const struct archive_facts *facts = &check->instances[i];
        bool pruned = !facts->asked;
        if (pruned)
            continue;
        THOLE_TRY(is_pruned(finisher, facts, &pruned, reterr));
        while (!pruned && clock_monotonic_ms() < until_ms) {
            (void)nanosleep(&pause, NULL);
            THOLE_TRY(is_pruned(finisher, facts, &pruned, reterr));
        }
        result->purged += pruned;
        result->kept += !pruned;
        if (!pruned)
            cli_note(
                finisher->cli,
                "instance \"%.*s\" is not pruned yet, its engine was asked to; executions that are there "
                "in the next run are archived again",
                THOLE_FMT(facts->instance));
    }
    return THOLE_OK;
}

static thole_status purge_one(const struct archive_finisher *finisher, struct archive_facts *facts,
                              thole_slice reason, struct archive_result *result, thole_error *reterr)
{
    thole_error why = {.status = THOLE_OK};
    bool accepted = false;
    thole_status status = THOLE_UNAVAILABLE;
    for (int i = 0; i < DELETE_TRIES && (status == THOLE_UNAVAILABLE || (status == THOLE_OK && !accepted));
         i++)
        status = client_delete_archived(finisher->client, facts->instance, facts->last_sequence, reason,
                                        &accepted, &why);
    if (status == THOLE_CONFLICT) {
        cli_note(finisher->cli, "%s", why.text);
        result->kept++;
        return THOLE_OK;
    }
    if (status != THOLE_OK && status != THOLE_NOT_FOUND)
        return thole_fail(reterr, status, "%s", why.text);
    if (status == THOLE_OK && !accepted)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no engine has taken the deletion of \"%.*s\"",
                          THOLE_FMT(facts->instance));
    result->purged++;
    return THOLE_OK;
}

struct purging {
    const struct archive_finisher *finisher;
    struct archive_check *check;
    struct archive_result *result;
    thole_slice reason;
    pthread_mutex_t lock; /* of result, and of what is said */
    size_t done;
};

static thole_status purge_nth(void *arg, size_t i, thole_error *reterr)
{
    struct purging *const purging = arg;
    struct archive_facts *const facts = &purging->check->instances[i];
    struct archive_result result = {.purged = 0};
    thole_status const status = (archive_purge_goes_on(facts) ? archive_purge_prune_one : purge_one)(
        purging->finisher, facts, purging->reason, &result, reterr);
    pthread_mutex_lock(&purging->lock);
    purging->result->purged += result.purged;
    purging->result->kept += result.kept;
    purging->finisher->progress(purging->finisher->arg, "purged", purging->done++,
                                purging->check->instances_len);
    pthread_mutex_unlock(&purging->lock);
    return status;
}

static thole_status archive_purge_purge(const struct archive_finisher *finisher, const char *path,
                                        struct archive_check *check, struct archive_result *result,
                                        thole_error *reterr)
{
    char reason[REASON_BYTES];
    const char *const slash = strrchr(path, '/');
    (void)snprintf(reason, sizeof reason, "archived in %.300s, sha256 %.64s",
                   slash == NULL ? path : slash + 1, check->sha256);
    struct purging purging = {
        .finisher = finisher, .check = check, .result = result, .reason = thole_slice_from(reason)};
    pthread_mutex_init(&purging.lock, NULL);
    thole_status const status =
        side_by_side(check->instances_len, PURGE_THREADS_MAX, purge_nth, &purging, reterr);
    pthread_mutex_destroy(&purging.lock);
    return status == THOLE_OK ? await_pruned(finisher, check, result, reterr) : status;
}

static thole_status write_receipt(const char *path, const struct archive_check *check,
                                  const struct archive_result *result, thole_error *reterr)
{
    char time[TIME_TEXT_BYTES];
    struct buf text;
    struct json json;
    buf_init(&text, RECEIPT_BYTES_MAX);
    json_to_buf(&json, &text);
    json_object(&json);
    json_member_text(&json, "schema", "thole.archive_receipt.v1");
    json_member_text(&json, "namespace", check->ns);
    text_time(clock_wall_ms(), time);
    json_member_text(&json, "time", time);
    json_member_text(&json, "sha256", check->sha256);
    json_member_number(&json, "instances", result->instances);
    json_member_number(&json, "records", result->records);
    json_member_number(&json, "bytes", result->bytes);
    json_member_number(&json, "purged", result->purged);
    json_member_number(&json, "kept", result->kept);
    json_end(&json);
    buf_text(&text, "\n");
    thole_status const status = archive_mark_write(path, ".done", buf_bytes(&text), reterr);
    buf_release(&text);
    return status;
}

thole_status archive_finish(const struct archive_finisher *finisher, const char *path,
                            struct archive_result *ret, thole_error *reterr)
{
    struct archive_check check = {.records = 0};
    *ret = (struct archive_result){.instances = 0};
    thole_status status = archive_purge_verify(finisher, path, &check, reterr);
    ret->instances = check.instances_len;
    ret->records = check.records;
    ret->bytes = check.bytes;
    if (status == THOLE_OK)
        status = archive_purge_store(finisher, path, ret, reterr);
    if (status == THOLE_OK)
        status = archive_purge_purge(finisher, path, &check, ret, reterr);
    if (status == THOLE_OK)
        status = write_receipt(path, &check, ret, reterr);
    if (status == THOLE_OK && finisher->cli->options.to_command != NULL) {
        archive_mark_remove(path, "");
        archive_mark_remove(path, ".sent");
    }
    archive_check_release(&check);
    return status;
}
