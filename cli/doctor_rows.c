/* doctor: whether the rows in Postgres are as new as the histories. */
#include "buf.h"
#include "client_internal.h"
#include "clock.h"
#include "doctor_checks.h"
#include "forms.h"
#include "memory.h"
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum { STILL_MS = 3000, LOOK_MS = 250, LIST_BYTES_MAX = 1024, LISTED_MAX = 10 };

/* Rows that lag for a moment are being written. behind[p]: their lag in sequences, never less than the time
 * before; 0: they do not lag, or they move. */
static thole_status doctor_rows_look(thole_client *client, uint64_t *behind, bool first, size_t *ret_behind,
                                     thole_error *reterr)
{
    struct cluster cluster;
    *ret_behind = 0;
    thole_status status =
        cluster_read(&cluster, client->connection, client->topology.ns, client->topology.partitions, reterr);
    if (status == THOLE_OK)
        status = cluster_read_lags(&cluster, client, reterr);
    for (uint32_t p = 0; p < cluster.partitions_len && status == THOLE_OK; p++) {
        uint64_t const lag = cluster.partitions[p].projection_lag;
        behind[p] = first || (behind[p] > 0 && lag >= behind[p]) ? lag : 0;
        *ret_behind += behind[p] > 0;
    }
    cluster_release(&cluster);
    return status;
}

static void report_rows(struct doctor_report *report, const uint64_t *behind, uint32_t partitions, size_t n)
{
    struct buf list;
    size_t listed = 0;
    if (n == 0) {
        report_add(report, "rows", FINDING_OK, NULL,
                   "those of %" PRIu32 " partitions are as new as the histories", partitions);
        return;
    }
    buf_init(&list, LIST_BYTES_MAX);
    for (uint32_t p = 0; p < partitions && listed < LISTED_MAX; p++)
        if (behind[p] > 0)
            buf_printf(&list, listed++ == 0 ? "%" PRIu32 : ", %" PRIu32, p);
    report_add(report, "rows", FINDING_FAIL,
               "was an older backup of Postgres restored? An engine that runs notices within seconds, and "
               "makes them "
               "right; if it does not, its log says why",
               "those of %zu of %" PRIu32 " partitions are older than the histories, and stay so: %s%s", n,
               partitions, buf_cstr(&list), n > LISTED_MAX ? ", …" : "");
    buf_release(&list);
}

static void doctor_check_rows(struct doctor_report *report, thole_client *client)
{
    struct timespec const pause = clock_timespec(LOOK_MS);
    uint32_t const partitions = client->topology.partitions;
    uint64_t *const behind = memory_array(partitions, sizeof *behind);
    size_t n = 0;
    thole_error error = {.status = THOLE_OK};
    error.status = doctor_rows_look(client, behind, true, &n, &error);
    for (int i = 0; i < STILL_MS / LOOK_MS && n > 0 && error.status == THOLE_OK; i++) {
        (void)nanosleep(&pause, NULL);
        error.status = doctor_rows_look(client, behind, false, &n, &error);
    }
    if (error.status != THOLE_OK)
        report_add(report, "rows", FINDING_SKIP, "an auditor may read all that is needed",
                   "they were not compared with the histories: %s", error.text);
    else
        report_rows(report, behind, partitions, n);
    free(behind);
}

void doctor_rows(struct doctor_report *report)
{
    thole_client_options options;
    thole_client *client = NULL;
    const char *const postgres = report->cli->options.postgres;
    cli_client_options(report->cli, &options);
    if (postgres == NULL || postgres[0] == '\0' || thole_client_open(&options, &client, NULL) != THOLE_OK)
        return; /* the checks before it have said so */
    doctor_check_rows(report, client);
    thole_client_close(client);
}
