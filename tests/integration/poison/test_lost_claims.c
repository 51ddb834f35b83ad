/* Claims whose worker never reported: what their rows say, and what the next claim makes of it. */
#include "clock.h"
#include "mailbox.h"
#include "row_calls.h"
#include "store_fixture.h"

#define ME THOLE_STR("worker-1")
#define OTHER THOLE_STR("worker-2")
#define THIRD THOLE_STR("worker-3")

static const struct claim_policy policy = {.candidate_after = 2, .strikes_max = 2};

static struct postgres *begin(const char *ns, size_t n)
{
    struct postgres *pg = store_partition(ns);
    struct batch *batch = store_batch(1, 0);
    store_add_activities(batch, "i", 1, n);
    CHECK_OK(fixture_apply(pg, batch));
    return pg;
}

static struct claim claim_by(struct postgres *pg, thole_slice worker, uint64_t id, bool isolated)
{
    struct claim claim = store_claim_of("i", id);
    claim.isolated = isolated;
    CHECK_OK(worker_store_claim(pg, worker, &policy, &claim, 1, NULL, &store_err));
    return claim;
}

static const char *row_of(const char *ns, uint64_t id)
{
    return store_sql(ns,
                     "SELECT concat_ws(' ', attempt, coalesce(worker, '-'), coalesce(lost::text, '-'),"
                     " coalesce(strikes::text, '-'), coalesce(lost_worker, '-'))"
                     " FROM worker_queue WHERE activity_id = %d",
                     (int)id);
}

static void not_lost(struct postgres *pg, thole_slice worker, struct claim claim, enum row_state want)
{
    CHECK_OK(worker_store_not_lost(pg, worker, &claim, 1, &store_err));
    CHECK_INT(claim.state, want);
}

/* ---- losses, and claims that are not lost ---- */

static void who_takes_over_from_another_notes_a_loss(void)
{
    struct postgres *pg = begin("takes", 1);
    struct claim claim = claim_by(pg, ME, 1, false);
    CHECK_INT(claim.lost, 0);
    CHECK_STR("claimed", row_of("takes", 1), "1 worker-1 - - -");
    claim = claim_by(pg, OTHER, 1, false);
    CHECK_INT(claim.state, ROW_MINE);
    CHECK_INT(claim.lost, 1);
    CHECK_STR("taken over", row_of("takes", 1), "2 worker-2 {1} - worker-1");
    claim = claim_by(pg, OTHER, 1, false); /* lives, so it has lost nothing */
    CHECK_INT(claim.lost, 1);
    CHECK_STR("by itself", row_of("takes", 1), "3 worker-2 {1} - worker-1");
    CHECK_OK(worker_store_release(pg, OTHER, &claim, 1, &store_err));
    claim = claim_by(pg, THIRD, 1, false);
    CHECK_INT(claim.lost, 1);
    CHECK_STR("given back", row_of("takes", 1), "4 worker-3 {1} - worker-1");
    postgres_close(pg);
}

static void what_is_given_up_is_not_lost(void)
{
    struct postgres *pg = begin("notlost", 1);
    struct claim const first = claim_by(pg, ME, 1, true);
    not_lost(pg, ME, first, ROW_MINE);
    CHECK_STR("in time", row_of("notlost", 1), "1 - - - -");
    not_lost(pg, ME, first, ROW_MISSING); /* again: nothing to change */
    struct claim const second = claim_by(pg, ME, 1, true), third = claim_by(pg, OTHER, 1, true);
    CHECK_INT(third.lost, 1);
    CHECK_STR("lost", row_of("notlost", 1), "3 worker-2 {2} {2} worker-1");
    not_lost(pg, ME, second, ROW_MINE);
    CHECK_STR("somebody has it already", row_of("notlost", 1), "3 worker-2 {} {} worker-1");
    not_lost(pg, ME, third, ROW_MISSING); /* another's */
    CHECK_STR("unharmed", row_of("notlost", 1), "3 worker-2 {} {} worker-1");
    postgres_close(pg);
}

static const char *lease_of(const char *ns)
{
    return store_sql(ns, "SELECT lease_until > clock_timestamp() FROM worker_queue");
}

/* A report says nothing of a later claim of the same worker, also if that has the same attempt: the database
 * has forgotten the first one, or the row was written again. */
static void what_is_given_up_is_one_claim(void)
{
    struct postgres *pg = begin("oneclaim", 1);
    struct claim first = store_claim_of("i", 1), second = first;
    first.lease_ms = second.lease_ms = 60000;
    CHECK_INT(store_claim_one(pg, ME, &first), ROW_MINE);
    (void)store_sql("oneclaim", "UPDATE worker_queue SET attempt = 0, worker = NULL, claimed_at = NULL,"
                                " lease_until = NULL");
    CHECK_INT(store_claim_one(pg, ME, &second), ROW_MINE);
    CHECK_INT(second.attempt, first.attempt);
    not_lost(pg, ME, first, ROW_MISSING);
    CHECK_STR("held", row_of("oneclaim", 1), "1 worker-1 - - -");
    CHECK_STR("its lease lasts", lease_of("oneclaim"), "t");
    CHECK_INT(store_renew_one(pg, ME, &second), ROW_MINE);
    not_lost(pg, ME, first, ROW_MISSING);
    CHECK_STR("its lease still lasts", lease_of("oneclaim"), "t");
    not_lost(pg, ME, second, ROW_MINE);
    CHECK_STR("given up", row_of("oneclaim", 1), "1 - - - -");
    CHECK_STR("free", lease_of("oneclaim"), "");
    postgres_close(pg);
}

/* A worker that takes a claim back which the database has forgotten can give it up, whether or not it gets
 * the answer. */
static void what_is_taken_back_can_be_given_up(void)
{
    static const char *const forgotten[] = {
        "attempt = 0, worker = NULL, claimed_at = NULL, lease_until = NULL",
        "attempt = 1, claimed_at = claimed_at - interval '1 s'", /* back to an older claim of the worker */
        "attempt = 1, worker = 'worker-2', claimed_at = claimed_at - interval '1 s', lease_until = NULL",
    };
    struct postgres *pg = begin("takenback", 1);
    for (size_t i = 0; i < ARRAY_LEN(forgotten); i++) {
        struct claim claim = store_claim_of("i", 1);
        claim.lease_ms = 60000;
        (void)store_sql("takenback", "UPDATE worker_queue SET attempt = 1, worker = NULL, claimed_at = NULL,"
                                     " lease_until = NULL");
        CHECK_INT(store_claim_one(pg, ME, &claim), ROW_MINE);
        struct claim const unheard = claim;
        (void)store_sql("takenback", "UPDATE worker_queue SET %s", forgotten[i]);
        CHECK_INT(store_renew_one(pg, ME, &claim), ROW_MINE);
        CHECK_INT(claim.claimed_us, unheard.claimed_us);
        CHECK_STR("taken back", row_of("takenback", 1), "2 worker-1 - - -");
        not_lost(pg, ME, unheard, ROW_MINE);
        CHECK_STR("given up", row_of("takenback", 1), "2 - - - -");
    }
    postgres_close(pg);
}

/* An older claim was made isolated, and this one was not: its loss does not count as if it had been. */
static void what_is_taken_back_is_as_isolated_as_it_was(void)
{
    static const char *const forgotten[] = {
        "attempt = 1, worker = 'worker-2', claimed_at = claimed_at - interval '1 s', lease_until = NULL",
        "attempt = 1, claimed_at = claimed_at - interval '1 s', lease_until = NULL", /* still its own */
        "attempt = 1, worker = NULL, claimed_at = NULL, lease_until = NULL",
    };
    struct postgres *pg = begin("asisolated", 1);
    for (size_t i = 0; i < ARRAY_LEN(forgotten); i++) {
        (void)store_sql("asisolated", "UPDATE worker_queue SET attempt = 1, worker = NULL, claimed_at = NULL,"
                                      " lost = NULL, strikes = NULL, lease_until = NULL");
        struct claim claim = claim_by(pg, ME, 1, false);
        (void)store_sql("asisolated", "UPDATE worker_queue SET apart = true, %s", forgotten[i]);
        CHECK_INT(store_renew_one(pg, ME, &claim), ROW_MINE);
        (void)claim_by(pg, THIRD, 1, false);
        CHECK_STR("lost in company", row_of("asisolated", 1), "3 worker-3 {2} - worker-1");
        claim = claim_by(pg, THIRD, 1, true);
        CHECK_INT(store_renew_one(pg, THIRD, &claim), ROW_MINE); /* nothing was forgotten */
        (void)claim_by(pg, ME, 1, true);
        CHECK_STR("lost while isolated", row_of("asisolated", 1), "5 worker-1 {2,4} {4} worker-3");
    }
    postgres_close(pg);
}

/* -- poison candidates -- */

static void a_candidate_is_claimed_only_isolated(void)
{
    struct postgres *pg = begin("isolated", 1);
    (void)claim_by(pg, ME, 1, false);
    (void)claim_by(pg, OTHER, 1, false);
    struct claim claim = claim_by(pg, THIRD, 1, false);
    CHECK_INT(claim.state, ROW_CANDIDATE);
    CHECK_STR("untouched", row_of("isolated", 1), "2 worker-2 {1} - worker-1");
    claim = claim_by(pg, OTHER, 1, false); /* of its own worker it is none yet */
    CHECK_INT(claim.state, ROW_MINE);
    claim = claim_by(pg, THIRD, 1, true);
    CHECK_INT(claim.state, ROW_MINE);
    CHECK_INT(claim.lost, 2);
    CHECK_INT(claim.poisoned, false);
    CHECK_STR("isolated", row_of("isolated", 1), "4 worker-3 {1,3} - worker-2");
    postgres_close(pg);
}

/* With the third loss in company it would be three; only those count that were lost while isolated and
 * unsettled.
 */
static void only_what_is_lost_while_isolated_counts(void)
{
    struct postgres *pg = begin("counts", 1);
    for (int i = 0; i < 6; i++)
        (void)claim_by(pg, i % 2 == 0 ? ME : OTHER, 1, i >= 2);
    struct claim claim = claim_by(pg, THIRD, 1, true);
    CHECK_INT(claim.poisoned, true);
    CHECK_INT(claim.lost, 6);
    CHECK_STR("strikes", row_of("counts", 1), "7 worker-3 {1,2,3,4,5,6} {3,4,5,6} worker-2");
    postgres_close(pg);
}

static void what_has_settled_is_lost_for_nothing(void)
{
    struct postgres *pg = begin("settled", 1);
    for (int i = 0; i < 6; i++) {
        thole_slice const worker = i % 2 == 0 ? ME : OTHER;
        struct claim claim = claim_by(pg, worker, 1, i >= 2);
        CHECK_INT(claim.state, ROW_MINE);
        CHECK_INT(claim.poisoned, false);
        claim.settled = true;
        CHECK_OK(worker_store_renew(pg, worker, &claim, 1, &store_err));
    }
    struct claim const claim = claim_by(pg, THIRD, 1, true);
    CHECK_INT(claim.poisoned, false);
    CHECK_STR("no strikes", row_of("settled", 1), "7 worker-3 {1,2,3,4,5,6} - worker-2");
    postgres_close(pg);
}

/* A renewal that the database carries out late, when its worker has lost the row and claimed it again. */
static void what_an_earlier_claim_settled_is_not_this_one(void)
{
    struct postgres *pg = begin("late", 1);
    for (int i = 0; i < 2; i++)
        (void)claim_by(pg, i % 2 == 0 ? ME : OTHER, 1, false);
    struct claim earlier = claim_by(pg, THIRD, 1, true);
    (void)claim_by(pg, OTHER, 1, true);
    struct claim const later = claim_by(pg, THIRD, 1, true);
    earlier.settled = true;
    CHECK_OK(worker_store_renew(pg, THIRD, &earlier, 1, &store_err));
    CHECK_INT(earlier.state, ROW_MINE);
    CHECK_INT(earlier.attempt, later.attempt);
    CHECK_STR("isolated", store_sql("late", "SELECT apart FROM worker_queue"), "t");
    CHECK_OK(worker_store_renew(pg, THIRD, &earlier, 1, &store_err));
    CHECK_STR("settled", store_sql("late", "SELECT apart FROM worker_queue"), "f");
    postgres_close(pg);
}

/* One strike, and then a loss that is none: it is not poisoned, so it is run isolated. */
static void a_loss_in_company_opens_no_way_around(void)
{
    struct postgres *pg = begin("around", 1);
    struct claim claim;
    for (int i = 0; i < 4; i++)
        claim = claim_by(pg, i % 2 == 0 ? ME : OTHER, 1, i >= 2);
    claim.settled = true;
    CHECK_OK(worker_store_renew(pg, OTHER, &claim, 1, &store_err));
    CHECK_INT(claim_by(pg, THIRD, 1, false).state, ROW_CANDIDATE);
    CHECK_STR("untouched", row_of("around", 1), "4 worker-2 {1,2,3} {3} worker-1");
    claim = claim_by(pg, THIRD, 1, true);
    CHECK_INT(claim.state, ROW_MINE);
    CHECK_INT(claim.poisoned, false);
    postgres_close(pg);
}

/* By anybody, at once: it is not run. */
static void what_is_poisoned_need_not_be_isolated(void)
{
    struct postgres *pg = begin("poisoned", 1);
    struct arena arena;
    arena_init(&arena, 1 << 20);
    for (int i = 0; i < 4; i++)
        (void)claim_by(pg, i % 2 == 0 ? ME : OTHER, 1, i >= 2);
    struct claim claim = store_claim_of("i", 1);
    CHECK_OK(worker_store_claim(pg, THIRD, &policy, &claim, 1, &arena, &store_err));
    CHECK_INT(claim.state, ROW_MINE);
    CHECK_INT(claim.poisoned, true);
    CHECK_INT(claim.lost, 4);
    CHECK_INT(thole_slice_equal(claim.lost_worker, OTHER), true);
    claim.poisoned = false; /* and again, when the one that was to say so is lost, too */
    CHECK_OK(worker_store_claim(pg, ME, &policy, &claim, 1, NULL, &store_err));
    CHECK_INT(claim.poisoned, true);
    arena_release(&arena);
    postgres_close(pg);
}

/* ---- the known end of a worker ---- */

static void died(struct postgres *pg, thole_slice worker, const struct claim *blamed, size_t want_rows)
{
    struct worker_death death = {.worker = worker, .report = THOLE_STR("it tripped"), .candidate_after = 2};
    size_t rows = 0;
    if (blamed != NULL) {
        death.blamed = blamed->key;
        death.attempt = blamed->attempt;
    }
    CHECK_OK(worker_store_died(pg, &death, &rows, &store_err));
    CHECK_INT(rows, want_rows);
}

/* The facts that the next claim returns, by whichever worker. */
static struct claim claim_word(struct postgres *pg, thole_slice worker, uint64_t id, const char *want)
{
    struct arena arena;
    char report[64];
    struct claim claim = store_claim_of("i", id);
    arena_init(&arena, 1 << 20);
    claim.isolated = true;
    CHECK_OK(worker_store_claim(pg, worker, &policy, &claim, 1, &arena, &store_err));
    snprintf(report, sizeof report, "%.*s", THOLE_FMT(claim.lost_report));
    CHECK_STR("report", report, want);
    claim.lost_report = claim.lost_worker = (thole_slice){0};
    arena_release(&arena);
    return claim;
}

static void who_is_blamed_is_lost_and_nobody_else(void)
{
    struct postgres *pg = begin("blamed", 3);
    struct claim const guilty = claim_by(pg, ME, 1, false);
    (void)claim_by(pg, ME, 2, false);
    (void)claim_by(pg, OTHER, 3, false);
    died(pg, ME, &guilty, 2);
    CHECK_STR("guilty", row_of("blamed", 1), "1 - {1} - worker-1");
    CHECK_STR("beside", row_of("blamed", 2), "1 - - - -");
    CHECK_STR("another's", row_of("blamed", 3), "1 worker-2 - - -");
    CHECK_INT(claim_word(pg, OTHER, 1, "it tripped").lost, 1);
    CHECK_INT(claim_word(pg, OTHER, 2, "").lost, 0);
    not_lost(pg, ME, guilty, ROW_MISSING); /* statements after the crash report */
    CHECK_INT(claim_word(pg, OTHER, 1, "it tripped").lost, 1);
    died(pg, ME, &guilty, 0); /* too late: others have them */
    postgres_close(pg);
}

/* Another worker's crash report does not concern us: claims that we gave up were not lost. */
static void the_report_of_another_changes_nothing(void)
{
    struct postgres *pg = begin("anothers", 1);
    struct claim const mine = claim_by(pg, ME, 1, false);
    struct claim const theirs = claim_by(pg, OTHER, 1, false);
    died(pg, OTHER, &theirs, 1);
    CHECK_STR("both are lost", row_of("anothers", 1), "2 - {1,2} - worker-2");
    not_lost(pg, ME, mine, ROW_MINE);
    CHECK_STR("theirs is", row_of("anothers", 1), "2 - {2} - worker-2");
    CHECK_INT(claim_word(pg, THIRD, 1, "it tripped").lost, 1);
    postgres_close(pg);
}

/* From its third loss on: as many as when nobody is known to be guilty, however late it kills. */
static void blame_counts_like_losses_while_isolated(void)
{
    static const char *const rows[] = {"1 - {1} - worker-1", "2 - {1,2} - worker-1",
                                       "3 - {1,2,3} {3} worker-1", "4 - {1,2,3,4} {3,4} worker-1"};
    struct postgres *pg = begin("strikes", 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct claim claim = claim_by(pg, ME, 1, i >= 2);
        CHECK_INT(claim.poisoned, false);
        claim.settled = true;
        CHECK_OK(worker_store_renew(pg, ME, &claim, 1, &store_err));
        died(pg, ME, &claim, 1);
        CHECK_STR("row", row_of("strikes", 1), rows[i]);
    }
    CHECK_INT(claim_by(pg, OTHER, 1, false).poisoned, true);
    postgres_close(pg);
}

static void a_death_that_nobody_is_blamed_for(void)
{
    struct postgres *pg = begin("unknown", 1);
    (void)claim_by(pg, ME, 1, false);
    died(pg, ME, NULL, 1);
    CHECK_STR("held", row_of("unknown", 1), "1 worker-1 - - worker-1");
    CHECK_INT(claim_word(pg, OTHER, 1, "it tripped").lost, 1);
    CHECK_INT(claim_word(pg, THIRD, 1, "").lost, 2); /* of this one's end nobody knows anything */
    postgres_close(pg);
}

/* A handler that was given up: its row is another claim's, which is not lost. */
static void what_is_blamed_is_a_claim(void)
{
    struct postgres *pg = begin("given_up", 1);
    struct claim const old = claim_by(pg, ME, 1, false);
    (void)claim_by(pg, ME, 1, false);
    died(pg, ME, &old, 1);
    CHECK_STR("row", row_of("given_up", 1), "2 - - - -");
    postgres_close(pg);
}

/* A claim lost in company may be taken back when the activity runs isolated already. */
static void nothing_is_poisoned_with_fewer(void)
{
    struct postgres *pg = begin("fewer", 1);
    struct claim const first = claim_by(pg, ME, 1, false);
    (void)claim_by(pg, OTHER, 1, true);
    (void)claim_by(pg, ME, 1, true);
    not_lost(pg, ME, first, ROW_MINE);
    struct claim claim = claim_by(pg, OTHER, 1, true);
    CHECK_STR("two, both isolated", row_of("fewer", 1), "4 worker-2 {2,3} {2,3} worker-1");
    CHECK_INT(claim.poisoned, false);
    claim = claim_by(pg, THIRD, 1, false);
    CHECK_INT(claim.state, ROW_CANDIDATE);
    claim = claim_by(pg, THIRD, 1, true);
    CHECK_INT(claim.lost, 3);
    CHECK_INT(claim.poisoned, false);
    claim = claim_by(pg, ME, 1, false);
    CHECK_INT(claim.lost, 4);
    CHECK_INT(claim.poisoned, true);
    postgres_close(pg);
}

/* Each in one statement as it is. */
static void a_claim_of_many_takes_what_it_may(void)
{
    enum { ROWS = 2000 };
    static struct claim claims[ROWS];
    struct postgres *pg = begin("many", ROWS);
    size_t counts[4] = {0};
    for (uint64_t id = 1; id <= 2; id++)
        for (int i = 0; i < 4; i++)
            (void)claim_by(pg, i % 2 == 0 ? ME : OTHER, id, i >= 2 && id == 2);
    for (size_t i = 0; i < ROWS; i++)
        claims[i] = store_claim_of("i", i + 1);
    claims[ROWS - 1].key.activity_id = ROWS + 1;
    CHECK_OK(worker_store_claim(pg, THIRD, &policy, claims, ROWS, NULL, &store_err));
    for (size_t i = 0; i < ROWS; i++)
        counts[claims[i].state]++;
    CHECK_INT(claims[0].state, ROW_CANDIDATE);
    CHECK_INT(claims[1].poisoned, true);
    CHECK_INT(counts[ROW_CANDIDATE], 1);
    CHECK_INT(counts[ROW_MISSING], 1);
    CHECK_INT(counts[ROW_MINE], ROWS - 2);
    postgres_close(pg);
}

/* -- as a worker's loop asks -- */

static void answer(struct row_calls *calls)
{
    uint64_t until_ms;
    struct pollfd socket = row_calls_socket(calls, &until_ms);
    CHECK_INT(poll(&socket, 1, 20000), 1);
    row_calls_continue(calls, socket.revents);
}

static struct worker_row asked(struct row_calls *calls, struct mailbox *answers, enum row_call_kind kind,
                               struct worker_row row)
{
    struct row_call call;
    row_call_init(&call, kind, 1);
    row_call_fill(&call, &row, 1, 0);
    row_calls_send(calls, &call);
    while (mailbox_len(answers) == 0)
        answer(calls);
    CU_ASSERT(mailbox_take_all(answers) == &call.mail.mail);
    CHECK_INT(call.unknown, false);
    struct worker_row changed = call.rows[0];
    changed.key.instance = row.key.instance;
    row_call_release(&call);
    return changed;
}

/* Whatever a row says gets to the machine, and what the machine says gets into the row. */
static void the_machine_hears_of_it(void)
{
    struct postgres *pg = begin("machine", 1);
    struct mailbox answers;
    struct row_calls *calls = NULL;
    struct row_calls_options const options = {.name = "claims",
                                              .pg = fixture_open("machine"),
                                              .worker = THIRD,
                                              .policy = policy,
                                              .answers = &answers};
    struct worker_row row = {.id = 7, .key = {THOLE_STR("i"), 1, 1, 1}};
    mailbox_init(&answers);
    CHECK_OK(row_calls_create(&options, &calls, &store_err));
    (void)store_sql("machine", "UPDATE worker_queue SET try_timeout_ms = 60000");
    for (int i = 0; i < 3; i++)
        (void)claim_by(pg, i % 2 == 0 ? ME : OTHER, 1, i >= 2);
    CHECK_INT(asked(calls, &answers, ROW_CALL_CLAIM, row).state, WORKER_ROW_CANDIDATE);
    row.isolated = true;
    row = asked(calls, &answers, ROW_CALL_CLAIM, row);
    CHECK_INT(row.state, WORKER_ROW_MINE);
    CHECK_INT(row.id, 7);
    CHECK_INT(row.attempt, 4);
    CHECK_INT(row.lost, 3);
    CU_ASSERT(!row.poisoned && !row.expired && row.left_ms > 30000 && row.left_ms <= 60000);
    CHECK_STR("apart", store_sql("machine", "SELECT apart FROM worker_queue"), "t");
    row.settled = true;
    CHECK_INT(asked(calls, &answers, ROW_CALL_RENEW, row).state, WORKER_ROW_MINE);
    CHECK_STR("settled", store_sql("machine", "SELECT apart FROM worker_queue"), "f");
    CHECK_INT(asked(calls, &answers, ROW_CALL_NOT_LOST, row).state, WORKER_ROW_MINE);
    CHECK_STR("given up", store_sql("machine", "SELECT worker IS NULL FROM worker_queue"), "t");
    (void)store_sql("machine", "UPDATE worker_queue SET strikes = '{1,2}', worker = 'somebody',"
                               " deadline_at = clock_timestamp()");
    row = asked(calls, &answers, ROW_CALL_CLAIM, row);
    CU_ASSERT(row.poisoned && row.expired && row.left_ms == 0 && row.lost == 4);
    row_calls_destroy(calls);
    mailbox_release(&answers);
    postgres_close(pg);
}

static const struct thole_test tests[] = {
    {"who takes over from another notes a loss", who_takes_over_from_another_notes_a_loss},
    {"the report of another changes nothing", the_report_of_another_changes_nothing},
    {"what a living worker gives up is not lost", what_is_given_up_is_not_lost},
    {"a report is about one claim", what_is_given_up_is_one_claim},
    {"what is taken back can be given up", what_is_taken_back_can_be_given_up},
    {"what is taken back is as isolated as it was", what_is_taken_back_is_as_isolated_as_it_was},
    {"a poison candidate is claimed only isolated", a_candidate_is_claimed_only_isolated},
    {"only what is lost while isolated counts", only_what_is_lost_while_isolated_counts},
    {"what has settled is lost for nothing", what_has_settled_is_lost_for_nothing},
    {"what an earlier claim settled is not this one", what_an_earlier_claim_settled_is_not_this_one},
    {"a loss in company opens no way around", a_loss_in_company_opens_no_way_around},
    {"what is poisoned need not be isolated", what_is_poisoned_need_not_be_isolated},
    {"who is blamed is lost, and nobody else", who_is_blamed_is_lost_and_nobody_else},
    {"blame counts like losses while isolated", blame_counts_like_losses_while_isolated},
    {"a death that nobody is blamed for", a_death_that_nobody_is_blamed_for},
    {"what is blamed is a claim", what_is_blamed_is_a_claim},
    {"nothing is poisoned with fewer", nothing_is_poisoned_with_fewer},
    {"a claim of many takes what it may", a_claim_of_many_takes_what_it_may},
    {"the machine hears of it", the_machine_hears_of_it},
};

int main(void)
{
    return store_run("lost_claims", tests, ARRAY_LEN(tests));
}
