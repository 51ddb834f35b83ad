/*
 * A NATS that is empty, older or another one under the same Postgres, and the other way round: at the start
 * of an engine and under a running one. What was lost is never made again in silence: it is refused with what
 * there was, what there is, and the two ways on; and both ways lead on.
 */
#include "audit_stream.h"
#include "bindings.h"
#include "connection.h"
#include "marked_store.h"
#include "message.h"
#include "reader.h"
#include "restored.h"
#include "stack.h"
#include "subject.h"
#include <string.h>

enum { PARTITIONS = 8, WITHIN_MS = 30000, LOST = 2 };

static struct stack stack;
static thole_client *client;
static struct stack_program *engine, *worker;
static struct connection *connection;
static char said[8192]; /* by the last command */
static unsigned orders; /* so many rounds */

/* ---- steps ---- */

static void shell(const char *command)
{
    struct process process = {0};
    process_arg(&process, "/bin/sh");
    process_arg(&process, "-ec");
    process_arg(&process, "cd '%s/nats' && %s", stack.dir, command);
    snprintf(process.log, sizeof process.log, "%s/shell.log", stack.dir);
    CHECK_OK(process_run(&process, &stack.err), &stack.err);
}

/* The command's exit code; what it wrote is `said`. */
static int thole(const char *words)
{
    char line[1024];
    snprintf(line, sizeof line, "%s %s 2>&1", THOLE_COMMAND, words);
    FILE *const from = popen(line, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    said[fread(said, 1, sizeof said - 1, from)] = '\0';
    int const status = pclose(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void nats_with(const char *command)
{
    server_kill9(&stack.nats);
    shell(command);
    CHECK_OK(server_restart(&stack.nats, &stack.err), &stack.err);
}

static void ask_nats(const char *subject, const char *body)
{
    struct buf answer;
    thole_status status = THOLE_UNAVAILABLE;
    buf_init(&answer, 65536);
    for (uint64_t const end = clock_monotonic_ms() + WITHIN_MS;
         status == THOLE_UNAVAILABLE && clock_monotonic_ms() < end;)
        status = connection_request(connection, subject, thole_slice_from(body), &answer, &stack.err);
    CHECK_OK(status, &stack.err);
    CU_ASSERT_PTR_NULL(strstr(buf_cstr(&answer), "\"error\""));
    buf_release(&answer);
}

static void delete_history(void)
{
    ask_nats("$JS.API.STREAM.DELETE.THOLE_default_HIST_2", "");
}

static bool has_stream(const char *name)
{
    struct stream_bounds bounds;
    thole_status status = THOLE_UNAVAILABLE;
    for (uint64_t const end = clock_monotonic_ms() + WITHIN_MS;
         status == THOLE_UNAVAILABLE && clock_monotonic_ms() < end;)
        status = stream_bounds(connection, name, &bounds, &stack.err);
    return status == THOLE_OK;
}

/* As if the logs had had for ten minutes what they have. */
static void ten_minutes_pass(void)
{
    (void)stack_sql(&stack, "UPDATE thole_default.partitions SET kept_seq = projected_seq, kept_mark = "
                            "projected_mark");
}

static const char *identity(void)
{
    static char id[64];
    snprintf(id, sizeof id, "%s", stack_sql(&stack, "SELECT identity FROM thole_default.namespace"));
    return id;
}

/* ---- checks ---- */

/* An order in each partition, and one more: all end, here and now. */
static void serves(void)
{
    orders++;
    for (uint32_t p = 0, n = 0; p < PARTITIONS; n++) {
        char id[64];
        thole_instance_status status;
        snprintf(id, sizeof id, "order-%u-%u", orders, n);
        if (subject_partition(thole_slice_from(id), PARTITIONS) != p)
            continue;
        CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("one"), thole_slice_from(id),
                                    NULL, &stack.err),
                 &stack.err);
        CHECK_STR(id, stack_outcome(client, id, WITHIN_MS, &status), id);
        p++;
    }
}

static void start_engine(void)
{
    engine = stack_program(&stack, "engine", "engine", NULL);
}

static void stop_engine(void)
{
    CU_ASSERT_EQUAL(stack_terminate(engine, 20000), 0);
}

/* The engine ends by itself, with exit code 6 and these words, and has made nothing. */
static void refused(const char *words, const char *stream)
{
    size_t const before = stack_count(engine->log, words);
    int code = -1;
    start_engine();
    for (uint64_t const end = clock_monotonic_ms() + WITHIN_MS; code < 0 && clock_monotonic_ms() < end;) {
        code = stack_ended(engine);
        pause_ms(10);
    }
    CU_ASSERT_EQUAL(code, 6);
    CU_ASSERT_TRUE(stack_count(engine->log, words) > before);
    CU_ASSERT_TRUE(stack_count(engine->log, "Nothing was changed*recover --accept-loss ") > 0);
    if (stream != NULL)
        CU_ASSERT_FALSE(has_stream(stream));
}

/* ---- tests ---- */

/* As with a namespace of an earlier version: neither side has an identity. Nobody's help is needed. */
static void test_a_namespace_without_identity(void)
{
    char before[64];
    serves();
    stop_engine();
    snprintf(before, sizeof before, "%s", identity());
    (void)stack_sql(&stack, "DELETE FROM thole_default.namespace");
    ask_nats("$JS.API.STREAM.PURGE.KV_THOLE_default_CONFIG",
             "{\"filter\":\"$KV.THOLE_default_CONFIG.identity\"}");
    start_engine();
    serves();
    CU_ASSERT_EQUAL(strlen(identity()), 36);
    CU_ASSERT_NOT_EQUAL(strcmp(identity(), before), 0);
    stop_engine();
    snprintf(before, sizeof before, "%s", identity());
    ask_nats("$JS.API.STREAM.PURGE.KV_THOLE_default_CONFIG",
             "{\"filter\":\"$KV.THOLE_default_CONFIG.identity\"}");
    start_engine(); /* a backup of NATS from before the upgrade: it gets the one that Postgres has */
    serves();
    CHECK_STR("the same", identity(), before);
}

static void test_postgres_is_emptied(void)
{
    char before[64];
    snprintf(before, sizeof before, "%s", identity());
    stop_engine();
    (void)stack_sql(&stack, "DROP SCHEMA thole_default CASCADE");
    start_engine();
    CU_ASSERT_TRUE(stack_logged(engine, "Postgres has no rows of namespace default", 1, WITHIN_MS));
    serves();
    CHECK_STR("adopted", identity(), before);
    CHECK_STR("rows", stack_sql(&stack, "SELECT count(*) > 16 FROM thole_default.instances"), "t");
    (void)stack_sql(&stack, "DROP SCHEMA thole_default CASCADE"); /* under the engine */
    serves();
    CHECK_STR("noted again", identity(), before);
}

static void test_postgres_of_another_namespace(void)
{
    static const char other[] = "12345678-1234-4234-8234-123456789abc";
    char mine[64], statement[160];
    snprintf(mine, sizeof mine, "%s", identity());
    stop_engine();
    snprintf(statement, sizeof statement, "UPDATE thole_default.namespace SET identity = '%s'", other);
    (void)stack_sql(&stack, statement);
    refused("of identity 12345678-1234-4234-8234-123456789abc; NATS has 8 partitions*Connect to the right "
            "servers",
            NULL);
    CU_ASSERT_EQUAL(thole("doctor"), 12);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "identity"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, other));
    CU_ASSERT_EQUAL(thole("projections verify"), 4);
    snprintf(statement, sizeof statement, "UPDATE thole_default.namespace SET identity = '%s'", mine);
    (void)stack_sql(&stack, statement);
    start_engine();
    serves();
    CU_ASSERT_EQUAL(thole("doctor"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "the same in NATS and in Postgres"));
}

static void accept_loss(void)
{
    char words[256], before[64];
    snprintf(before, sizeof before, "%s", identity());
    CU_ASSERT_EQUAL(thole("recover --accept-loss 00000000-0000-4000-8000-000000000000 --reason no"), 4);
    CU_ASSERT_EQUAL(thole("recover --accept-loss none"), 2);
    snprintf(words, sizeof words, "recover --accept-loss %s --reason 'the disk is gone' --actor ann", before);
    CU_ASSERT_EQUAL(thole(words), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "given up by ann: the disk is gone"));
    CU_ASSERT_NOT_EQUAL(strcmp(identity(), before), 0);
    CHECK_STR("recorded",
              stack_sql(&stack, "SELECT actor || ', ' || reason FROM thole_default.losses"
                                " ORDER BY accepted_at DESC LIMIT 1"),
              "ann, the disk is gone");
    CU_ASSERT_EQUAL(thole(words), 0); /* nothing is lost any more */
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "nothing was changed"));
    uint64_t sequence = 0;
    CHECK_OK(stream_last_by_subject(connection, "KV_THOLE_default_CONFIG", "$KV.THOLE_default_CONFIG.>",
                                    &sequence, NULL, &stack.err),
             &stack.err);
    struct buf note;
    bool there = false;
    buf_init(&note, 65536);
    for (; sequence > 0 && strstr(buf_cstr(&note), "\"successor\"") == NULL;
         sequence--) { /* marks come after it */
        buf_clear(&note);
        CHECK_OK(stream_message(connection, "KV_THOLE_default_CONFIG", sequence, &there, &note, &stack.err),
                 &stack.err);
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(buf_cstr(&note), "\"by\":\"ann\",\"reason\":\"the disk is gone\""));
    buf_release(&note);
}

static void test_a_history_is_gone_at_the_start(void)
{
    serves();
    stop_engine();
    ten_minutes_pass(); /* stores that were given up are not asked for again */
    delete_history();
    refused("NATS lacks the stream THOLE_default_HIST_2*Restore NATS's data", "THOLE_default_HIST_2");
    CU_ASSERT_EQUAL(thole("recover"), 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "NATS lacks the stream THOLE_default_HIST_2"));
    CU_ASSERT_EQUAL(thole("doctor"), 12);
    accept_loss();
    start_engine();
    serves();
    CHECK_STR("of the others",
              stack_sql(&stack, "SELECT count(DISTINCT p) FROM thole_default.instances WHERE"
                                " instance LIKE 'order-1-%' AND p <> 2"),
              "7");
    CHECK_STR("of this one",
              stack_sql(&stack, "SELECT count(*) FROM thole_default.instances WHERE"
                                " instance LIKE 'order-1-%' AND p = 2"),
              "0");
    CU_ASSERT_EQUAL(thole("doctor"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "by ann: the disk is gone"));
}

static bool partition_is_closed(const char *why, size_t before)
{
    return stack_logged(engine, why, before + 1, WITHIN_MS);
}

/* Of an instance in the partition that has lost its history: a client would look into it first. */
static void post_start(void)
{
    char id[32] = "";
    struct buf subject, body;
    for (unsigned n = 0; n == 0 || subject_partition(thole_slice_from(id), PARTITIONS) != LOST; n++)
        snprintf(id, sizeof id, "unseen-%u", n);
    struct message const start = {.kind = MESSAGE_START,
                                  .instance = thole_slice_from(id),
                                  .orchestration = THOLE_STR("one"),
                                  .request_id = thole_slice_from(id)};
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    CHECK_OK(subject_inbox(&subject, "default", LOST, THOLE_STR("start.one"), start.instance, &stack.err),
             &stack.err);
    CHECK_OK(message_encode(&start, &body), &stack.err);
    CHECK_OK(connection_publish(connection, buf_cstr(&subject), NULL, 0, buf_bytes(&body), &stack.err),
             &stack.err);
    buf_release(&subject);
    buf_release(&body);
}

static thole_status ignore_event(void *arg, const thole_history_event *event)
{
    (void)arg;
    (void)event;
    return THOLE_OK;
}

/* A lost history is not taken for one that never was: no client is told that there is no such instance. */
static void check_answers_of_lost_history(void)
{
    char id[32] = "";
    for (unsigned n = 0; n == 0 || subject_partition(thole_slice_from(id), PARTITIONS) != LOST; n++)
        snprintf(id, sizeof id, "asked-%u", n);
    thole_slice const of = thole_slice_from(id), none = {0};
    thole_outcome outcome;
    for (int call = 0; call < 7; call++) {
        thole_error err = {0};
        thole_status const status =
            call == 0   ? thole_client_start(client, of, THOLE_STR("one"), of, NULL, &err)
            : call == 1 ? thole_client_history(client, of, ignore_event, NULL, &err)
            : call == 2 ? thole_client_cancel(client, of, THOLE_STR("why"), &err)
            : call == 3 ? thole_client_terminate(client, of, THOLE_STR("why"), &err)
            : call == 4 ? thole_client_signal(client, of, THOLE_STR("e"), of, none, NULL, &err)
            : call == 5 ? thole_client_delete(client, of, NULL, NULL, &err)
                        : thole_client_wait(client, of, 2000, &outcome, &err);
        if (status != THOLE_UNAVAILABLE ||
            strstr(err.text, "THOLE_default_HIST_2 is not there: it was lost") == NULL)
            fprintf(stderr, "\n  call %d: %s, %s\n", call, thole_status_name(status), err.text);
        CU_ASSERT_EQUAL(status, THOLE_UNAVAILABLE);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "THOLE_default_HIST_2 is not there: it was lost"));
    }
}

static void test_a_history_is_gone_under_the_engine(void)
{
    static const char why[] = "partition=2 msg=\"closed: stream THOLE_default_HIST_2 is gone*recover";
    size_t const before = stack_count(engine->log, why);
    delete_history();
    post_start(); /* notices with its next append */
    CU_ASSERT_TRUE(partition_is_closed(why, before));
    CU_ASSERT_TRUE(stack_logged(engine, why, before + 3, WITHIN_MS)); /* and tries again */
    CU_ASSERT_FALSE(has_stream("THOLE_default_HIST_2"));
    check_answers_of_lost_history();
    accept_loss(); /* while it runs */
    serves();
}

static void test_an_inbox_is_gone_under_the_engine(void)
{
    static const char why[] = "partition=2 msg=\"closed: stream THOLE_default_IN_2 is gone, and with it "
                              "starts, events and results*were "
                              "accepted*thole recover";
    size_t const before = stack_count(engine->log, why);
    ask_nats("$JS.API.STREAM.DELETE.THOLE_default_IN_2", "");
    CU_ASSERT_TRUE(partition_is_closed(why, before));
    CU_ASSERT_TRUE(stack_logged(engine, why, before + 3, WITHIN_MS)); /* and tries again */
    CU_ASSERT_TRUE(stack_logged(
        engine, "stream THOLE_default_IN_2 is missing; try: nats stream restore*recover", 1, WITHIN_MS));
    CU_ASSERT_FALSE(has_stream("THOLE_default_IN_2"));
    CU_ASSERT_EQUAL(thole("doctor"), 12);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "of 8 partitions do not work: 2 is "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "stream THOLE_default_IN_2 is gone, and with it"));
    accept_loss(); /* while it runs */
    serves();
}

static void test_an_inbox_and_the_key_are_gone_at_the_start(void)
{
    stop_engine();
    ask_nats("$JS.API.STREAM.DELETE.THOLE_default_IN_2", "");
    refused("NATS lacks the stream THOLE_default_IN_2", "THOLE_default_IN_2");
    ask_nats("$JS.API.STREAM.DELETE.KV_THOLE_default_SECRET", "");
    refused("NATS lacks the stream THOLE_default_IN_2 and 1 more", "KV_THOLE_default_SECRET");
    accept_loss();
    start_engine();
    serves();
}

/* A backup that is put back. */
static void test_nats_is_older(void)
{
    static const char why[] = "closed: stream THOLE_default_HIST_*is older than it was*Restore NATS's data";
    static const char back[] = "mv jetstream new && cp -a old jetstream";
    static const char forth[] = "rm -r jetstream && mv new jetstream";
    stop_engine();
    nats_with("cp -a jetstream old");
    start_engine();
    serves();
    stop_engine();
    ten_minutes_pass();
    nats_with(back);
    refused("NATS is older: THOLE_default_HIST_*Restore NATS's data", NULL);
    nats_with(forth); /* restored */
    start_engine();
    serves();
    ten_minutes_pass();
    size_t const before = stack_count(engine->log, why);
    nats_with(back); /* under the engine */
    CU_ASSERT_TRUE(stack_logged(engine, why, before + PARTITIONS, WITHIN_MS));
    nats_with(forth);
    serves();
    /* The missing records had never been in the log for long: as after a server's loss of power. */
    (void)stack_sql(&stack, "UPDATE thole_default.partitions SET kept_seq = 0, kept_mark = 0");
    size_t const cut = stack_count(engine->log, "the log has lost its end");
    nats_with("mv jetstream new && mv old jetstream");
    serves();
    CU_ASSERT_TRUE(
        stack_logged(engine, "the log has lost its end: * records or more", cut + PARTITIONS, WITHIN_MS));
    nats_with("rm -r new");
}

static void test_nats_is_empty(void)
{
    static const char why[] = "closed: the settings of the namespace, bucket CONFIG, are gone";
    serves();
    static const char seen[] =
        "stream KV_THOLE_default_CONFIG is missing"; /* after a look, and what follows it */
    size_t const before = stack_count(engine->log, why), looks = stack_count(engine->log, seen);
    nats_with("rm -r jetstream"); /* under the engine */
    CU_ASSERT_TRUE(stack_logged(engine, why, before + 2, WITHIN_MS));
    CU_ASSERT_TRUE(stack_logged(engine, seen, looks + 1, WITHIN_MS));
    CU_ASSERT_FALSE(has_stream("THOLE_default_HIST_0"));
    CU_ASSERT_FALSE(has_stream("KV_THOLE_default_CONFIG"));
    CU_ASSERT_FALSE(has_stream("THOLE_default_WORK")); /* nor what could be made again */
    stack_kill9(engine);
    refused("Postgres has rows of 8 partitions*NATS has nothing of it*Restore NATS's data",
            "KV_THOLE_default_CONFIG");
    CU_ASSERT_EQUAL(thole("recover"), 4);
    accept_loss();
    start_engine();
    serves();
    CHECK_STR("what there was",
              stack_sql(&stack, "SELECT count(*) FROM thole_default.instances WHERE instance"
                                " LIKE 'order-1-%'"),
              "0");
}

/* ---- stores that not every namespace has ---- */

/* As by a client that does not ask whether it is held. */
static void post_delete(const char *id)
{
    struct buf subject, body;
    struct message const message = {
        .kind = MESSAGE_DELETE, .instance = thole_slice_from(id), .request_id = thole_slice_from(id)};
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    CHECK_OK(subject_inbox(&subject, "default", subject_partition(message.instance, PARTITIONS),
                           THOLE_STR("control.delete"), message.instance, &stack.err),
             &stack.err);
    CHECK_OK(message_encode(&message, &body), &stack.err);
    CHECK_OK(connection_publish(connection, buf_cstr(&subject), NULL, 0, buf_bytes(&body), &stack.err),
             &stack.err);
    buf_release(&subject);
    buf_release(&body);
}

static bool is_there(const char *id)
{
    char statement[160];
    snprintf(statement, sizeof statement,
             "SELECT count(*) FROM thole_default.instances WHERE instance = '%s'", id);
    return strcmp(stack_sql(&stack, statement), "1") == 0;
}

/* Nothing is deleted, by whomever it is asked, and the engine says why. */
static void deletes_nothing(const char *id, const char *why)
{
    static const char unknown[] = "rejected (hold_unknown)*whether the instance is under legal hold";
    char words[128];
    size_t const refused_before = stack_count(engine->log, unknown);
    CU_ASSERT_TRUE(stack_logged(engine, why, 1, 15000));
    snprintf(words, sizeof words, "delete %s", id);
    CU_ASSERT_EQUAL(thole(words), 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "lost are the legal holds"));
    snprintf(words, sizeof words, "delete --force %s", id);
    CU_ASSERT_EQUAL(thole(words), 4);
    post_delete(id);
    CU_ASSERT_TRUE(stack_logged(engine, unknown, refused_before + 1, WITHIN_MS));
    CU_ASSERT_TRUE(is_there(id));
    CU_ASSERT_EQUAL(thole("hold list"), 4);
    CU_ASSERT_EQUAL(thole("hold set other --reason new"), 4);
    CU_ASSERT_EQUAL(thole("hold release order-held --reason new"), 4);
    CU_ASSERT_EQUAL(thole("doctor"), 12);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "stream KV_THOLE_default_HOLDS "));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "thole recover -n default"));
    CU_ASSERT_EQUAL(thole("recover"), 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "lost are the legal holds"));
}

/* An engine says for some seconds what it has seen before. */
static bool is_well(void)
{
    int code = thole("doctor");
    for (uint64_t const end = clock_monotonic_ms() + WITHIN_MS; code != 0 && clock_monotonic_ms() < end;)
        code = thole("doctor");
    return code == 0;
}

static void end_order(const char *id)
{
    thole_instance_status status;
    CHECK_OK(thole_client_start(client, thole_slice_from(id), THOLE_STR("one"), thole_slice_from(id), NULL,
                                &stack.err),
             &stack.err);
    CHECK_STR(id, stack_outcome(client, id, WITHIN_MS, &status), id);
}

/* Engines note how far the holds reach, with their next look. */
static void until_holds_are_noted(uint64_t last)
{
    struct store_mark mark = {.last = 0};
    uint64_t const end = clock_monotonic_ms() + WITHIN_MS;
    while (mark.last < last && clock_monotonic_ms() < end) {
        pause_ms(100);
        CHECK_OK(store_mark_read(connection, "default", STORE_HOLDS, &mark, &stack.err), &stack.err);
    }
    CU_ASSERT_EQUAL(mark.last, last);
}

/* With it legal holds would be forgotten: nothing may be deleted until people have decided. */
static void test_legal_holds_are_gone(void)
{
    static const char bucket[] = "KV_THOLE_default_HOLDS";
    end_order("order-held");
    end_order("order-free");
    end_order("order-last");
    CU_ASSERT_EQUAL(thole("delete order-free"), 0); /* there never was a hold */
    CU_ASSERT_EQUAL(thole("hold set order-held --reason 'case 4711'"), 0);
    CU_ASSERT_EQUAL(thole("hold set order-last --reason 'case 4712'"), 0);
    CU_ASSERT_EQUAL(thole("hold release order-last --reason 'no case'"), 0);
    CU_ASSERT_EQUAL(thole("delete order-held"), 4);
    until_holds_are_noted(3);
    ask_nats("$JS.API.STREAM.DELETE.KV_THOLE_default_HOLDS", ""); /* under the engine */
    deletes_nothing("order-held",
                    "stream KV_THOLE_default_HOLDS is missing; try: nats stream restore*thole recover");
    CU_ASSERT_FALSE(has_stream(bucket));
    stack_kill9(engine);
    start_engine(); /* serves all but deletions */
    serves();
    deletes_nothing("order-last", "stream KV_THOLE_default_HOLDS is missing");
    CU_ASSERT_FALSE(has_stream(bucket));
}

/* As by people who make it again by hand. */
static void test_legal_holds_are_others(void)
{
    ask_nats("$JS.API.STREAM.CREATE.KV_THOLE_default_HOLDS",
             "{\"name\":\"KV_THOLE_default_HOLDS\",\"subjects\":[\"$KV.THOLE_default_HOLDS.>\"],\"discard\":"
             "\"new\",\"max_msgs_per_subject\":64,\"deny_delete\":true,\"deny_purge\":true,\"allow_direct\":"
             "true}");
    deletes_nothing("order-held",
                    "stream KV_THOLE_default_HOLDS has last message 0, but 3 or a later one is needed");
    accept_loss(); /* while the engine runs */
    CHECK_STR("what was lost",
              stack_sql(&stack,
                        "SELECT what LIKE '%HOLDS%lost are the legal holds%' FROM thole_default.losses"
                        " ORDER BY accepted_at DESC LIMIT 1"),
              "t");
    pause_ms(5000); /* HOLDS_AWAY_MS */
    CU_ASSERT_EQUAL(thole("delete order-held"), 0);
    CU_ASSERT_FALSE(is_there("order-held"));
    CU_ASSERT_EQUAL(thole("hold set order-last --reason again"), 0);
    CU_ASSERT_EQUAL(thole("delete order-last"), 4);
    CU_ASSERT_EQUAL(thole("hold release order-last --reason again"), 0);
    CU_ASSERT_EQUAL(thole("delete order-last"), 0);
    serves();
    CU_ASSERT_TRUE(is_well());
}

static void test_other_stores_are_gone(void)
{
    static const char *const streams[] = {"KV_THOLE_default_BINDINGS", "THOLE_default_AUDIT",
                                          "THOLE_default_RESTORED"};
    char text[160];
    CHECK_OK(bindings_require(connection, "default", &stack.err), &stack.err);
    CHECK_OK(audit_stream_require(connection, "default", &stack.err), &stack.err);
    CHECK_OK(restored_require(connection, "default", &stack.err), &stack.err);
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        snprintf(text, sizeof text, "$JS.API.STREAM.DELETE.%s", streams[i]);
        ask_nats(text, "");
    }
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        snprintf(text, sizeof text, "stream %s is missing; try: nats stream restore*thole recover",
                 streams[i]);
        CU_ASSERT_TRUE(stack_logged(engine, text, 1, 15000));
    }
    CU_ASSERT_EQUAL(bindings_require(connection, "default", &stack.err), THOLE_CONFLICT);
    CU_ASSERT_EQUAL(audit_stream_require(connection, "default", &stack.err), THOLE_CONFLICT);
    CU_ASSERT_EQUAL(restored_require(connection, "default", &stack.err), THOLE_CONFLICT);
    CU_ASSERT_EQUAL(thole("bind list"), 4);
    CU_ASSERT_EQUAL(thole("doctor"), 12);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "lost are the signed checkpoints of the histories"));
    CU_ASSERT_EQUAL(thole("history order-free"), 4); /* was deleted, and may have been restored */
    CU_ASSERT_EQUAL(thole("recover"), 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "BINDINGS was there and is gone; lost are the rules"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "and 2 more"));
    serves();
    accept_loss();
    CHECK_STR("what was lost",
              stack_sql(&stack, "SELECT what LIKE '%BINDINGS%AUDIT%RESTORED%' FROM thole_default.losses"
                                " ORDER BY accepted_at DESC LIMIT 1"),
              "t");
    CU_ASSERT_EQUAL(thole("bind list"), 0);
    CU_ASSERT_EQUAL(thole("history order-free"), 3);
    serves();
    CU_ASSERT_TRUE(is_well());
}

static const struct thole_test tests[] = {
    {"a_namespace_without_identity", test_a_namespace_without_identity},
    {"postgres_is_emptied", test_postgres_is_emptied},
    {"postgres_of_another_namespace", test_postgres_of_another_namespace},
    {"a_history_is_gone_at_the_start", test_a_history_is_gone_at_the_start},
    {"a_history_is_gone_under_the_engine", test_a_history_is_gone_under_the_engine},
    {"an_inbox_is_gone_under_the_engine", test_an_inbox_is_gone_under_the_engine},
    {"an_inbox_and_the_key_are_gone_at_the_start", test_an_inbox_and_the_key_are_gone_at_the_start},
    {"legal_holds_are_gone", test_legal_holds_are_gone},
    {"legal_holds_are_others", test_legal_holds_are_others},
    {"other_stores_are_gone", test_other_stores_are_gone},
    {"nats_is_older", test_nats_is_older},
    {"nats_is_empty", test_nats_is_empty},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    connection = stack_connect(&stack);
    start_engine();
    client = stack_client(&stack);
    worker = stack_program(&stack, "worker", "worker", NULL);
    int const failed = thole_run_suite("lost_stores", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    connection_close(connection);
    stack_stop(&stack);
    return failed;
}
