/* thole audit over the histories of real engines: kills, deletions, prunings; then a log that is forged in
 * the stream in one way after the other, each of which is named. */
#include "api.h"
#include "audit_stream.h"
#include "connection.h"
#include "event.h"
#include "link.h"
#include "marked_store.h"
#include "stack.h"
#include "subject.h"
#include "thole_cunit.h"
#include "topology.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WAIT_MS = 20000, INSTANCES = 12, RECORDS_MAX = 1000 };

static struct stack stack;
static thole_client *client;
static struct connection *connection;

/* ---- the command ---- */

static void check(const char *line, int code, const char *text)
{
    char want[32];
    const char *got = stack_shell(line);
    (void)snprintf(want, sizeof want, "%d: ", code);
    bool const good = strncmp(got, want, strlen(want)) == 0 && strstr(got, text) != NULL;
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [%s]\n    got  %s\n    want %s…%s\n", line, got, want, text);
}

/* ---- histories ---- */

static void run_instances(const char *prefix)
{
    stack_run_many(&stack, client, prefix, INSTANCES, WAIT_MS);
}

/* Two with more records than the others. */
static void run_long(void)
{
    static const char *const ids[] = {"w-1", "w-2"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        thole_outcome outcome;
        thole_slice const id = thole_slice_from(ids[i]);
        CHECK_OK(thole_client_start(client, id, THOLE_STR("halts"), THOLE_STR("in"), NULL, &stack.err),
                 &stack.err);
        CHECK_OK(thole_client_signal(client, id, THOLE_STR("go"), THOLE_STR("in"), THOLE_STR(""), NULL,
                                     &stack.err),
                 &stack.err);
        CHECK_OK(thole_client_wait(client, id, WAIT_MS, &outcome, &stack.err), &stack.err);
        thole_outcome_release(&outcome);
    }
}

static struct stack_program *start_engine(void)
{
    return stack_program_with(&stack, "program_verbs", "verbs", "run", "--partitions", "1", NULL);
}

static void test_histories(void)
{
    struct stack_program *verbs = start_engine();
    client = stack_client(&stack);
    connection = stack_connect(&stack);
    run_instances("a");
    check("$T audit keygen audit.example.com --key $D/key >$D/pub; stat -c %a $D/key; cat $D/pub", 0,
          "600\naudit.example.com+");
    check("$T audit keygen audit.example.com --key $D/key 2>&1", 2, "is there already");
    check("$T audit keygen 'audit example' --key $D/other 2>&1", 2, "the name of a key is");
    check("$T audit checkpoint --key $D/pub 2>&1", 2, "is a public key");
    check("$T audit checkpoint --key $D/none 2>&1", 3, "cannot read");
    check("chmod o+r $D/key; $T audit checkpoint --key $D/key 2>&1; chmod o-r $D/key", 0,
          "key has a key that signs, and everybody on this machine may read it: chmod o-r\n");
    check("$T audit checkpoint --key $D/key 2>&1 | grep -c warning", 1, "0");
    stack_kill9(verbs);
    verbs = start_engine();
    run_instances("b");
    run_long();
    CU_ASSERT_EQUAL(stack_terminate(verbs, WAIT_MS), 0);
    check("$T audit verify --all --key $D/pub", 0, "whole");
    check("$T audit checkpoint --key $D/key -o json", 0, "\"new\":true");
    check("$T audit checkpoint --key $D/key -o json", 0, "\"new\":false");
    check("$T audit verify --all --key $D/pub", 0, ", 2 checkpoints, the last of ");
    check("$T audit verify --all --key \"$(cat $D/pub)\" -o json", 0, "\"checkpoints\":2,\"signed\":");
    check("$T audit verify a-1 b-2 --key $D/pub", 0, "partition 0 b-2: ");
    check("$T audit keygen other.example.com --key $D/other >$D/other.pub; $T audit verify --all --key "
          "$D/other.pub",
          5, "there is no checkpoint of this log by --key");
}

/* ---- the stream, written from scratch ---- */

struct stored {
    char subject[SUBJECT_BYTES_MAX];
    uint8_t *bytes;
    size_t len;
};
static struct stored records[RECORDS_MAX + 8], kept[RECORDS_MAX + 8];
static size_t records_len, kept_len;

static thole_status take(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct stored *to = &kept[kept_len];
    (void)arg, (void)sequence;
    CU_ASSERT_FATAL(kept_len < RECORDS_MAX);
    (void)snprintf(to->subject, sizeof to->subject, "%.*s", THOLE_FMT(subject));
    to->bytes = malloc(body.len + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(to->bytes);
    memcpy(to->bytes, body.ptr, body.len);
    to->len = body.len;
    kept_len++;
    return THOLE_OK;
}

static void read_stream(const char *stream)
{
    struct stream_bounds bounds;
    kept_len = 0;
    CHECK_OK(stream_bounds(connection, stream, &bounds, &stack.err), &stack.err);
    CHECK_OK(stream_read(connection, stream, NULL, 1, bounds.last, take, NULL, &stack.err), &stack.err);
}

static void make_stream(void)
{
    struct topology topology;
    CHECK_OK(
        topology_ensure(connection,
                        &(struct topology_options){.ns = "default", .partitions = 1, .accept_loss = true},
                        &topology, &stack.err),
        &stack.err);
}

/* All records, at sequences from 1 on. */
static void put_stored(const struct stored *stored, size_t n)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    for (size_t i = 0; i < n; i++)
        CHECK_OK(connection_request_with(connection, stored[i].subject, NULL, 0,
                                         (thole_slice){stored[i].bytes, stored[i].len}, &answer, &stack.err),
                 &stack.err);
    buf_release(&answer);
}

static void write_stream(void)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    CHECK_OK(api_call(connection, "STREAM.DELETE", "THOLE_default_HIST_0", THOLE_STR(""), &answer, NULL,
                      &stack.err),
             &stack.err);
    make_stream();
    put_stored(records, records_len);
    buf_release(&answer);
}

static void as_it_was(void)
{
    records_len = kept_len;
    memcpy(records, kept, sizeof records);
}

/* ---- forgeries; each begins with the log as it was ---- */

static uint8_t changed[RECORD_BYTES_MAX / 8];

static void f_nothing(void)
{
}
static void f_flip(void)
{
    memcpy(changed, records[9].bytes, records[9].len);
    changed[records[9].len - 1] ^= 1;
    records[9].bytes = changed;
}
static void f_cut(void)
{
    records_len -= 1;
}
static void f_cut_much(void)
{
    records_len /= 2;
}
static void f_take_out(void)
{
    memmove(&records[9], &records[10], (records_len - 10) * sizeof records[0]);
    records_len--;
}
static void f_put_in(void)
{
    memmove(&records[10], &records[9], (records_len - 9) * sizeof records[0]);
    records[9] = records[4];
    records_len++;
}
static void f_swap(void)
{
    struct stored const first = records[9];
    records[9] = records[10];
    records[10] = first;
}
static void f_append(void)
{
    records[records_len++] = records[4];
}
static void f_garbage(void)
{
    memcpy(changed, "garbage", 7);
    records[9].bytes = changed;
    records[9].len = 7;
}
static void f_subject(void)
{
    (void)snprintf(records[9].subject, sizeof records[9].subject, "thole.default.hist.0.other.1");
}
static void f_beginning(void)
{
    memmove(&records[0], &records[5], (records_len - 5) * sizeof records[0]);
    records_len -= 5;
}
static void f_all(void)
{
    records_len = 0;
}

static void change(struct stored *record, size_t at)
{
    memcpy(changed, record->bytes, record->len);
    changed[at] ^= 1;
    record->bytes = changed;
}
static void f_last(void)
{
    change(&records[records_len - 1], records[records_len - 1].len - 1);
}
static void f_last_garbage(void)
{
    memcpy(changed, "garbage", 7);
    records[records_len - 1].bytes = changed;
    records[records_len - 1].len = 7;
}
static void f_strip(void) /* previous: tag, length, 32 bytes */
{
    static const uint8_t tag[] = {0x82, 0x01, 0x20};
    struct stored *record = &records[9];
    const uint8_t *at = memmem(record->bytes, record->len, tag, sizeof tag);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    size_t const before = (size_t)(at - record->bytes);
    memcpy(changed, record->bytes, before);
    memcpy(changed + before, at + 35, record->len - before - 35);
    record->bytes = changed;
    record->len -= 35;
}
static void f_subjects(void)
{
    char subject[SUBJECT_BYTES_MAX];
    memcpy(subject, records[9].subject, sizeof subject);
    memcpy(records[9].subject, records[10].subject, sizeof subject);
    memcpy(records[10].subject, subject, sizeof subject);
}
static void f_twice(void)
{
    memmove(&records[10], &records[9], (records_len - 9) * sizeof records[0]);
    records_len++;
}
static void f_reverse(void)
{
    for (size_t i = 0; i < 3; i++) {
        struct stored const first = records[9 + i];
        records[9 + i] = records[14 - i];
        records[14 - i] = first;
    }
}
static void f_take_out_all(const char *subject, size_t from)
{
    size_t to = from;
    for (size_t i = from; i < records_len; i++)
        if (strncmp(records[i].subject, subject, strlen(subject)) != 0)
            records[to++] = records[i];
    CU_ASSERT(to < records_len);
    records_len = to;
}
static void f_opening(void)
{
    f_take_out_all("thole.default.ctl.0.epoch", 1);
}
static void f_instance(void)
{
    f_take_out_all("thole.default.hist.0.a-5.", 0);
}
static void f_rename(void) /* an instance, throughout */
{
    static uint8_t renamed[8][RECORD_BYTES_MAX / 8];
    size_t n = 0;
    for (size_t i = 0; i < records_len && n < 8; i++)
        if (strncmp(records[i].subject, "thole.default.hist.0.a-5.", 25) == 0) {
            memcpy(renamed[n], records[i].bytes, records[i].len);
            uint8_t *at = memmem(renamed[n], records[i].len, "a-5", 3);
            CU_ASSERT_PTR_NOT_NULL_FATAL(at);
            memcpy(at, "z-5", 3);
            records[i].bytes = renamed[n++];
            records[i].subject[21] = 'z';
        }
}

static const struct forgery {
    const char *name;
    void (*forge)(void);
    int code;
    const char *text;
} forgeries[] = {
    {"nothing", f_nothing, 0, "whole"},
    {"a bit of a record", f_flip, 5, "changed     partition 0 #10"},
    {"the last record is cut off", f_cut, 5, "truncated   partition 0 #"},
    {"half of it is cut off", f_cut_much, 5, "truncated   partition 0 #"},
    {"a record is taken out", f_take_out, 5, "missing     partition 0 #10"},
    {"a record is put in", f_put_in, 5, "added       partition 0 #10"},
    {"two have changed places", f_swap, 5, "reordered   partition 0 #10"},
    {"a record is repeated at the end", f_append, 5, "added       partition 0 #"},
    {"garbage", f_garbage, 5, "unreadable  partition 0 #10"},
    {"another subject", f_subject, 5, "replayed    partition 0 #10"},
    {"the beginning is cut off", f_beginning, 5, "truncated   partition 0 #1"},
    {"a bit of the last record", f_last, 5, "changed     partition 0 #"},
    {"the last record is garbage", f_last_garbage, 5, "unreadable  partition 0 #"},
    {"a hash is taken out", f_strip, 5, "changed     partition 0 #10"},
    {"two subjects have changed places", f_subjects, 5, "replayed    partition 0 #10"},
    {"a record is there twice", f_twice, 5, "added       partition 0 #10"},
    {"six stand in the reverse order", f_reverse, 5, "reordered   partition 0 #10"},
    {"the opening of an epoch is taken out", f_opening, 5, "missing     partition 0"},
    {"an instance is taken out", f_instance, 5, "missing     partition 0"},
    {"an instance has another name", f_rename, 5, "changed     partition 0 #"},
    {"all is gone", f_all, 5, "truncated   partition 0"},
};

/* Before any deletion: a log with holes cannot be written from scratch. */
static void test_forgeries(void)
{
    read_stream("THOLE_default_HIST_0");
    for (size_t i = 0; i < ARRAY_LEN(forgeries); i++) {
        as_it_was();
        forgeries[i].forge();
        write_stream();
        check("$T audit verify --all --key $D/pub", forgeries[i].code, forgeries[i].text);
    }
    check("$T audit checkpoint --key $D/key 2>&1", 5, "gets no checkpoint");
    as_it_was();
    write_stream();
    for (size_t i = 0; i < kept_len; i++)
        free(kept[i].bytes);
}

/* ---- files ---- */

static const struct file_forgery {
    const char *name, *found, *found_with_key; /* NULL: as without */
} file_forgeries[] = {
    {"nothing", "", ""},
    {"flip", "changed ", NULL},
    {"flip_last", "", "changed "},
    {"hash", "changed ", NULL},
    {"garbage", "unreadable ", NULL},
    {"cut_off", "", "truncated "},
    {"beginning", "truncated ", NULL},
    {"take_out", "missing ", NULL},
    {"swap", "reordered ", NULL},
    {"twice", "reordered ", NULL},
    {"other_record", "replayed ", NULL},
    {"moved", "reordered ", NULL},
    {"rename", "replayed ", NULL},
    {"name", "replayed ", NULL},
    {"namespace", "replayed ", NULL},
    {"partition", "replayed ", NULL},
    {"exchange", "replayed ", NULL},
    {"payload", "replayed ", NULL},
    {"all_but_one", "", "truncated "},
    {"again", "reordered ", NULL},
    {"unproved", "", NULL},
};

/* The output of `thole export`, changed together with all counts in it, in both forms. */
static void forge_file(const struct file_forgery *forgery, const char *form, const char *file,
                       const char *options, const char *found)
{
    char line[512];
    (void)snprintf(line, sizeof line,
                   "python3 " THOLE_SOURCE_DIR "/tests/integration/audit/forge_export.py %s %s "
                   "<$D/%s >$D/forged && $T audit verify --file $D/forged %s 2>&1",
                   forgery->name, form, file, options);
    check(line, found[0] == '\0' ? 0 : 5, found);
}

static void test_files(void)
{
    static const char *const forms[] = {"binary", "jsonl"};
    check("$T export --all --form binary --to $D/export", 0, "");
    for (size_t i = 0; i < ARRAY_LEN(file_forgeries); i++)
        for (size_t form = 0; form < ARRAY_LEN(forms); form++) {
            const struct file_forgery *const forgery = &file_forgeries[i];
            forge_file(forgery, forms[form], "export", "", forgery->found);
            if (forgery->found_with_key != NULL)
                forge_file(forgery, forms[form], "export", "--key $D/pub", forgery->found_with_key);
        }
}

/* The file has the checkpoints: no server is asked. */
static void test_sealed_files(void)
{
    static const char *const forms[] = {"binary", "jsonl"};
    check("$T export --all --to $D/sealed --key $D/pub", 0, " of the records are in signed checkpoints");
    check("$T export --all --to $D/other_sealed --key $D/other.pub 2>&1", 13, "have no checkpoint by --key");
    check("$T audit verify --file $D/sealed --key $D/other.pub --nats nats://127.0.0.1:1", 5,
          "its checkpoint is not signed by --key");
    check("$T audit verify --file $D/export --key $D/pub --nats nats://127.0.0.1:1 --timeout 1s 2>&1", 6,
          "no NATS server"); /* the file has none */
    check("$T audit verify --file $D/none --key $D/pub --nats nats://127.0.0.1:1 2>&1", 3, "cannot read");
    for (size_t i = 0; i < ARRAY_LEN(file_forgeries); i++)
        for (size_t form = 0; form < ARRAY_LEN(forms); form++)
            forge_file(&file_forgeries[i], forms[form], "sealed", "--key $D/pub --nats nats://127.0.0.1:1",
                       i == 0                               ? ""
                       : file_forgeries[i].found[0] == '\0' ? "checkpoint "
                                                            : file_forgeries[i].found);
    check("$T audit verify --file $D/sealed --key $D/pub --nats nats://127.0.0.1:1 | grep -c 'only'", 1, "0");
}

/* An export that was interrupted goes on, and records that are newer than the checkpoints are told of. */
static void test_sealed_later(void)
{
    struct stack_program *verbs = start_engine();
    run_instances("d");
    CU_ASSERT_EQUAL(stack_terminate(verbs, WAIT_MS), 0);
    check("$T export --prefix d-1 --to $D/late --key $D/pub", 0,
          "0 of the records are in signed checkpoints");
    check("$T audit verify --file $D/late --key $D/pub --nats nats://127.0.0.1:1", 0,
          "only 0 of them in signed checkpoints of the file");
    check("$T audit checkpoint --key $D/key", 0, "new");
    check("$T export --all --to $D/sealed2 --key $D/pub && $T audit verify --file $D/sealed2 --key $D/pub "
          "--nats "
          "nats://127.0.0.1:1 | grep -c 'only'",
          1, "0");
    check("head -c $(($(stat -c %s $D/sealed2) / 3)) $D/sealed2 >$D/sealed3.part; $T export --all --to "
          "$D/sealed3 "
          "--key $D/pub 2>&1",
          0, "going on behind them");
    check("$T audit verify --file $D/sealed3 --key $D/pub --nats nats://127.0.0.1:1 | grep -c 'only'", 1,
          "0");
}

/* ---- kept checkpoints ---- */

static struct stored published[64];
static size_t published_len;

static thole_status take_published(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct stored *const to = &published[published_len];
    (void)arg, (void)sequence;
    CU_ASSERT_FATAL(published_len < ARRAY_LEN(published));
    (void)snprintf(to->subject, sizeof to->subject, "%.*s", THOLE_FMT(delivery->subject));
    to->bytes = malloc(delivery->body.len + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(to->bytes);
    memcpy(to->bytes, delivery->body.ptr, delivery->body.len);
    to->len = delivery->body.len;
    published_len++;
    return THOLE_OK;
}

static void write_published(size_t n)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    CHECK_OK(api_call(connection, "STREAM.DELETE", "THOLE_default_AUDIT", THOLE_STR(""), &answer, NULL,
                      &stack.err),
             &stack.err);
    CHECK_OK(api_call(connection, "STREAM.PURGE",
                      "KV_THOLE_default_CONFIG", /* nobody knows that it was there */
                      THOLE_STR("{\"filter\":\"$KV.THOLE_default_CONFIG.store_audit\"}"), &answer, NULL,
                      &stack.err),
             &stack.err);
    CHECK_OK(marked_store_set_up(connection, "default", STORE_AUDIT, 1, &stack.err), &stack.err);
    put_stored(published, n);
    buf_release(&answer);
}

/* A user who may change both streams puts them back to an earlier state, or removes them. */
static void test_kept(void)
{
    size_t first = 0;
    check("$T audit keep --key $D/pub 2>&1", 2, "--dir is missing");
    check("$T audit verify --all --key $D/pub --dir $D/held 2>&1", 2, "has no checkpoint");
    check("$T audit keep --key $D/pub --dir $D/held", 0, "new");
    check("$T audit keep --key $D/pub --dir $D/held -o json", 0, "\"new\":false");
    check("$T audit verify --all --key $D/pub --dir $D/held", 0, ", 3 checkpoints, the last of ");
    check("cp -r $D/held $D/held2; $T audit keep --key $D/other.pub --dir $D/held2 2>&1", 5,
          "is not signed by --key: what is kept of partition 0 stays");
    check("$T audit verify --all --key $D/other.pub,$D/pub --dir $D/held", 0, "whole");
    check("printf garbage >$D/held2/default-0.checkpoint; $T audit verify --all --key $D/pub --dir $D/held2",
          5, "the kept checkpoint: ");
    read_stream("THOLE_default_HIST_0");
    CHECK_OK(audit_stream_read(connection, "default", 0, 1, take_published, NULL, &stack.err), &stack.err);
    while (first < published_len && strstr(published[first].subject, "checkpoint") == NULL)
        first++;
    as_it_was();
    CU_ASSERT_FATAL(first < published_len);
    records_len = (size_t)strtoul(strchr((const char *)published[first].bytes, '\n'), NULL, 10);
    CU_ASSERT(records_len > 0 && records_len < kept_len);
    write_stream();
    write_published(first + 1);
    check("$T audit verify --all --key $D/pub", 0, "whole"); /* the streams alone cannot say it */
    check("$T audit verify --all --key $D/pub --dir $D/held", 5,
          "checkpoint  partition 0: the kept checkpoint: ");
    check("$T audit verify a-1 --key $D/pub --dir $D/held", 5,
          "checkpoint  partition 0: the kept checkpoint: ");
    check("$T audit keep --key $D/pub --dir $D/held 2>&1", 5, "the kept checkpoint: ");
    records_len = 0;
    write_stream();
    write_published(0);
    check("$T audit verify --all --key $D/pub --dir $D/held", 5,
          "checkpoint  partition 0: the kept checkpoint: ");
    as_it_was();
    write_stream();
    write_published(published_len);
    check("$T audit verify --all --key $D/pub --dir $D/held", 0, ", 3 checkpoints, the last of ");
    for (size_t i = 0; i < published_len; i++)
        free(published[i].bytes);
    for (size_t i = 0; i < kept_len; i++)
        free(kept[i].bytes);
}

/* The log is as it was; then records go, by a deletion and under its cover. */
static void test_deletions(void)
{
    struct stack_program *verbs = start_engine();
    CHECK_OK(thole_client_delete(client, THOLE_STR("a-3"), NULL, NULL, &stack.err), &stack.err);
    run_instances("c");
    CU_ASSERT_EQUAL(stack_terminate(verbs, WAIT_MS), 0);
    check("$T audit verify --all --key $D/pub", 0, " removed by deletions and prunings, 3 checkpoints");
    check("$T audit verify a-3 --key $D/pub", 0, "partition 0 a-3: 1 records, whole");
    check("$T audit checkpoint --key $D/other,$D/key", 0, "new"); /* two keys: each shows it */
    check("$T audit verify --all --key $D/other.pub", 0, " 1 checkpoints");
    check("$T audit verify --all --key $D/pub", 0, " 4 checkpoints");
    uint64_t last = 0;
    CHECK_OK(stream_last_by_subject(connection, "THOLE_default_HIST_0", "thole.default.hist.0.a-5.1", &last,
                                    NULL, &stack.err),
             &stack.err);
    CHECK_OK(stream_delete(connection, "THOLE_default_HIST_0", last, &stack.err), &stack.err);
    check("$T audit verify --all", 0,
          "whole"); /* nothing names an instance's last record but the next of the log */
    check("$T audit verify --all --key $D/pub", 5, "missing     partition 0: the record of leaf ");
    check("$T audit verify a-5 --key $D/pub", 5, "truncated ");
}

static const struct thole_test tests[] = {
    {"histories", test_histories},       {"forgeries", test_forgeries},   {"files", test_files},
    {"sealed files", test_sealed_files}, {"kept checkpoints", test_kept}, {"sealed later", test_sealed_later},
    {"deletions", test_deletions},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("T", THOLE_COMMAND, 1);
    setenv("D", stack.dir, 1);
    int const failed = thole_run_suite("audit_forgeries", tests, ARRAY_LEN(tests));
    connection_close(connection);
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
