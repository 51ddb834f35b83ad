#include "archive_pick.h"
#include "client_archive.h"
#include "clock.h"
#include "holds.h"
#include "memory.h"
#include "old_executions.h"
#include "read_commands.h"
#include "text.h"
#include "values.h"
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES_MAX = 5 * 1000 * 1000, LIST_ALL = INT32_MAX };

struct picking {
    struct archive_picked *to;
    uint64_t before_ms;
    bool executions; /* of instances that continue as new, too */
};

static bool read_before(const struct cli *cli, uint64_t *ret)
{
    const char *const text = cli->options.ended_before;
    uint64_t age_ms, now_ms = clock_wall_ms();
    if (text != NULL)
        return text_time_parse(text, now_ms, ret);
    if (duration_parse(cli->options.older_than, &age_ms, NULL) != THOLE_OK)
        return false;
    *ret = now_ms > age_ms ? now_ms - age_ms : 0;
    return true;
}

bool archive_age_is_good(const struct cli *cli, int *ret_code)
{
    uint64_t before_ms;
    if ((cli->options.ended_before != NULL) + (cli->options.older_than != NULL) != 1)
        *ret_code = cli_misused(cli, "how long ago must they have ended? --older-than or --ended-before");
    else if (!read_before(cli, &before_ms) && cli->options.older_than != NULL)
        *ret_code = cli_misused(cli, "--older-than: %.60s is no duration such as 30d or 12h",
                                cli->options.older_than);
    else if (!read_before(cli, &before_ms))
        *ret_code = cli_misused(cli,
                                "--ended-before: %.60s is no time; expected 2026-11-21T09:30:00Z, "
                                "2026-11-21, or a duration such as 30d, which is that long ago",
                                cli->options.ended_before);
    else
        return true;
    return false;
}

static thole_status archive_pick_note_row(void *arg, const thole_instance_info *info)
{
    struct picking *picking = arg;
    struct archive_picked *to = picking->to;
    bool const whole =
        !info->foreign && instance_has_ended(info->status) && info->updated_ms < picking->before_ms;
    if (!whole && !(picking->executions && old_executions_possible(info)))
        return THOLE_OK;
    if (to->len == CANDIDATES_MAX)
        return THOLE_CANCELLED;
    uint8_t both[2 * THOLE_ID_BYTES_MAX];
    if (info->instance.len + info->parent.len > sizeof both)
        return THOLE_OK; /* no id is so long */
    memcpy(both, info->instance.ptr, info->instance.len);
    if (info->parent.len > 0)
        memcpy(both + info->instance.len, info->parent.ptr, info->parent.len);
    const uint8_t *const kept = memory_copy(both, info->instance.len + info->parent.len);
    to->items = memory_reserve(to->items, &to->cap, to->len + 1, sizeof *to->items);
    to->items[to->len++] = (struct archive_candidate){.instance = {kept, info->instance.len},
                                                      .parent = {kept + info->instance.len, info->parent.len},
                                                      .ended_ms = info->updated_ms,
                                                      .upto = whole ? 0 : info->execution};
    return THOLE_OK;
}

static thole_status note_execution(void *arg, const thole_execution_info *info)
{
    (void)old_executions_take(arg, info);
    return THOLE_OK;
}

/* Of instances that continue as new: up to which execution. Those that have no old ones are left out. */
static thole_status pick_executions(struct picking *picking, thole_client *client, thole_error *reterr)
{
    struct archive_picked *to = picking->to;
    struct old_executions old = {.ended_before = picking->before_ms};
    size_t kept = 0;
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < to->len; i++) {
        struct archive_candidate *candidate = &to->items[i];
        if (candidate->upto > 0 && status == THOLE_OK) {
            old_executions_begin(&old);
            status = thole_client_executions(client, candidate->instance, note_execution, &old, reterr);
            candidate->upto = old.upto;
            candidate->ended_ms = old.ended_ms;
            if (old.upto == 0) {
                free((void *)(uintptr_t)candidate->instance.ptr);
                continue;
            }
        }
        to->items[kept++] = *candidate;
    }
    to->len = kept;
    return status;
}

static int by_end(const void *a, const void *b)
{
    const struct archive_candidate *x = a, *y = b;
    return (x->ended_ms > y->ended_ms) - (x->ended_ms < y->ended_ms);
}

thole_status archive_pick(const struct cli *cli, thole_client *client, struct archive_picked *ret,
                          thole_error *reterr)
{
    struct picking picking = {.to = ret, .executions = cli->options.executions};
    thole_list_filter const filter = {.size = sizeof filter,
                                      .statuses = cli_wanted_statuses(cli),
                                      .orchestration = thole_slice_from(cli->options.orchestration),
                                      .id_prefix = thole_slice_from(cli->options.prefix),
                                      .limit = LIST_ALL};
    *ret = (struct archive_picked){.len = 0};
    if (!read_before(cli, &picking.before_ms))
        return THOLE_INVALID;
    thole_status status = thole_client_list(client, &filter, archive_pick_note_row, &picking, reterr);
    if (status == THOLE_CANCELLED)
        return thole_fail(reterr, THOLE_LIMIT,
                          "more than %d instances at once: narrow it, by --prefix or age", CANDIDATES_MAX);
    if (status == THOLE_OK)
        status = pick_executions(&picking, client, reterr);
    if (ret->len > 0)
        qsort(ret->items, ret->len, sizeof *ret->items, by_end);
    return status;
}

void archive_picked_release(struct archive_picked *picked)
{
    for (size_t i = 0; i < picked->len; i++)
        free((void *)(uintptr_t)picked->items[i].instance.ptr);
    free(picked->items);
    *picked = (struct archive_picked){.len = 0};
}

thole_status archive_judge(thole_client *client, const struct archive_candidate *candidate,
                           enum archive_why *ret, thole_error *reterr)
{
    bool held = false, open = false;
    THOLE_TRY(
        holds_find(client->connection, client->topology.ns, candidate->instance, &held, NULL, NULL, reterr));
    if (!held && candidate->upto == 0 && candidate->parent.len > 0)
        THOLE_TRY(client_is_open(client, candidate->parent, &open, reterr));
    *ret = held ? ARCHIVE_HELD : open ? ARCHIVE_PARENT_RUNS : ARCHIVE_GOES;
    return THOLE_OK;
}
