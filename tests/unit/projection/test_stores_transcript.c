/* All statements of the projections to Postgres, and their use of the answers: stores.transcript has calls
 * ("$ CALL WORD … | CALL … < ANSWER ; ANSWER …"), each followed by the bytes sent and the result. libpq is
 * played. With THOLE_WRITE_TRANSCRIPT=1 in the environment the file is written again, to be read and
 * committed. Answers: wrap_played_libpq.h. Words: KEY=VALUE, or values in the order of the call's arguments;
 * rows have their columns with "/" between them. "-" is empty, @N = N letters, %XX a byte. At the beginning:
 * "fresh": no statement is prepared; "torture": the call is also repeated once for each call of libpq that
 * can fail, which then fails. */
#include "memory.h"
#include "projector_store.h"
#include "query_store.h"
#include "store_batches.h"
#include "store_words.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "worker_store.h"
#include "wrap_played_libpq.h"
#include <inttypes.h>
#include <stdlib.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/projection/stores.transcript"
#define STILL "still "
enum { ROWS_MAX = 16 };

static thole_status on_instance(void *arg, const thole_instance_info *info)
{
    CU_ASSERT_PTR_EQUAL(arg, &line);
    if (!line_shows_row())
        return line_row_status();
    put_key(info->instance, info->execution, info->status);
    put_text("orchestration", info->orchestration);
    put_number("created", info->created_ms);
    put_number("updated", info->updated_ms);
    put_text("detail", info->detail);
    put_number("partition", info->partition);
    put_number("activities", info->open_activities);
    put_number("timers", info->open_timers);
    put_number("version", info->version);
    put_text("custom", info->custom_status);
    put_text("parent", info->parent);
    put_number("turns", info->turns);
    if (info->reason != NULL)
        put_text("reason", thole_slice_from(info->reason));
    put_end();
    return line_row_status();
}

static thole_status on_execution(void *arg, const thole_execution_info *info)
{
    CU_ASSERT_PTR_EQUAL(arg, &line);
    if (!line_shows_row())
        return line_row_status();
    (void)fprintf(line.to, "  - %" PRIu64, info->execution);
    put_number("status", info->status);
    put_number("started", info->started_ms);
    put_number("ended", info->ended_ms);
    put_number("turns", info->turns);
    put_end();
    return line_row_status();
}

static thole_status on_poisoned(void *arg, const thole_poisoned_info *info)
{
    CU_ASSERT_PTR_EQUAL(arg, &line);
    if (!line_shows_row())
        return line_row_status();
    put_key(info->instance, info->execution, info->activity_id);
    put_text("queue", info->queue);
    put_text("activity", info->activity);
    put_number("try", info->try_number);
    put_number("claims", info->claims);
    put_text("worker", info->worker);
    put_text("reason", info->reason);
    put_number("since", info->since_ms);
    put_number("until", info->until_ms);
    put_end();
    return line_row_status();
}

static thole_status on_activity(void *arg, const thole_activity_info *info)
{
    CU_ASSERT_PTR_EQUAL(arg, &line);
    (void)line_shows_row();
    (void)fprintf(line.to, "  - %" PRIu64 " %" PRIu64, info->execution, info->activity_id);
    put_text("queue", info->queue);
    put_text("activity", info->activity);
    put_number("try", info->try_number);
    put_text("worker", info->worker);
    put_number("silent", info->silent_ms);
    put_number("outside", info->outside);
    put_end();
    return line_row_status();
}

static void put_live(const struct live_summary *live)
{
    for (size_t i = 0; i < live->blocked_len; i++) {
        const struct batch_instance *const row = &live->blocked[i];
        put_key(row->instance, row->execution, row->status);
        put_text("orchestration", row->orchestration);
        put_number("created", row->created_ms);
        put_number("updated", row->updated_ms);
        put_text("detail", row->detail);
        put_number("turns", row->turns);
        put_number("seq", row->history_seq);
        put_number("version", row->version);
        put_end();
    }
    for (size_t i = 0; i < live->orchestrations_len; i++) {
        (void)fputs(" ", line.to);
        put_text("orchestration", live->orchestrations[i]);
        put_number("live", live->orchestration_counts[i]);
        put_end();
    }
    (void)fputs(" ", line.to);
    put_number("activities", live->open_activities);
    put_number("deadline", live->deadline_in_ms);
    put_end();
}

/* ---- claims ---- */

/* INSTANCE/EXECUTION/ID/TRY/PARTITION/LEASE/ATTEMPT/CLAIMED/FLAGS/DETAILS/DIGEST; flags: i isolated, s
 * settled, n noted */
static size_t claims_of(size_t first, struct claim claims[ROWS_MAX])
{
    size_t n = 0;
    for (size_t i = first; i < line.len; i++) {
        struct fields const f = fields_of(line.words[i]);
        claims[n++] = (struct claim){.key = {field_text(&f, 0), field_number(&f, 1), field_number(&f, 2),
                                             (uint32_t)field_number(&f, 3)},
                                     .partition = (uint32_t)field_number(&f, 4),
                                     .lease_ms = field_number(&f, 5),
                                     .attempt = field_number(&f, 6),
                                     .claimed_us = field_number(&f, 7),
                                     .isolated = memchr(f.at[8], 'i', f.len[8]) != NULL,
                                     .settled = memchr(f.at[8], 's', f.len[8]) != NULL,
                                     .noted = memchr(f.at[8], 'n', f.len[8]) != NULL,
                                     .details = field_text(&f, 9),
                                     .digest = field_text(&f, 10),
                                     .state = ROW_STOLEN};
    }
    return n;
}

static void put_claims(const struct claim *claims, size_t n)
{
    static const char *const states[] = {"missing", "mine",    "stolen", "candidate",
                                         "held",    "unknown", "forged"};
    for (size_t i = 0; i < n; i++) {
        const struct claim *const c = &claims[i];
        put_key(c->key.instance, c->key.execution, c->key.activity_id);
        (void)fprintf(line.to, " %s", states[c->state]);
        put_number("attempt", c->attempt);
        put_number("claimed", c->claimed_us);
        put_number("expired", c->expired);
        put_number("left", c->left_ms);
        put_number("lost", c->lost);
        put_number("poisoned", c->poisoned);
        put_number("compared", c->compared);
        put_text("orchestration", c->orchestration);
        put_number("version", c->version);
        put_text("worker", c->lost_worker);
        put_text("report", c->lost_report);
        put_text("details", c->details);
        put_end();
    }
}

typedef thole_status claims_fn(struct postgres *, thole_slice, struct claim *, size_t, thole_error *);

static thole_status with_claims(struct postgres *pg, claims_fn *call)
{
    struct claim claims[ROWS_MAX];
    size_t const n = claims_of(1, claims);
    thole_status const status = call(pg, line_text(0), claims, n, &line.err);
    if (status == THOLE_OK)
        put_claims(claims, n);
    return status;
}

static thole_status call_renew(struct postgres *pg)
{
    return with_claims(pg, worker_store_renew);
}

static thole_status call_release(struct postgres *pg)
{
    return with_claims(pg, worker_store_release);
}

static thole_status call_leave(struct postgres *pg)
{
    return with_claims(pg, worker_store_leave);
}

static thole_status call_shelve(struct postgres *pg)
{
    return with_claims(pg, worker_store_shelve);
}

static thole_status call_not_lost(struct postgres *pg)
{
    return with_claims(pg, worker_store_not_lost);
}

static thole_status call_complete(struct postgres *pg)
{
    return with_claims(pg, worker_store_complete_begin);
}

static thole_status call_commit_completions(struct postgres *pg)
{
    return worker_store_complete_commit(pg, &line.err);
}

static thole_status call_roll_back(struct postgres *pg)
{
    worker_store_complete_rollback(pg);
    return THOLE_OK;
}

/* claim WORKER CANDIDATE_AFTER/STRIKES_MAX CLAIM …; "-" instead of a policy: none */
static thole_status claim_in(struct postgres *pg, struct arena *arena)
{
    struct claim claims[ROWS_MAX];
    struct fields const f = fields_of(line.words[1]);
    struct claim_policy const policy = {(uint32_t)field_number(&f, 0), (uint32_t)field_number(&f, 1)};
    size_t const n = claims_of(2, claims);
    thole_status const status = worker_store_claim(pg, line_text(0), line.words[1][0] == '-' ? NULL : &policy,
                                                   claims, n, arena, &line.err);
    if (status == THOLE_OK)
        put_claims(claims, n);
    return status;
}

static thole_status call_claim(struct postgres *pg)
{
    return claim_in(pg, &line.arena);
}

static thole_status call_claim_briefly(struct postgres *pg)
{
    return claim_in(pg, NULL);
}

static thole_status call_died(struct postgres *pg)
{
    size_t rows = 0;
    struct worker_death const death = {.worker = line_text(0),
                                       .report = line_text_of("report"),
                                       .blamed = {line_text_of("instance"), line_number_of("execution"),
                                                  line_number_of("id"), (uint32_t)line_number_of("try")},
                                       .attempt = line_number_of("attempt"),
                                       .candidate_after = (uint32_t)line_number_of("after")};
    thole_status const status = worker_store_died(pg, &death, &rows, &line.err);
    (void)fprintf(line.to, " ");
    put_number("rows", rows);
    put_end();
    return status;
}

/* ---- batches ---- */

static struct batch *batches[LINE_BATCHES_MAX];

static thole_status call_apply(struct postgres *pg)
{
    size_t const batches_len = line_batches(batches);
    thole_status const status = projector_store_apply(pg, batches, batches_len, &line.err);
    for (size_t i = 0; i < batches_len; i++) {
        (void)fprintf(line.to, "  batch of %zu rows, held:", projector_store_rows(batches[i]));
        for (size_t row = 0; row < batches[i]->activities_removed_len; row++)
            (void)fprintf(line.to, " %s", batches[i]->activities_removed[row].held ? "yes" : "no");
        put_end();
        batch_destroy(batches[i]);
    }
    return status;
}

static thole_status call_apart(struct postgres *pg)
{
    struct projector_refused refused = {.rows = 0};
    size_t const batches_len = line_batches(batches);
    CU_ASSERT_EQUAL(batches_len, 1);
    thole_status const status = projector_store_apply_apart(pg, batches[0], &refused, &line.err);
    (void)fprintf(line.to, "  refused %zu %s\n", refused.rows, refused.first);
    for (size_t i = 0; i < batches_len; i++)
        batch_destroy(batches[i]);
    return status;
}

/* ---- the projector's other calls ---- */

/* The owner of the partition that the line names, with as many batches as the line says after "batches". */
static struct rows_owner line_owner(uint64_t epoch)
{
    return (struct rows_owner){(uint32_t)line_number(0), epoch, line_number_of("batches")};
}

static thole_status call_partition(struct postgres *pg)
{
    struct rows_state rows = {.batches = 0};
    uint64_t epoch = 0;
    bool const told = !line_has("untold");
    thole_status const status = projector_store_open(pg, (uint32_t)line_number(0), line_number(1), &rows,
                                                     told ? &epoch : NULL, &line.err);
    (void)fputs(" ", line.to);
    put_number("seq", rows.projected.seq);
    put_number("mark", rows.projected.mark);
    put_number("batches", rows.batches);
    put_number("epoch", epoch);
    put_end();
    return status;
}

static thole_status call_sign(struct postgres *pg)
{
    uint64_t mark = 0;
    thole_status const status =
        projector_store_sign(pg, (uint32_t)line_number(0), line_number(1), line_number(2), &mark, &line.err);
    (void)fputs(" ", line.to);
    put_number("mark", mark);
    put_end();
    return status;
}

static thole_status call_rows_complete(struct postgres *pg)
{
    struct rows_owner const owner = line_owner(line_number(1));
    return projector_store_complete(pg, &owner, &line.err);
}

static thole_status call_reset(struct postgres *pg)
{
    struct rows_state rows = {.batches = 0};
    thole_status const status =
        projector_store_reset(pg, (uint32_t)line_number(0), line_number(1), &rows, &line.err);
    (void)fputs(" ", line.to);
    put_number("batches", rows.batches);
    put_end();
    return status;
}

static thole_status call_timers(struct postgres *pg)
{
    struct batch_timer *timers = NULL;
    size_t n = 0;
    uint64_t next = 0;
    thole_status const status =
        projector_store_timers(pg, (uint32_t)line_number(0), line_number(1), line_number(2), &line.arena,
                               &timers, &n, &next, &line.err);
    put_timers(timers, n);
    (void)fputs(" ", line.to);
    put_number("next", next);
    put_end();
    return status;
}

static thole_status call_live(struct postgres *pg)
{
    struct live_summary live = {0};
    thole_status const status =
        projector_store_live(pg, (uint32_t)line_number(0), &line.arena, &live, &line.err);
    put_live(&live);
    return status;
}

static thole_status call_orphans(struct postgres *pg)
{
    struct rows_owner const owner = line_owner(7);
    struct batch_activity *rows = NULL;
    size_t n = 0;
    uint64_t next = 0;
    thole_status const status = projector_store_orphans(pg, &owner, line_number(1), line_number(2),
                                                        &line.arena, &rows, &n, &next, &line.err);
    put_activities(rows, n, sizeof *rows, NULL);
    (void)fputs(" ", line.to);
    put_number("next", next);
    put_end();
    return status;
}

static thole_status call_shelved(struct postgres *pg)
{
    uint32_t const partitions[] = {(uint32_t)line_number(0), (uint32_t)line_number(1)};
    struct shelved_name *names = NULL;
    size_t n = 0;
    thole_status const status = projector_store_shelved(pg, partitions, ARRAY_LEN(partitions), line_number(2),
                                                        &line.arena, &names, &n, &line.err);
    for (size_t i = 0; i < n; i++) {
        put_number("p", names[i].partition);
        put_text("queue", names[i].queue);
        put_text("activity", names[i].activity);
        put_number("rows", names[i].rows);
        put_end();
    }
    return status;
}

static thole_status call_unshelve(struct postgres *pg)
{
    struct rows_owner const owner = line_owner(7);
    struct shelved_name const names[] = {{.queue = THOLE_STR("q"), .activity = THOLE_STR("new")},
                                         {.queue = THOLE_STR("q2"), .activity = THOLE_STR("act")}};
    struct batch_activity *rows = NULL;
    size_t n = 0;
    thole_status const status = projector_store_unshelve(pg, &owner, names, ARRAY_LEN(names), line_number(1),
                                                         line_number(2), &line.arena, &rows, &n, &line.err);
    put_activities(rows, n, sizeof *rows, NULL);
    return status;
}

static thole_status call_next_deadline(struct postgres *pg)
{
    uint64_t next = 0;
    thole_status const status = projector_store_next_deadline(pg, (uint32_t)line_number(0), &next, &line.err);
    (void)fputs(" ", line.to);
    put_number("next", next);
    put_end();
    return status;
}

static thole_status call_expire(struct postgres *pg)
{
    struct expired_try *rows = NULL;
    size_t n = 0;
    struct rows_owner const owner = line_owner(7);
    thole_status const status = projector_store_expire_begin(pg, &owner, line_number(1), line_number(2),
                                                             &line.arena, &rows, &n, &line.err);
    if (n > 0)
        put_activities(&rows->row, n, sizeof *rows, &rows->attempt);
    return status;
}

static thole_status call_commit_ends(struct postgres *pg)
{
    return projector_store_expire_commit(pg, &line.err);
}

static thole_status call_roll_back_ends(struct postgres *pg)
{
    projector_store_expire_rollback(pg);
    return THOLE_OK;
}

/* ---- reads for people ---- */

static thole_status call_show(struct postgres *pg)
{
    return query_store_show(pg, line_text(0), on_instance, &line, &line.err);
}

static thole_status call_list(struct postgres *pg)
{
    thole_list_filter const filter = {.status = (thole_instance_status)line_number_of("status"),
                                      .orchestration = line_text_of("orchestration"),
                                      .id_prefix = line_text_of("prefix"),
                                      .parent = line_text_of("parent"),
                                      .created_after_ms = line_number_of("after"),
                                      .created_before_ms = line_number_of("before"),
                                      .limit = line_number_of("limit"),
                                      .statuses = (uint32_t)line_number_of("statuses"),
                                      .behind_instance = line_text_of("behind"),
                                      .behind_created_ms = line_number_of("created")};
    return query_store_list(pg, &filter, on_instance, &line, &line.err);
}

static thole_status call_executions(struct postgres *pg)
{
    return query_store_executions(pg, line_text(0), on_execution, &line, &line.err);
}

static thole_status call_poisoned(struct postgres *pg)
{
    thole_poisoned_filter const filter = {.queue = line_text_of("queue"),
                                          .instance = line_text_of("instance"),
                                          .limit = line_number_of("limit"),
                                          .behind_instance = line_text_of("behind"),
                                          .behind_since_ms = line_number_of("since"),
                                          .behind_execution = line_number_of("execution"),
                                          .behind_activity_id = line_number_of("id")};
    return query_store_poisoned(pg, &filter, on_poisoned, &line, &line.err);
}

static thole_status call_activities(struct postgres *pg)
{
    return query_store_activities(pg, line_text(0), on_activity, &line, &line.err);
}

static thole_status call_queue_activities(struct postgres *pg)
{
    struct queue_activity *rows = NULL;
    size_t n = 0;
    thole_status const status =
        query_store_queue_activities(pg, line_text(0), &line.arena, &rows, &n, &line.err);
    for (size_t i = 0; i < n; i++) {
        put_text("queue", rows[i].queue);
        put_text("activity", rows[i].activity);
        put_number("n", rows[i].activities);
        put_end();
    }
    return status;
}

static thole_status call_queues(struct postgres *pg)
{
    struct queue_row *rows = NULL;
    size_t n = 0;
    thole_status const status = query_store_queues(pg, line_text(0), &line.arena, &rows, &n, &line.err);
    for (size_t i = 0; i < n; i++) {
        put_text("queue", rows[i].queue);
        put_text("worker", rows[i].worker);
        put_number("n", rows[i].activities);
        put_number("outside", rows[i].outside);
        put_number("poisoned", rows[i].poisoned);
        put_number("silent", rows[i].silent_ms);
        put_number("oldest", rows[i].oldest_ms);
        put_end();
    }
    return status;
}

/* ---- connections ---- */

static thole_status call_now(struct postgres *pg)
{
    uint64_t now_ms = 0;
    thole_status const status = postgres_now_ms(pg, &now_ms, &line.err);
    (void)fputs(" ", line.to);
    put_number("now", now_ms);
    put_end();
    return status;
}

static thole_status call_migrate(struct postgres *pg)
{
    return postgres_migrate(pg, &line.err);
}

static thole_status call_waiting(struct postgres *pg)
{
    uint64_t waiting_ms = 0;
    thole_status const status = projector_store_waiting(pg, (uint32_t)line_number(0), &waiting_ms, &line.err);
    (void)fputs(" ", line.to);
    put_number("waiting", waiting_ms);
    put_end();
    return status;
}

static thole_status call_grant(struct postgres *pg)
{
    return postgres_grant(pg, &line.err);
}

static thole_status call_listen(struct postgres *pg)
{
    return postgres_listen(pg, &line.err);
}

static void set_connects(void)
{
    static char connects[1024];
    thole_slice const script = line_text_of("connects");
    (void)snprintf(connects, sizeof connects, "%.*s", THOLE_FMT(script));
    for (char *at = connects; *at != '\0'; at++)
        *at = *at == ',' ? ';' : *at;
    played.connects = connects;
}

/* open CONNINFO NAMESPACE KEY=VALUE …; connects=: what becomes of the attempts, with "," between them */
static thole_status call_open(struct postgres *pg)
{
    struct postgres *other = NULL;
    thole_slice const encoding = line_text_of("encoding");
    struct postgres_options const options = {.conninfo =
                                                 line_has("env") ? NULL : (const char *)line_text(0).ptr,
                                             .ns = (const char *)line_text(1).ptr,
                                             .application = (const char *)line_text_of("application").ptr,
                                             .connect_timeout_ms = line_number_of("connect"),
                                             .statement_timeout_ms = line_number_of("statement"),
                                             .idle_in_transaction_ms = line_number_of("idle"),
                                             .synchronous_commit = line_has("sync")};
    set_connects();
    played.version = line_option("version") == NULL ? 140000 : (int)line_number_of("version");
    played.encoding = line_has("unsaid") ? NULL : encoding.len > 0 ? (const char *)encoding.ptr : "UTF8";
    played.needs_password = line_has("password");
    thole_status const status = postgres_open(&options, &other, &line.err);
    (void)fprintf(line.to, "  %s, socket %d, %s\n", other == NULL ? "none" : "made",
                  other == NULL ? 0 : postgres_socket(other), played.connections == 2 ? "open" : "closed");
    postgres_close(other);
    (void)pg;
    return status;
}

/* The connection is gone, and that was reported. */
static thole_status call_lose(struct postgres *pg)
{
    set_connects();
    session_drop(pg);
    return THOLE_OK;
}

/* ---- lines ---- */

static const struct {
    const char *name;
    thole_status (*call)(struct postgres *pg);
} calls[] = {
    {"claim", call_claim},
    {"claim_briefly", call_claim_briefly},
    {"renew", call_renew},
    {"release", call_release},
    {"leave", call_leave},
    {"shelve", call_shelve},
    {"not_lost", call_not_lost},
    {"complete", call_complete},
    {"commit", call_commit_completions},
    {"roll_back", call_roll_back},
    {"died", call_died},
    {"apart", call_apart},
    {"apply", call_apply},
    {"partition", call_partition},
    {"rows_complete", call_rows_complete},
    {"sign", call_sign},
    {"reset", call_reset},
    {"timers", call_timers},
    {"live", call_live},
    {"orphans", call_orphans},
    {"shelved", call_shelved},
    {"unshelve", call_unshelve},
    {"waiting", call_waiting},
    {"next_deadline", call_next_deadline},
    {"expire", call_expire},
    {"commit_ends", call_commit_ends},
    {"roll_back_ends", call_roll_back_ends},
    {"show", call_show},
    {"list", call_list},
    {"executions", call_executions},
    {"poisoned", call_poisoned},
    {"activities", call_activities},
    {"queue_activities", call_queue_activities},
    {"queues", call_queues},
    {"now", call_now},
    {"migrate", call_migrate},
    {"grant", call_grant},
    {"listen", call_listen},
    {"lose", call_lose},
    {"open", call_open},
};

static void begin_arena(void)
{
    arena_init(&line.arena, line_option("room") == NULL ? 1000000 : line_number_of("room"));
}

static thole_status play_call(struct postgres *pg, char *words)
{
    words += strspn(words, " ");
    if (strncmp(words, STILL, strlen(STILL)) == 0)
        words += strlen(STILL);
    char *const name = strsep(&words, " ");
    line_begin(words == NULL ? name + strlen(name) : words);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (strcmp(calls[i].name, name) == 0) {
            begin_arena();
            thole_status const status = calls[i].call(pg);
            arena_release(&line.arena);
            return status;
        }
    CU_FAIL_FATAL("no such call");
    return THOLE_CORRUPT;
}

/* A connection whose statements are prepared, and partitions 1, 2 and 3 open. */
static struct postgres *begin(bool fresh)
{
    static const struct postgres_options options = {
        .conninfo = "host=db", .ns = "shop", .application = "thole-test"};
    struct postgres *pg = NULL;
    struct rows_state rows;
    played_libpq_begin();
    CU_ASSERT_EQUAL_FATAL(postgres_open(&options, &pg, NULL), THOLE_OK);
    if (!fresh)
        memset(pg->prepared, true, sizeof pg->prepared);
    for (uint32_t p = 1; p <= 3 && !fresh; p++) {
        played.answers = "-; ; 0 0 7 0";
        CU_ASSERT_EQUAL_FATAL(projector_store_open(pg, p, 7, &rows, NULL, NULL), THOLE_OK);
    }
    return pg;
}

static void end(struct postgres *pg)
{
    postgres_close(pg);
    CU_ASSERT_EQUAL(played.connections, 0);
    CU_ASSERT_EQUAL(played.results, 0);
    CU_ASSERT_EQUAL(played.converted, 0);
}

/* The calls with "|" between them; they end at the first that fails, unless the next is "still". */
static void play_calls(struct postgres *pg, const char *text, FILE *to)
{
    char *const copy = strdup(text), *at = copy, *answers = strstr(copy, " <");
    thole_status status = THOLE_OK;
    if (answers != NULL)
        *answers = '\0';
    played.answers = answers == NULL ? "" : answers + 2;
    line.to = to;
    for (char *words; (words = strsep(&at, "|")) != NULL;) {
        if (status != THOLE_OK && strstr(words, STILL) == NULL)
            break;
        status = play_call(pg, words);
        if (line.rows > 0)
            (void)fprintf(to, "  %zu rows\n", line.rows);
        (void)fprintf(to, "  = %s%s%s%s%s\n", thole_status_name(status), status == THOLE_OK ? "" : ": ",
                      status == THOLE_OK ? "" : line.err.text, pg->conn == NULL ? ", no connection" : "",
                      pg->in_transaction ? ", in a transaction" : "");
    }
    free(copy);
}

/* Repeats the line; each time another call of libpq fails. Only the end is written. */
static void torture(const char *text, const char *how, FILE *to)
{
    unsigned calls_all = 1;
    for (unsigned i = 0; i <= calls_all; i++) {
        char *said = NULL;
        size_t len = 0;
        FILE *const unread = open_memstream(&said, &len);
        struct postgres *const pg = begin(false);
        played.fail_how = how;
        played.fail_at = i;
        played.calls = 0;
        play_calls(pg, text, unread);
        calls_all = i == 0 ? played.calls : calls_all;
        played.fail_at = 0;
        (void)fclose(unread);
        if (i > 0) {
            char *last = strstr(said, "  = ");
            for (char *next = last; next != NULL; next = strstr(next + 1, "  = "))
                last = next;
            CU_ASSERT_PTR_NOT_NULL_FATAL(last);
            (void)fprintf(to, "  %s %u %s%s", how, i, played.failed, last);
        }
        free(said);
        end(pg);
    }
}

static void play_line(const char *text, FILE *to)
{
    bool const fresh = strncmp(text, "fresh ", 6) == 0, tortured = strncmp(text, "torture ", 8) == 0;
    const char *const words = text + (fresh ? 6 : tortured ? 8 : 0);
    struct postgres *const pg = begin(fresh);
    played.to = to;
    play_calls(pg, words, to);
    played.to = NULL;
    end(pg);
    if (!tortured)
        return;
    torture(words, "lost", to);
    torture(words, "42501", to);
    torture(words, "40P01", to);
    torture(words, "shape", to);
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_nothing_is_left(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

static const struct thole_test tests[] = {
    {"transcript", test_transcript},
    {"nothing is left", test_nothing_is_left},
};
THOLE_TEST_MAIN("stores_transcript", tests)
