/* The ledger's tables, as text and as JSON. */
#include "json_file.h"
#include "ledger.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const json_names[ROLES] = {"client",          "engine",          "worker",       "nats",
                                              "postgres_engine", "postgres_worker", "postgres_rest"};

static const char *unit_name(const struct measurement *m)
{
    return strcmp(m->scenario.kind, "chain") == 0 ? "activity" : "start";
}

/* ---- text ---- */

static void number(bool known, double value, int digits)
{
    char text[32] = "-";
    if (known)
        (void)snprintf(text, sizeof text, "%.*f", digits, value);
    printf(" %9s", text);
}

static void process_row(const char *name, const struct process_cost *p, const struct measurement *m,
                        const struct process_cost *c, const struct measurement *counted, bool allocates)
{
    printf("  %-21s", name);
    number(true, per(p->cpu_ns, m) / 1000, 1);
    number(true, per(p->system_ns, m) / 1000, 1);
    number(true, per(p->waits, m), 2);
    number(true, per(p->preemptions, m), 2);
    number(counted != NULL && counted->has_syscalls, counted == NULL ? 0 : per(c->syscalls, counted), 2);
    number(counted != NULL && allocates, counted == NULL ? 0 : per(c->allocations, counted), 1);
    number(counted != NULL && allocates, counted == NULL ? 0 : per(c->bytes, counted), 0);
    number(p->nats_out > 0, per(p->nats_out, m), 2);
    number(p->nats_in > 0, per(p->nats_in, m), 2);
    printf("\n");
}

static void add(struct process_cost *to, const struct process_cost *one)
{
    to->cpu_ns += one->cpu_ns;
    to->system_ns += one->system_ns;
    to->waits += one->waits;
    to->preemptions += one->preemptions;
    to->syscalls += one->syscalls;
}

static void processes_text(const struct measurement *m, const struct measurement *counted)
{
    struct process_cost all = {.cpu_ns = 0}, all_counted = {.cpu_ns = 0};
    char head[32];
    (void)snprintf(head, sizeof head, "per %s", unit_name(m));
    printf("  %-21s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n", head, "CPU us", "system", "waits", "preempted",
           "syscalls", "mallocs", "bytes", "msgs out", "msgs in");
    for (int role = 0; role < ROLES; role++) {
        const struct process_cost *const c = counted == NULL ? NULL : &counted->cost.roles[role];
        process_row(bench_role_names[role], &m->cost.roles[role], m, c, counted, role <= ROLE_WORKER);
        add(&all, &m->cost.roles[role]);
        if (c != NULL)
            add(&all_counted, c);
    }
    process_row("all", &all, m, &all_counted, counted, false);
}

static int by_cpu(const void *a, const void *b)
{
    const struct thread_cost *const x = a, *const y = b;
    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    return x->cpu_ns > y->cpu_ns ? -1 : x->cpu_ns < y->cpu_ns;
}

/* Those of our own processes, the most expensive first; what costs less than 0.5 us is left out. */
static void threads_text(const struct measurement *m)
{
    static struct thread_cost sorted[THREADS_MAX];
    int role = -1;
    memcpy(sorted, m->cost.threads, m->cost.threads_len * sizeof *sorted);
    qsort(sorted, m->cost.threads_len, sizeof *sorted, by_cpu);
    for (size_t i = 0; i < m->cost.threads_len; i++) {
        const struct thread_cost *const t = &sorted[i];
        if (t->role > ROLE_WORKER || per(t->cpu_ns, m) < 500)
            continue;
        if (role == (int)t->role)
            printf(", ");
        else
            printf("%s  threads of the %s, CPU us and waits: ", role < 0 ? "" : "\n",
                   bench_role_names[t->role]);
        role = (int)t->role;
        printf("%s", t->name);
        if (t->count > 1)
            printf(" (%u)", t->count);
        printf(" %.1f and %.2f", per(t->cpu_ns, m) / 1000, per(t->waits, m));
    }
    printf("\n");
}

static void servers_text(const struct measurement *m)
{
    const struct nats_counts *const n = &m->cost.nats;
    const struct postgres_counts *const p = &m->cost.postgres;
    printf(
        "  NATS: %.2f messages in (%.0f bytes), %.2f out (%.0f bytes), %.3f API requests, %.3f subscribed, "
        "%.3f unsubscribed\n",
        per(n->in_messages, m), per(n->in_bytes, m), per(n->out_messages, m), per(n->out_bytes, m),
        per(n->api_requests, m), per(n->subscribed, m), per(n->unsubscribed, m));
    printf("  Postgres: %.3f transactions that write, %.0f bytes of WAL", per(p->writing, m),
           per(p->wal_bytes, m));
    if (!m->has_tables) {
        printf("\n");
        return;
    }
    printf(", %.3f transactions in all\n", per(p->committed, m));
    for (size_t i = 0; i < p->tables_len; i++) {
        const struct table_counts *const t = &p->tables[i];
        if (t->inserted + t->updated + t->deleted == 0)
            continue;
        printf("    %-18s %.2f rows inserted, %.2f updated (%.2f HOT), %.2f deleted, %.2f scans\n", t->name,
               per(t->inserted, m), per(t->updated, m), per(t->updated_hot, m), per(t->deleted, m),
               per(t->scanned, m));
    }
}

static void statements_text(const struct measurement *m)
{
    if (m->statements_len == 0)
        return;
    printf("  statements, per %s:    calls     rows  us executed\n", unit_name(m));
    for (size_t i = 0; i < m->statements_len; i++) {
        const struct statement_counts *const s = &m->statements[i];
        printf("    %22.3f %8.3f %8.2f  %s\n", per(s->calls, m), per(s->rows, m), s->execution_us / units(m),
               s->text);
    }
}

void ledger_report_text(const struct measurement *plain, const struct measurement *counted)
{
    const struct measurement *const m = plain;
    double const seconds = (double)m->wall_us / 1e6;
    printf("%s, %u in flight: %u workflows, %.0f x %s in %.2f s = %.0f/s; p50 %.1f ms, p99 %.1f ms; load "
           "before: "
           "%.2f\n",
           m->scenario.kind, m->scenario.in_flight, m->scenario.workflows, units(m), unit_name(m), seconds,
           units(m) / seconds, (double)m->p50_us / 1000, (double)m->p99_us / 1000, m->load);
    processes_text(m, counted);
    threads_text(m);
    servers_text(m);
    if (counted != NULL)
        statements_text(counted);
    (void)fflush(stdout);
}

/* ---- JSON: whole counts, to be divided by "units" ---- */

struct count {
    const char *name;
    size_t at; /* of a uint64_t */
};

#define COUNT_OF(type, field, name)                                                                          \
    {                                                                                                        \
        name, offsetof(struct type, field)                                                                   \
    }
static const struct count process_counts[] = {
    COUNT_OF(process_cost, cpu_ns, "cpu_ns"),         COUNT_OF(process_cost, system_ns, "system_ns"),
    COUNT_OF(process_cost, waits, "waits"),           COUNT_OF(process_cost, preemptions, "preemptions"),
    COUNT_OF(process_cost, syscalls, "syscalls"),     COUNT_OF(process_cost, allocations, "allocations"),
    COUNT_OF(process_cost, bytes, "allocated_bytes"), COUNT_OF(process_cost, nats_out, "nats_out"),
    COUNT_OF(process_cost, nats_in, "nats_in")};
static const struct count nats_counts[] = {
    COUNT_OF(nats_counts, in_messages, "in_messages"),   COUNT_OF(nats_counts, in_bytes, "in_bytes"),
    COUNT_OF(nats_counts, out_messages, "out_messages"), COUNT_OF(nats_counts, out_bytes, "out_bytes"),
    COUNT_OF(nats_counts, api_requests, "api_requests"), COUNT_OF(nats_counts, subscribed, "subscribed"),
    COUNT_OF(nats_counts, unsubscribed, "unsubscribed")};
static const struct count table_counts[] = {
    COUNT_OF(table_counts, inserted, "inserted"), COUNT_OF(table_counts, updated, "updated"),
    COUNT_OF(table_counts, updated_hot, "updated_hot"), COUNT_OF(table_counts, deleted, "deleted"),
    COUNT_OF(table_counts, scanned, "scans")};

static void counts_json(struct json *json, const char *name, const void *counted, const struct count *counts,
                        size_t len)
{
    json_key(json, name);
    json_object(json);
    for (size_t i = 0; i < len; i++) {
        uint64_t n;
        memcpy(&n, (const char *)counted + counts[i].at, sizeof n);
        json_member_number(json, counts[i].name, n);
    }
    json_end(json);
}
#define COUNTS(list) list, sizeof list / sizeof list[0]

static void processes_json(struct json *json, const struct measurement *m)
{
    json_key(json, "processes");
    json_object(json);
    for (int role = 0; role < ROLES; role++)
        counts_json(json, json_names[role], &m->cost.roles[role], COUNTS(process_counts));
    json_end(json);
}

static void servers_json(struct json *json, const struct measurement *m)
{
    const struct postgres_counts *const p = &m->cost.postgres;
    counts_json(json, "nats", &m->cost.nats, COUNTS(nats_counts));
    json_key(json, "postgres");
    json_object(json);
    json_member_number(json, "writing_transactions", p->writing);
    json_member_number(json, "wal_bytes", p->wal_bytes);
    json_key(json, "tables");
    json_object(json);
    for (size_t i = 0; m->has_tables && i < p->tables_len; i++)
        counts_json(json, p->tables[i].name, &p->tables[i], COUNTS(table_counts));
    json_end(json);
    json_end(json);
}

static void statements_json(struct json *json, const struct measurement *m)
{
    json_key(json, "statements");
    json_array(json);
    for (size_t i = 0; i < m->statements_len; i++) {
        const struct statement_counts *const s = &m->statements[i];
        json_object(json);
        json_member(json, "text", thole_slice_from(s->text));
        json_member_number(json, "calls", s->calls);
        json_member_number(json, "rows", s->rows);
        json_member_number(json, "execution_us", (uint64_t)s->execution_us);
        json_end(json);
    }
    json_end(json);
}

static void measurement_json(struct json *json, const struct measurement *m, bool counted)
{
    json_object(json);
    json_member(json, "kind", thole_slice_from(m->scenario.kind));
    json_member_number(json, "in_flight", m->scenario.in_flight);
    json_member_number(json, "workflows", m->scenario.workflows);
    json_member(json, "unit", thole_slice_from(unit_name(m)));
    json_member_number(json, "units", (uint64_t)units(m));
    json_member_bool(json, "counted", counted);
    json_member_number(json, "load_percent", (uint64_t)(m->load * 100));
    json_member_number(json, "wall_us", m->wall_us);
    json_member_number(json, "p50_us", m->p50_us);
    json_member_number(json, "p99_us", m->p99_us);
    processes_json(json, m);
    servers_json(json, m);
    statements_json(json, m);
    json_end(json);
}

bool ledger_report_json(const char *path, const struct measurement *plain, const struct measurement *counted,
                        size_t len)
{
    struct json json;
    FILE *const out = fopen(path, "we");
    if (out == NULL)
        return perror(path), false;
    json_to_file(&json, out);
    json_array(&json);
    for (size_t i = 0; i < len; i++) {
        measurement_json(&json, &plain[i], false);
        if (counted != NULL)
            measurement_json(&json, &counted[i], true);
    }
    json_end(&json);
    bool const good = ferror(out) == 0;
    return fclose(out) == 0 && good ? true : (perror(path), false);
}
