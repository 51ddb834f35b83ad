/* The ledger's tables, as text and as JSON. */
#include "json_file.h"
#include "ledger.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const ledger_role_names[ROLES] = {
    "client",           "engine",        "worker", "nats-server", "Postgres: projection",
    "Postgres: worker", "Postgres: rest"};
static const char *const json_names[ROLES] = {"client",          "engine",          "worker",       "nats",
                                              "postgres_engine", "postgres_worker", "postgres_rest"};

static double units(const struct measurement *m)
{
    return (double)m->scenario.workflows * m->scenario.units;
}

static double per(uint64_t n, const struct measurement *m)
{
    return (double)n / units(m);
}

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
        process_row(ledger_role_names[role], &m->cost.roles[role], m, c, counted, role <= ROLE_WORKER);
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
                   ledger_role_names[t->role]);
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

void report_text(const struct measurement *plain, const struct measurement *counted)
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

static void processes_json(struct json *json, const struct measurement *m)
{
    json_key(json, "processes");
    json_object(json);
    for (int role = 0; role < ROLES; role++) {
        const struct process_cost *const p = &m->cost.roles[role];
        json_key(json, json_names[role]);
        json_object(json);
        json_member_number(json, "cpu_ns", p->cpu_ns);
        json_member_number(json, "system_ns", p->system_ns);
        json_member_number(json, "waits", p->waits);
        json_member_number(json, "preemptions", p->preemptions);
        json_member_number(json, "syscalls", p->syscalls);
        json_member_number(json, "allocations", p->allocations);
        json_member_number(json, "allocated_bytes", p->bytes);
        json_member_number(json, "nats_out", p->nats_out);
        json_member_number(json, "nats_in", p->nats_in);
        json_end(json);
    }
    json_end(json);
}

static void servers_json(struct json *json, const struct measurement *m)
{
    const struct nats_counts *const n = &m->cost.nats;
    const struct postgres_counts *const p = &m->cost.postgres;
    json_key(json, "nats");
    json_object(json);
    json_member_number(json, "in_messages", n->in_messages);
    json_member_number(json, "in_bytes", n->in_bytes);
    json_member_number(json, "out_messages", n->out_messages);
    json_member_number(json, "out_bytes", n->out_bytes);
    json_member_number(json, "api_requests", n->api_requests);
    json_member_number(json, "subscribed", n->subscribed);
    json_member_number(json, "unsubscribed", n->unsubscribed);
    json_end(json);
    json_key(json, "postgres");
    json_object(json);
    json_member_number(json, "writing_transactions", p->writing);
    json_member_number(json, "wal_bytes", p->wal_bytes);
    json_key(json, "tables");
    json_object(json);
    for (size_t i = 0; m->has_tables && i < p->tables_len; i++) {
        const struct table_counts *const t = &p->tables[i];
        json_key(json, t->name);
        json_object(json);
        json_member_number(json, "inserted", t->inserted);
        json_member_number(json, "updated", t->updated);
        json_member_number(json, "updated_hot", t->updated_hot);
        json_member_number(json, "deleted", t->deleted);
        json_member_number(json, "scans", t->scanned);
        json_end(json);
    }
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

bool report_json(const char *path, const struct measurement *plain, const struct measurement *counted,
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

/* ---- the gate ---- */

static bool within(const char *what, double value, double limit)
{
    if (value <= limit)
        return true;
    fprintf(stderr, "ledger: %s per activity: %.3f, and %.3f is the limit\n", what, value, limit);
    return false;
}

bool report_gate(const struct measurement *plain, const struct gate *gate)
{
    uint64_t const waits = plain->cost.roles[ROLE_ENGINE].waits + plain->cost.roles[ROLE_WORKER].waits;
    bool good = within("messages into NATS", per(plain->cost.nats.in_messages, plain), gate->nats_in);
    good = within("transactions that write", per(plain->cost.postgres.writing, plain), gate->writing) && good;
    return within("waits of the engine and the worker", per(waits, plain), gate->waits) && good;
}
