/* Differences of two samples. */
#include "counters.h"
#include <string.h>

const char *const bench_role_names[ROLES] = {
    "client",           "engine",        "worker", "nats-server", "Postgres: projection",
    "Postgres: worker", "Postgres: rest"};

static void subtract_process(struct process_cost *to, const struct process_cost *from)
{
    uint64_t *const a = (uint64_t *)to;
    const uint64_t *const b = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
        a[i] = a[i] > b[i] ? a[i] - b[i] : 0;
}

static void subtract_threads(struct sample *to, const struct sample *from)
{
    for (size_t i = 0; i < to->threads_len; i++)
        for (size_t k = 0; k < from->threads_len; k++)
            if (to->threads[i].role == from->threads[k].role &&
                strcmp(to->threads[i].name, from->threads[k].name) == 0) {
                to->threads[i].cpu_ns -= from->threads[k].cpu_ns;
                to->threads[i].waits -= from->threads[k].waits;
            }
}

void sample_subtract(struct sample *to, const struct sample *from)
{
    for (int role = 0; role < ROLES; role++)
        subtract_process(&to->roles[role], &from->roles[role]);
    subtract_threads(to, from);
    to->nats.in_messages -= from->nats.in_messages;
    to->nats.in_bytes -= from->nats.in_bytes;
    to->nats.out_messages -= from->nats.out_messages;
    to->nats.out_bytes -= from->nats.out_bytes;
    to->nats.api_requests -= from->nats.api_requests;
    to->nats.subscribed -= from->nats.subscribed;
    to->nats.unsubscribed -= from->nats.unsubscribed;
    to->postgres.writing -= from->postgres.writing;
    to->postgres.wal_bytes -= from->postgres.wal_bytes;
    to->postgres.committed -= from->postgres.committed;
    for (size_t i = 0; i < to->postgres.tables_len && i < from->postgres.tables_len; i++) {
        struct table_counts *const t = &to->postgres.tables[i];
        const struct table_counts *const f = &from->postgres.tables[i];
        t->inserted -= f->inserted;
        t->updated -= f->updated;
        t->updated_hot -= f->updated_hot;
        t->deleted -= f->deleted;
        t->scanned -= f->scanned;
    }
}

uint64_t sample_cpu_ns(const struct sample *sample)
{
    uint64_t sum = 0;
    for (int role = 0; role < ROLES; role++)
        sum += sample->roles[role].cpu_ns;
    return sum;
}
