/* top: queues, engines and workers at a glance, again and again. */
#include "cells.h"
#include "client_internal.h"
#include "clock.h"
#include "cluster.h"
#include "hash.h"
#include "live.h"
#include "roster.h"
#include "table.h"
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
    struct table table; /* of queues, in this drawing */
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

/* "3.5": activities handed to workers each second since the last drawing; "-": it is the first drawing, or
 * another consumer counts from 0. */
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

static const struct table_column top_queue_columns[] = {
    {"QUEUE", QUEUE_COLUMNS, 10, 0, false},
    {"WAITING", 9, 7, 0, true},
    {"OLDEST", 7, 6, 2, true},
    {"RATE/S", 7, 6, 3, true},
    {"RUNNING", 9, 7, 0, true},
    {"OUTSIDE", 9, 7, 6, true},
    {"POISONED", 9, 8, 1, true},
    {"WORKERS", 8, 7, 0, true},
    {"SLOTS", 8, 5, 5, true},
    {"SILENT", 6, 6, 4, false},
};

static void top_queue_print(struct table *table, const thole_queue_info *info, const char *oldest,
                            const char *rate, const uint64_t served[3])
{
    char text[24];
    table_cell(table, TONE_PLAIN, info->queue);
    table_number(table, info->waiting);
    table_text(table, oldest);
    table_text(table, rate);
    table_number(table, info->running);
    table_number(table, info->outside);
    (void)snprintf(text, sizeof text, "%" PRIu64, info->poisoned);
    table_cell(table, info->poisoned > 0 ? TONE_BAD : TONE_PLAIN, thole_slice_from(text));
    (void)snprintf(text, sizeof text, "%" PRIu64, served[0]);
    table_cell(table, served[0] == 0 && info->waiting > 0 ? TONE_WARN : TONE_PLAIN, thole_slice_from(text));
    table_number(table, served[1]);
    table_number(table, served[2]);
}

static thole_status top_command_queue_row(void *arg, const thole_queue_info *info)
{
    struct top *top = arg;
    uint64_t workers, slots, silent = 0;
    char oldest[AGE_TEXT_BYTES] = "-", rate[RATE_BYTES];
    if (info->foreign)
        return THOLE_OK;
    if (top->queues++ == 0) {
        (void)printf("\n");
        table_head(&top->table);
    }
    queue_workers(top, info, &workers, &slots);
    for (size_t i = 0; i < info->workers_len; i++)
        silent += info->lease_ms != 0 && info->workers[i].silent_ms >= info->lease_ms;
    if (info->oldest_ms != 0)
        age_text(info->oldest_ms, oldest);
    queue_rate(top, info, rate);
    top_queue_print(&top->table, info, oldest, rate, (uint64_t[]){workers, slots, silent});
    return THOLE_OK;
}

/* ---- engines ---- */

static const struct table_column top_engine_columns[] = {
    {"ENGINE", NODE_COLUMNS, 12, 0, false},
    {"HEARTBEAT", 9, 9, 1, true},
    {"PARTITIONS", 10, 10, 0, true},
    {"NUMBERS", NODE_COLUMNS, 10, 2, false},
};

static void top_command_engine_row(const struct top *top, struct table *table,
                                   const struct cluster_engine *engine)
{
    struct buf shares;
    char heartbeat[32];
    size_t len;
    buf_init(&shares, SHARES_BYTES);
    cluster_shares(&top->cluster, engine->node, &shares, &len);
    (void)snprintf(heartbeat, sizeof heartbeat, "%" PRIu64 " ms", engine->heartbeat_ms);
    table_cell(table, TONE_PLAIN, engine->node);
    table_text(table, heartbeat);
    table_number(table, len);
    table_cell(table, TONE_PLAIN, buf_bytes(&shares));
    buf_release(&shares);
}

static void top_command_engines(const struct top *top)
{
    struct table table;
    uint32_t without = 0;
    for (uint32_t p = 0; p < top->cluster.partitions_len; p++)
        without += !top->cluster.partitions[p].owned;
    table_init(&table, top_engine_columns, sizeof top_engine_columns / sizeof *top_engine_columns,
               terminal_columns());
    (void)printf("\n");
    table_head(&table);
    for (const struct cluster_engine *e = top->cluster.engines; e != NULL; e = e->next)
        top_command_engine_row(top, &table, e);
    table_release(&table);
    if (without > 0)
        screen_line(TONE_BAD, "%" PRIu32 " of %" PRIu32 " partitions have no owner", without,
                    top->cluster.partitions_len);
}

/* ---- all of it ---- */

static void top_command_head(const struct top *top)
{
    char now[TIME_TEXT_BYTES];
    uint64_t workers = 0;
    for (const struct roster_worker *w = top->roster.first; w != NULL; w = w->next)
        workers++;
    text_time(clock_wall_ms(), now);
    screen_line(TONE_PLAIN, "namespace %s: %zu engines, %" PRIu64 " workers at %s", top->client->topology.ns,
                top->cluster.engines_len, workers, now);
}

static thole_status top_command_draw(void *arg, thole_error *reterr)
{
    struct top *top = arg;
    top->queues = 0;
    table_init(&top->table, top_queue_columns, sizeof top_queue_columns / sizeof *top_queue_columns,
               terminal_columns());
    top->now.len = 0;
    top->now_ms = clock_monotonic_ms();
    thole_status status = cluster_read(&top->cluster, top->client->connection, top->client->topology.ns,
                                       top->client->topology.partitions, reterr);
    thole_status const asked = roster_read(&top->roster, top->client, status == THOLE_OK ? reterr : NULL);
    status = status == THOLE_OK ? asked : status;
    if (status == THOLE_OK) {
        top_command_head(top);
        status = thole_client_queues(top->client, THOLE_STR(""), top_command_queue_row, top, reterr);
    }
    if (status == THOLE_OK) {
        if (top->queues == 0)
            (void)printf("\nnothing is in a queue\n");
        top_command_engines(top);
    }
    struct buf const before = top->before;
    top->before = top->now;
    top->before_ms = top->now_ms;
    top->now = before;
    table_release(&top->table);
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
        code = live_run(cli, top.client, TOP_MS, top_command_draw, &top);
    } else {
        error.status = top_command_draw(&top, &error);
        code = error.status == THOLE_OK ? EXIT_DONE : cli_complain(cli, "", &error);
    }
    buf_release(&top.before);
    buf_release(&top.now);
    thole_client_close(top.client);
    return code;
}
