/* top: queues, engines and workers at a glance, again and again. */
#include "cells.h"
#include "client_internal.h"
#include "clock.h"
#include "cluster.h"
#include "hash.h"
#include "live.h"
#include "roster.h"
#include "text.h"
#include <inttypes.h>
#include <string.h>

enum {
    QUEUE_COLUMNS = 24,
    NODE_COLUMNS = 36,
    SHARES_BYTES = 32 * 1024,
    TOP_MS = 2000,
    RATE_BYTES = 32,
    HANDED_OUT_BYTES_MAX = 1024 * 1024
};

struct top {
    const struct cli *cli;
    thole_client *client;
    struct cluster cluster;
    struct roster roster;
    uint64_t queues;
    struct buf before, now; /* struct handed_out, of the last drawing and of this one, by queue */
    uint64_t before_ms, now_ms;
};

struct handed_out { /* how many activities a queue had given to workers */
    uint64_t queue; /* hash */
    uint64_t count;
};

/* ---- queues ---- */

static void queue_workers(const struct top *top, const thole_queue_info *info, uint64_t *ret_workers,
                          uint64_t *ret_slots)
{
    *ret_workers = *ret_slots = 0;
    for (const struct roster_worker *w = top->roster.first; w != NULL; w = w->next)
        if (thole_slice_equal(w->queue, info->queue)) {
            ++*ret_workers;
            *ret_slots += w->slots;
        }
}

/* "3.5": activities handed to workers each second since the last drawing; "-": it is the first one, or
 * another consumer counts anew. */
static void queue_rate(struct top *top, const thole_queue_info *info, char ret[RATE_BYTES])
{
    struct handed_out const here = {hash_bytes(0, info->queue), info->delivered};
    uint64_t const passed_ms = top->now_ms - top->before_ms;
    (void)snprintf(ret, RATE_BYTES, "-");
    buf_append(&top->now, &here, sizeof here);
    for (size_t at = 0; at + sizeof here <= top->before.len; at += sizeof here) {
        struct handed_out before;
        memcpy(&before, top->before.ptr + at, sizeof before);
        if (before.queue == here.queue && before.count <= here.count && passed_ms > 0)
            (void)snprintf(ret, RATE_BYTES, "%.1f",
                           (double)(here.count - before.count) * 1000 / (double)passed_ms);
    }
}

static thole_status queue_row(void *arg, const thole_queue_info *info)
{
    struct top *top = arg;
    uint64_t workers, slots, silent = 0;
    char oldest[AGE_TEXT_BYTES] = "-", rate[RATE_BYTES];
    if (info->foreign)
        return THOLE_OK;
    if (top->queues++ == 0)
        (void)printf("\n%-24s  %9s  %7s  %7s  %9s  %9s  %9s  %8s  %8s  %s\n", "QUEUE", "WAITING", "OLDEST",
                     "RATE/S", "RUNNING", "OUTSIDE", "POISONED", "WORKERS", "SLOTS", "SILENT");
    queue_workers(top, info, &workers, &slots);
    for (size_t i = 0; i < info->workers_len; i++)
        silent += info->lease_ms != 0 && info->workers[i].silent_ms >= info->lease_ms;
    if (info->oldest_ms != 0)
        age_text(info->oldest_ms, oldest);
    queue_rate(top, info, rate);
    print_cell(info->queue, QUEUE_COLUMNS, THOLE_NAME_BYTES_MAX);
    enum tone const poisoned = info->poisoned > 0 ? TONE_BAD : TONE_PLAIN;
    enum tone const idle = workers == 0 && info->waiting > 0 ? TONE_WARN : TONE_PLAIN;
    (void)printf("%9" PRIu64 "  %7s  %7s  %9" PRIu64 "  %9" PRIu64 "  %s%9" PRIu64 "%s  %s%8" PRIu64
                 "%s  %8" PRIu64 "  %" PRIu64 "\n",
                 info->waiting, oldest, rate, info->running, info->outside, tone_begin(poisoned),
                 info->poisoned, tone_end(poisoned), tone_begin(idle), workers, tone_end(idle), slots,
                 silent);
    return THOLE_OK;
}

/* ---- engines ---- */

static void engine_row(const struct top *top, const struct cluster_engine *engine)
{
    struct buf shares;
    size_t len;
    buf_init(&shares, SHARES_BYTES);
    cluster_shares(&top->cluster, engine->node, &shares, &len);
    print_cell(engine->node, NODE_COLUMNS, THOLE_ID_BYTES_MAX);
    (void)printf("%6" PRIu64 " ms  %10zu  ", engine->heartbeat_ms, len);
    print_last_cell(buf_bytes(&shares), NODE_COLUMNS);
    buf_release(&shares);
}

static void engines(const struct top *top)
{
    uint32_t without = 0;
    for (uint32_t p = 0; p < top->cluster.partitions_len; p++)
        without += !top->cluster.partitions[p].owned;
    (void)printf("\n%-36s  %9s  %10s  %s\n", "ENGINE", "HEARTBEAT", "PARTITIONS", "NUMBERS");
    for (const struct cluster_engine *e = top->cluster.engines; e != NULL; e = e->next)
        engine_row(top, e);
    if (without > 0)
        (void)printf("%s%" PRIu32 " of %" PRIu32 " partitions have no owner%s\n", tone_begin(TONE_BAD),
                     without, top->cluster.partitions_len, tone_end(TONE_BAD));
}

/* ---- all of it ---- */

static void head(const struct top *top)
{
    char now[TIME_TEXT_BYTES];
    uint64_t workers = 0;
    for (const struct roster_worker *w = top->roster.first; w != NULL; w = w->next)
        workers++;
    text_time(clock_wall_ms(), now);
    (void)printf("namespace %s at %s: %zu engines, %" PRIu64 " workers\n", top->client->topology.ns, now,
                 top->cluster.engines_len, workers);
}

static thole_status draw(void *arg, thole_error *reterr)
{
    struct top *top = arg;
    top->queues = 0;
    top->now.len = 0;
    top->now_ms = clock_monotonic_ms();
    thole_status status = cluster_read(&top->cluster, top->client->connection, top->client->topology.ns,
                                       top->client->topology.partitions, reterr);
    thole_status const asked = roster_read(&top->roster, top->client, status == THOLE_OK ? reterr : NULL);
    status = status == THOLE_OK ? asked : status;
    if (status == THOLE_OK) {
        head(top);
        status = thole_client_queues(top->client, THOLE_STR(""), queue_row, top, reterr);
    }
    if (status == THOLE_OK) {
        if (top->queues == 0)
            (void)printf("\nnothing is in a queue\n");
        engines(top);
    }
    struct buf const before = top->before;
    top->before = top->now;
    top->before_ms = top->now_ms;
    top->now = before;
    cluster_release(&top->cluster);
    roster_release(&top->roster);
    return status;
}

int command_top(struct cli *cli)
{
    struct top top = {.cli = cli};
    thole_error error = {.status = THOLE_OK};
    int code;
    if (cli_is_json(cli))
        return cli_misused(cli, "top is for people; programs ask thole queue list and thole nodes");
    top.client = cli_connect(cli, &code);
    if (top.client == NULL)
        return code;
    buf_init(&top.before, HANDED_OUT_BYTES_MAX);
    buf_init(&top.now, HANDED_OUT_BYTES_MAX);
    if (terminal_there()) {
        code = live_run(cli, top.client, TOP_MS, draw, &top);
    } else {
        error.status = draw(&top, &error);
        code = error.status == THOLE_OK ? EXIT_DONE : cli_complain(cli, "", &error);
    }
    buf_release(&top.before);
    buf_release(&top.now);
    thole_client_close(top.client);
    return code;
}
