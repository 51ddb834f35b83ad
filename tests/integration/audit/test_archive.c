/* thole archive and thole hold with real servers: what goes and what stays, the proof that is left, a run
 * that is killed in front of each of its steps, archives that are forged. */
#include "connection.h"
#include "reader.h"
#include "restored.h"
#include "sanitized.h"
#include "stack.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WAIT_MS = 20000, INSTANCES = 6, STEPS_MAX = 200 };

static struct stack stack;
static thole_client *client;
static const thole_slice nothing = {NULL, 0};

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

/* ---- instances ---- */

static void start(const char *id, const char *orchestration)
{
    CHECK_OK(thole_client_start(client, thole_slice_from(id), thole_slice_from(orchestration),
                                THOLE_STR("erase me"), NULL, &stack.err),
             &stack.err);
}

struct seen {
    thole_instance_status status;
};

static thole_status see(void *arg, const thole_instance_info *info)
{
    ((struct seen *)arg)->status = info->status;
    return THOLE_OK;
}

static bool row_is(const char *id, thole_instance_status status)
{
    struct seen seen = {THOLE_INSTANCE_UNKNOWN};
    return thole_client_show(client, thole_slice_from(id), see, &seen, NULL) == THOLE_OK &&
           seen.status == status;
}

static void wait_ended(const char *id)
{
    thole_outcome outcome;
    CHECK_OK(thole_client_wait(client, thole_slice_from(id), WAIT_MS, &outcome, &stack.err), &stack.err);
    thole_outcome_release(&outcome);
    for (int i = 0; i < WAIT_MS / 10 && !row_is(id, THOLE_INSTANCE_COMPLETED); i++)
        pause_ms(10);
}

static void run_instances(const char *prefix)
{
    char id[32];
    for (int i = 0; i < INSTANCES; i++) {
        (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
        start(id, "steps");
    }
    for (int i = 0; i < INSTANCES; i++) {
        (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
        wait_ended(id);
    }
}

static bool is_there(const char *id)
{
    return strcmp(stack_history(client, id), "NOT_FOUND") != 0;
}

/* ---- tests ---- */

static void test_what_goes(void)
{
    check("$T audit keygen audit.example.com --key $D/key >$D/pub", 0, "");
    run_instances("a");
    start("family", "parent");
    start("runs", "gate");
    CHECK_OK(thole_client_signal(client, THOLE_STR("family-child"), THOLE_STR("other"), nothing, nothing,
                                 NULL, &stack.err),
             &stack.err);
    check("$T hold set a-3 --reason 'case 4711' --actor legal -o json", 0, "\"revision\":1");
    check("$T hold set a-3 --reason again 2>&1", 4, "already under legal hold");
    check("$T hold list -o json", 0, "\"instance\":\"a-3\",\"held\":true");
    check("$T archive run --older-than 0s --dir $D/arch 2>&1", 2, "--key is missing");
    check("$T archive run --dir $D/arch --key $D/pub 2>&1", 2, "how long ago");
    check("$T archive run --older-than 0s --dir $D/arch --key $D/pub 2>&1", 0,
          "5 stay: no checkpoint by --key has all of their records yet");
    check("$T audit checkpoint --key $D/key", 0, "new");
    check("$T archive run --older-than 0s --key $D/pub --dry-run 2>&1", 0, "5 instances with ");
    check("$T archive run --older-than 1h --dir $D/arch --key $D/pub 2>&1", 0, "nothing to archive");
    check("ls $D/arch | wc -l", 0, "0: 0\n");
    CU_ASSERT_TRUE(is_there("a-0"));
    check("$T archive run --older-than 0s --dir $D/arch --key $D/pub -o json 2>$D/notes", 0,
          "\"instances\":5,");
    check("cat $D/notes", 0, "1 stay: they are under legal hold");
    CU_ASSERT_FALSE(is_there("a-0"));
    CU_ASSERT_TRUE(is_there("a-3"));
    CU_ASSERT_TRUE(is_there("runs"));
    check("$T archive run --older-than 0s --dir $D/arch --key $D/pub 2>&1", 0, "nothing to archive");
}

static void test_the_proof(void)
{
    check("$T archive verify $D/arch --key $D/pub", 0, "5 instances, ");
    check("$T archive verify $D/arch --key $D/pub", 0, "all in signed checkpoints of 1 partitions");
    check("$T archive verify $D/arch --key $D/pub -o json", 0, "\"included\":true");
    check("$T archive verify $D/arch", 0, "by their hashes alone");
    check("$T archive list $D/arch -o name | sort | tr '\\n' ' '", 0, "a-0 a-1 a-2 a-4 a-5 ");
    check("$T history --file $D/arch/*.thole a-1", 0, "Completed");
    check("$T audit verify --all --key $D/pub", 0, "whole");
    check("$T audit verify a-1 --key $D/pub", 0, "whole");
    check("$T audit keygen other.example.com --key $D/other >$D/other.pub; "
          "$T archive verify $D/arch --key $D/other.pub",
          5, "its checkpoint is not signed by --key");
}

/* A byte of the records, of the proof, of the note; a cut. */
static void test_forgeries(void)
{
    check("F=$(ls $D/arch/*.thole); cp $F $D/forged; $T archive verify $D/forged --key $D/pub", 0, "whole");
    check("F=$(ls $D/arch/*.thole); head -c $(($(wc -c <$F) - 40)) $F >$D/forged; "
          "$T archive verify $D/forged --key $D/pub 2>&1",
          5, "forged: ");
    check("F=$(ls $D/arch/*.thole); sed 's/\"proof\":\\[\"./\"proof\":[\"~/' $F >$D/forged; "
          "$T archive verify $D/forged --key $D/pub",
          5, "checkpoint  partition 0: ");
    check("F=$(ls $D/arch/*.thole); sed 's,audit.example.com [A-Za-z0-9+/],audit.example.com _,' $F "
          ">$D/forged; $T archive verify $D/forged --key $D/pub",
          5, "checkpoint  partition 0: ");
    check("F=$(ls $D/arch/*.thole); grep -av '^{.*checkpoint.v1' $F >$D/forged; "
          "$T archive verify $D/forged --key $D/pub 2>&1",
          5, "");
    check("$T archive verify $D/key --key $D/pub 2>&1", 5, "");
    check("$T archive verify $D/nowhere --key $D/pub 2>&1", 3, "cannot read");
}

/* Erased data is gone, and the archive shows all else unchanged. */
static void test_redaction(void)
{
    check("mkdir $D/red; cp $D/arch/*.thole $D/red/red.thole; grep -c 'erase me' $D/red/red.thole", 0, "");
    check("$T audit redact a-1 --file $D/red/red.thole --event 1 --reason 'request 4711' --actor dpo 2>&1", 0,
          "redacted: event 1 of a-1/1, record #");
    check("$T audit redact a-1 --file $D/red/red.thole --event 1 --reason again 2>&1", 4, "erased already");
    check("$T audit redact a-1 --file $D/red/red.thole --event 99 --reason x 2>&1", 3, "has no event 99 of");
    check("$T audit redact a-1 --file $D/red/red.thole --event 1 --field output --reason x 2>&1", 2,
          "has no payload 'output'");
    check("$T audit redact a-1 --file $D/red/red.thole --event 1 2>&1", 2, "--reason is needed");
    check("$T audit redact a-1 --file $D/red/red.thole --reason x 2>&1", 2, "which payloads?");
    check("$T audit redact a-1 --event 1 --reason x 2>&1", 2, "--file is needed");
    check("$T history --file $D/red/red.thole a-1", 0, "(redacted)");
    check("$T history --file $D/red/red.thole a-1 -o json", 0, "\"redacted\":true");
    check("$T show --file $D/red/red.thole a-1", 0, "input           (redacted)");
    check("$T show --file $D/red/red.thole a-1 -o json", 0, "\"input_redacted\":true");
    check("$T audit redact a-1 --file $D/red/red.thole --all --reason 'all of it' -o json", 0,
          "{\"schema\":\"thole.redaction.v1\",\"partition\":0,\"instance\":\"a-1\"");
    check("$T audit redact a-1 --file $D/red/red.thole --all --reason again 2>&1", 3,
          "no payload of instance \"a-1\" that can be erased");
    check("$T audit verify --file $D/red/red.thole", 0, "event 1, all, ");
    check("$T audit verify --file $D/red/red.thole", 0, ", by stated:dpo: request 4711");
    check("$T audit verify --file $D/red/red.thole", 0, "an unknown actor: all of it");
    check("$T audit verify --file $D/red/red.thole -o json", 0, "\"reason\":\"request 4711\"");
    check("$T history --file $D/red/red.thole a-1 | grep 'erase me'", 1, "");
    check("$T archive verify $D/red --key $D/pub", 0, "all in signed checkpoints of 1 partitions");
    check("$T replay --file $D/red/red.thole -- $V 2>&1", 1, "a payload was erased by a redaction");
    check("ls $D/red", 0, "0: red.thole\n");
    check("$T archive restore $D/red/red.thole a-1 --key $D/pub --reason 'without its payloads' 2>&1", 0, "");
    check("$T history a-1", 0, "(redacted)");
    check("$T history a-1 | grep 'erase me'", 1, "");
    check("$T audit verify a-1 --key $D/pub", 0, "redacted");
    check("$T delete a-1", 0, "");
    check("$T export a-3 --form jsonl --to $D/a3.jsonl && $T audit redact a-3 --file $D/a3.jsonl --all "
          "--reason x && "
          "$T audit verify --file $D/a3.jsonl -o jsonl",
          0, "{\"schema\":\"thole.audit_redaction.v1\"");
    check("sed 's/\"record\":\"\\(.\\{40\\}\\)./\"record\":\"\\1A/' $D/a3.jsonl >$D/forged.jsonl; "
          "$T audit verify --file $D/forged.jsonl 2>&1",
          5, "");
    /* the readable part is compared, too */
    check("sed 's/\"kind\":\"Started\"/\"kind\":\"Completed\"/' $D/a3.jsonl >$D/forged.jsonl; "
          "$T audit verify --file $D/forged.jsonl 2>&1",
          5, "the readable events in line 3 are not those of its record ");
    check("$T audit redact a-3 --file $D/forged.jsonl --all --reason x 2>&1", 5,
          "event 1 has another \"kind\"");
}

/* Whatever step it is killed in front of: what is gone is in an archive that verifies; the next run ends it.
 */
static void test_kill9(void)
{
    char line[1024];
    int step = 1;
    bool ended = false;
    if (SANITIZED) /* the sanitizer's library must be loaded first */
        return;
    for (; step < STEPS_MAX && !ended && CU_get_number_of_failures() == 0; step++) {
        char prefix[16];
        (void)snprintf(prefix, sizeof prefix, "k%d", step);
        run_instances(prefix);
        check("$T audit checkpoint --key $D/key >/dev/null", 0, "");
        (void)snprintf(line, sizeof line,
                       "rm -rf $D/spool; mkdir -p $D/spool $D/s3; LD_PRELOAD=%s/kill_preload.so "
                       "THOLE_TEST_KILL=%d $T archive run --older-than 0s --prefix %s- --dir $D/spool --key "
                       "$D/pub --to-command 'cp \"$1\" $D/s3/' --back-command 'cat $D/s3/$(basename \"$1\")' "
                       ">/dev/null 2>&1; echo $?",
                       THOLE_TEST_PROGRAMS, step, prefix);
        ended = strcmp(stack_shell(line), "0: 0\n") == 0;
        for (int i = 0; i < INSTANCES; i++) {
            char id[32];
            (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
            if (is_there(id))
                continue;
            (void)snprintf(line, sizeof line,
                           "$T archive verify $D/s3 --key $D/pub >/dev/null && "
                           "$T archive list $D/s3 -o name | grep -x '%s'",
                           id);
            check(line, 0, id);
        }
        check("$T archive run --older-than 0s --prefix k --dir $D/spool --key $D/pub --to-command "
              "'cp \"$1\" $D/s3/' --back-command 'cat $D/s3/$(basename \"$1\")' 2>&1",
              0, "");
        for (int i = 0; i < INSTANCES; i++) {
            char id[32];
            (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
            CU_ASSERT_FALSE(is_there(id));
        }
        check("ls $D/spool | grep -v done$ | wc -l", 0, "0: 0\n");
    }
    CU_ASSERT_TRUE(ended);
    CU_ASSERT(step > 15);
    fprintf(stderr, " killed in front of %d steps ", step - 2);
    check("$T archive list $D/s3 -o name | sort | uniq -d | wc -l", 0, "0: 0\n");
    check("$T audit verify --all --key $D/pub", 0, "whole");
}

/* ---- restore ---- */

/* The contents of a history, in whatever form it is written. */
static void check_same_history(const char *id, const char *file)
{
    char line[512];
    (void)snprintf(line, sizeof line,
                   "$T history %s -o json >$D/restored.json && $T history --file %s %s -o json "
                   ">$D/archived.json && cmp $D/restored.json $D/archived.json && $T export %s --to "
                   "$D/again.thole >/dev/null; $T audit verify --file $D/again.thole; rm -f "
                   "$D/again.thole",
                   id, file, id, id);
    check(line, 0, "whole");
}

static void test_restore(void)
{
    check("$T show a-1 2>&1", 3, "no instance");
    check("$T archive restore $D/arch a-1 a-2 --key $D/pub --dry-run", 0, "would be restored");
    check("$T show a-1 2>&1", 3, "no instance");
    check("$T archive restore $D/arch a-1 --key $D/pub --reason 'case 4711' --actor legal -o json", 0,
          "\"restored\":true,\"result\":\"restored\"");
    check("$T show a-1", 0, "Completed");
    check("$T show a-1", 0, "reason          case 4711");
    check("$T show a-1 -o json", 0, "\"by\":\"legal\"");
    check("$T show a-1 --at 1", 0, "a-1");
    check_same_history("a-1", "$D/arch/*.thole");
    check("$T replay a-1 -- $V", 0, "1 instances, 1 executions, ");
    check("VERBS_CHANGED=1 $T replay a-1 -- $V", 5, "a-1");
    check("$T audit verify a-1 --key $D/pub -o json", 0, "\"findings\":[]");
    check("$T audit verify --all --key $D/pub", 0, "whole");
    check("$T archive restore $D/arch a-1 --key $D/pub", 0, "restored already");
    check("$T archive restore $D/arch a-1 --key $D/pub 2>&1", 0, "do not know it: thole archive list does");
    check("$T list -o name | grep -c a-1", 1, "0");
    check("$T wait a-1 --timeout 300ms 2>&1", 3, "no instance");
    check("$T archive list", 0, "a-1 ");
    check("$T archive list -o json", 0, "\"by\":\"legal\"");
    check("$T projections verify", 0, "as their histories say");
    CU_ASSERT_FALSE(is_there("a-2"));
}

/* The receipt of an instance, into a file of the folder. */
static void take_receipt(const char *id, const char *file)
{
    struct connection *const hand = stack_connect(&stack);
    struct restored_place const place = {.ns = "default", .instance = thole_slice_from(id)};
    char path[512];
    struct buf receipt;
    bool is = false;
    buf_init(&receipt, RESTORED_RECEIPT_BYTES_MAX);
    CHECK_OK(restored_receipt(hand, &place, &is, &receipt, &stack.err), &stack.err);
    (void)snprintf(path, sizeof path, "%s/%s", stack.dir, file);
    FILE *const to = fopen(path, "we");
    (void)fwrite(receipt.ptr, 1, receipt.len, to);
    (void)fclose(to);
    buf_release(&receipt);
    connection_close(hand);
}

/* The file as edited by @p edit, a script of sed, becomes the receipt of @p id. */
static void give_receipt(const char *id, const char *file, const char *edit)
{
    struct connection *const hand = stack_connect(&stack);
    char subject[128], line[512];
    (void)snprintf(line, sizeof line, "printf %%s \"$(sed '%s' $D/%s)\"", edit, file);
    const char *const forged = stack_shell(line) + strlen("0: ");
    (void)snprintf(subject, sizeof subject, "thole.default.restored.0.%s.receipt", id);
    CHECK_OK(connection_publish(hand, subject, NULL, 0, thole_slice_from(forged), &stack.err), &stack.err);
    CHECK_OK(connection_flush(hand, &stack.err), &stack.err);
    connection_close(hand);
}

static void forge_receipt(const char *id, const char *from, const char *edit)
{
    take_receipt(from, "receipt");
    give_receipt(id, "receipt", edit);
}

/* A receipt that was overwritten stays in the stream, and is reported, too. */
static void check_newest_receipt(const char *want)
{
    check("$T archive verify --key $D/rpub", 5, "forged                a-1 ");
    check("$T archive verify --key $D/rpub | grep a-1 | tail -n 1", 0, want);
}

/* The person who restored, what, and why: signed, and not to be forged. */
static void test_receipts(void)
{
    check("$T archive verify --key $D/pub", 5, "not signed            a-1 ");
    check("$T archive verify 2>&1", 2, "which archives?");
    check("$T delete a-1", 0, "accepted");
    check("$T audit keygen restorer.example.com --key $D/rkey >$D/rpub", 0, "");
    check("$T archive restore $D/arch a-1 --key $D/pub --sign-key $D/rpub 2>&1", 2, "is a public key");
    check("$T archive restore $D/arch a-1 --key $D/pub --sign-key $D/rkey --reason 'case 4711' --actor legal",
          0, "restored");
    check("$T archive verify --key $D/rpub", 0, "\nsigned                a-1  ");
    check("$T archive verify --key $D/rpub -o json", 0, "\"instance\":\"a-1\",\"receipt\":\"signed\"");
    check("$T archive verify --key $D/pub", 5, "not signed by --key   a-1 ");
    check("$T show a-1 -o json", 0, "\"by\":\"legal\"");
    check("$T archive restore $D/arch a-2 --key $D/pub --sign-key $D/rkey,$D/key", 0, "restored");
    check("$T archive verify --key $D/rpub,$D/pub -o name | tr '\\n' ' '", 0, "a-1 a-2 ");
    check("$T archive verify --key $D/pub", 5, "\nsigned                a-2 ");
    take_receipt("a-1", "older");
    forge_receipt("a-1", "a-1", "s/case 4711/case 4712/");
    check_newest_receipt("forged");
    forge_receipt("a-1", "a-1", "s/4712/4711/; s/\"signature\":/\"signature\": /");
    check_newest_receipt("forged");
    forge_receipt("a-1", "a-1", "s/\"signature\": /\"signature\":/");
    check_newest_receipt("signed");
    forge_receipt("a-1", "a-2", "");
    check_newest_receipt("forged");
    forge_receipt("a-1", "a-2", "s/}$/,\"by\":\"other\"}/");
    check_newest_receipt("forged");
    /* signed, of the same instance and archive, and yet of another restoration */
    check("$T delete a-1 && $T delete a-2 && $T archive restore $D/arch a-1 --key $D/pub --sign-key $D/rkey",
          0, "restored");
    check("$T archive verify --key $D/rpub", 0, "\nsigned                a-1  ");
    give_receipt("a-1", "older", "");
    check("$T archive verify --key $D/rpub", 5, "\nof an earlier one     a-1  ");
    check("$T delete a-1 && $T archive restore $D/arch a-1 --key $D/pub", 0, "restored");
}

static void test_what_is_not_restored(void)
{
    check("$T archive restore $D/arch nobody 2>&1", 3, "\"nobody\" is in no archive of ");
    check("$T archive restore $D/arch 2>&1", 2, "which instances of ");
    check("$T archive restore $D/arch a-1 --all 2>&1", 2, "which instances of ");
    check("$T archive restore 2>&1", 2, "which archive?");
    check("$T archive restore $D/arch a-2 --reason \"$(printf '\\377')\" 2>&1", 2, "--reason is not UTF-8");
    check("$T archive restore $D/nowhere a-2 2>&1", 3, "cannot read");
    check("$T archive restore $D/arch a-2 --key $D/other.pub 2>&1", 5, "nothing of it was restored");
    check("$T export a-3 --to $D/a3.thole; $T archive restore $D/a3.thole a-3", 4,
          "the log has an instance with that id");
    check("F=$(ls $D/arch/*.thole); head -c $(($(wc -c <$F) - 40)) $F >$D/forged; "
          "$T archive restore $D/forged a-2 2>&1",
          5, "forged: ");
    CU_ASSERT_FALSE(is_there("a-2"));
}

/* A history that is a chain of its own, whose last record no deletion of the log names: of another life of
 * the id. */
static void test_another_history(void)
{
    start("twice", "steps");
    wait_ended("twice");
    check("$T export twice --to $D/first.thole && $T delete twice", 0, "accepted");
    check("$T archive restore $D/first.thole --all", 0, "restored");
    start("twice", "steps");
    wait_ended("twice");
    check("$T export twice --to $D/second.thole && $T delete twice", 0, "accepted");
    check("$T archive restore $D/second.thole --all", 4, "another history of that id is restored");
    check("$T delete twice && $T archive restore $D/second.thole --all", 0, "restored");
    check("$T archive restore $D/first.thole --all", 4, "no deletion in the log names this history");
    check("$T audit verify twice", 0, "whole");
    check("$T export a-1 --to $D/a1.thole && $T delete a-1", 0, "accepted");
    check("$T show a-1 2>&1", 3, "no instance");
    check("$T hold set a-0 --reason h >/dev/null; $T archive restore $D/arch a-0 && $T delete a-0 2>&1", 4,
          "is under legal hold since");
    check("$T hold release a-0 --reason h >/dev/null; $T delete a-0", 0, "accepted");
    check("$T archive list 2>&1", 0, "twice");
    check("$T delete twice", 0, "accepted");
    check("$T archive list 2>&1", 0, "nothing is restored");
}

/* A new instance with the id goes before what was restored of the one before it. */
static void test_a_new_life(void)
{
    check("$T archive restore $D/arch a-5 --key $D/pub", 0, "restored");
    start("a-5", "gate");
    for (int i = 0; i < WAIT_MS / 10 && !row_is("a-5", THOLE_INSTANCE_RUNNING); i++)
        pause_ms(10);
    check("$T history a-5", 0, "gate");
    check("$T archive restore $D/arch a-5 2>&1", 4, "the log has an instance with that id");
    check("$T delete a-5 --force", 0, "accepted");
    check("$T show a-5", 0, "Completed");
    check("$T audit verify a-5 --key $D/pub", 0, "whole");
    check("$T delete a-5", 0, "accepted");
}

/* Whatever step it is killed in front of: nothing is seen of an instance, or all of it; the next run ends it.
 */
static void test_restore_kill9(void)
{
    char line[1024];
    int step = 1;
    bool ended = false;
    if (SANITIZED)
        return;
    for (; step < STEPS_MAX && !ended && CU_get_number_of_failures() == 0; step++) {
        (void)snprintf(line, sizeof line,
                       "LD_PRELOAD=%s/kill_preload.so THOLE_TEST_KILL_WRITES=1 THOLE_TEST_KILL=%d $T archive "
                       "restore $D/arch a-0 a-2 --key $D/pub >/dev/null 2>&1; echo $?",
                       THOLE_TEST_PROGRAMS, step);
        ended = strcmp(stack_shell(line), "0: 0\n") == 0;
        for (int i = 0; i < 4; i += 2) {
            char id[] = "a-0";
            id[2] = (char)('0' + i);
            if (is_there(id))
                check_same_history(id, "$D/arch/*.thole");
        }
        check("$T archive restore $D/arch a-0 a-2 --key $D/pub", 0, "restored");
        check_same_history("a-0", "$D/arch/*.thole");
        check_same_history("a-2", "$D/arch/*.thole");
        check("$T delete a-0 && $T delete a-2", 0, "accepted");
    }
    CU_ASSERT_TRUE(ended);
    CU_ASSERT(step > 10);
    fprintf(stderr, " killed in front of %d steps ", step - 2);
    check("$T archive list 2>&1", 0, "nothing is restored");
}

static void test_hooks(void)
{
    run_instances("h");
    check("$T audit checkpoint --key $D/key >/dev/null", 0, "");
    check("$T archive run --older-than 0s --prefix h --dir $D/hooks --key $D/pub --to-command 'exit 3' 2>&1",
          6, "exit code 3; nothing of this archive was purged");
    CU_ASSERT_TRUE(is_there("h-0"));
    check("$T archive run --older-than 0s --prefix h --dir $D/hooks --key $D/pub --to-command true "
          "--back-command 'echo other' 2>&1",
          5, "look at what --to-command has stored");
    CU_ASSERT_TRUE(is_there("h-0"));
    check("flock $D/hooks/.lock $T archive run --older-than 0s --dir $D/hooks --key $D/pub 2>&1", 4,
          "another run uses");
    check("for f in $D/hooks/*.thole; do printf x | dd of=$f bs=1 seek=900 conv=notrunc 2>/dev/null; done; "
          "$T archive run --older-than 0s --prefix h --dir $D/hooks --key $D/pub 2>&1",
          5, "");
    CU_ASSERT_TRUE(is_there("h-0"));
    check("rm $D/hooks/*.thole; $T archive run --older-than 0s --prefix h --dir $D/hooks --key $D/pub 2>&1",
          0, "        6");
    CU_ASSERT_FALSE(is_there("h-0"));
}

/* The example of docs/audit.md for a bucket, with a folder in its place: there and back, and into the
 * namespace. */
static void test_restore_from_elsewhere(void)
{
    run_instances("t");
    check("mkdir $D/bucket; $T audit checkpoint --key $D/key >/dev/null", 0, "");
    check("$T archive run --older-than 0s --prefix t- --dir $D/away --key $D/pub --to-command "
          "'cp \"$1\" $D/bucket/' --back-command 'cat \"$D/bucket/$(basename \"$1\")\"'",
          0, "        6  ");
    check("ls $D/away | grep -v done$ | wc -l", 0, "0: 0\n");
    check("$T archive restore $D/away --prefix t- --key $D/pub 2>&1", 3, "there is no archive in ");
    check("$T archive restore $D/away --prefix t- --key $D/pub --back-command 'exit 3' 2>&1", 6,
          "exit code 3; nothing of this archive was restored");
    check("$T archive restore $D/away --prefix t- --back-command 'cat $D/arch/*.thole' 2>&1", 5,
          "its receipt has sha256 ");
    CU_ASSERT_FALSE(is_there("t-0"));
    check("TMPDIR=$D $T archive restore $D/away --prefix t- --key $D/pub --back-command "
          "'cat \"$D/bucket/$(basename \"$1\")\"' -o name | wc -l",
          0, "0: 6\n");
    check_same_history("t-5", "$D/bucket/*.thole");
    check("ls $D | grep -c thole-archive-; for i in 0 1 2 3 4 5; do $T delete t-$i; done", 0, "0: 0\n");
}

/* Archives purged before --to-command was used are nowhere else. */
static void test_hook_that_comes_later(void)
{
    check("$T archive run --older-than 1h --dir $D/hooks --key $D/pub --to-command true >/dev/null 2>&1; "
          "ls $D/hooks/*.thole | wc -l",
          0, "0: 1\n");
}

/* An export into the folder says nothing of deleting what it has. */
static void test_an_export_among_them(void)
{
    start("kept", "steps");
    wait_ended("kept");
    check("mkdir -p $D/mixed; $T export kept --to $D/mixed/x.thole 2>&1", 0, "");
    check("$T archive run --older-than 1h --unsealed --dir $D/mixed 2>&1", 2, "it is an export");
    CU_ASSERT_TRUE(is_there("kept"));
}

/* The archive of an earlier instance, whose run did not come to its end: the next one of that id stays. */
static void test_another_life(void)
{
    check("ls $D/hooks/*.done | wc -l; rm $D/hooks/*.done", 0, "1");
    start("h-0", "steps");
    wait_ended("h-0");
    check("$T archive run --older-than 1h --dir $D/hooks --key $D/pub", 0, " 6      0  ");
    CU_ASSERT_TRUE(is_there("h-0"));
    CU_ASSERT_FALSE(is_there("h-1"));
}

static void test_holds(void)
{
    check("$T delete a-3 2>&1", 4, "is under legal hold since ");
    check("$T hold release a-3 --reason closed --actor legal", 0, "released");
    check("$T hold release a-3 --reason closed 2>&1", 4, "not under legal hold");
    check("$T hold list 2>&1", 0, "no instance is under legal hold");
    check("$T hold list a-3", 0, "case 4711");
    check("$T hold set a-4 2>&1", 2, "--reason is missing");
    check("$T hold set a-4 --reason \"$(printf '\\377')\" 2>&1", 2, "--reason is not UTF-8");
    check("$T delete a-3", 0, "accepted");
}

/* A child that has ended, of a parent that waits for more; then one that ends with its parent. */
static void test_family(void)
{
    start("waits", "waiting");
    for (int i = 0; i < WAIT_MS / 10 && !row_is("w-child", THOLE_INSTANCE_RUNNING); i++)
        pause_ms(10);
    CHECK_OK(thole_client_signal(client, THOLE_STR("w-child"), THOLE_STR("go"), nothing, nothing, NULL,
                                 &stack.err),
             &stack.err);
    wait_ended("w-child");
    check("$T archive run --older-than 0s --unsealed --dir $D/family --prefix w-child 2>&1", 0,
          "1 stay: their parents run");
    CU_ASSERT_TRUE(is_there("w-child"));
    check("$T export --status completed --orchestration gate --prefix w- --parent waits --after 1h --before "
          "2199-01-01 "
          "--to $D/child.thole >/dev/null; head -n 2 $D/child.thole",
          0,
          "\"selection\":{\"status\":\"Completed\",\"orchestration\":\"gate\",\"prefix\":\"w-\",\"parent\":"
          "\"waits\",\"after\":\"1h\",\"before\":\"2199-01-01\"}");
    CHECK_OK(thole_client_terminate(client, THOLE_STR("family"), nothing, &stack.err), &stack.err);
    for (int i = 0; i < WAIT_MS / 10 && !row_is("family", THOLE_INSTANCE_TERMINATED); i++)
        pause_ms(10);
    check("$T archive run --older-than 0s --unsealed --dir $D/family --prefix family -o name 2>&1", 0,
          "/family/default-");
    check("$T archive list $D/family -o name | sort | tr '\\n' ' '", 0, "family ");
    check("$T archive verify $D/family", 0, "by their hashes alone");
    check("$T archive verify $D/family --key $D/pub", 5, "it is in no checkpoint of this file by --key");
}

/* The damaged one is named, with the reason. */
static void test_damaged(void)
{
    struct connection *const hand = stack_connect(&stack);
    start("damaged", "steps");
    wait_ended("damaged");
    CHECK_OK(connection_publish(hand, "thole.default.hist.0.damaged.1", NULL, 0, THOLE_STR("no protobuf"),
                                &stack.err),
             &stack.err);
    CHECK_OK(connection_flush(hand, &stack.err), &stack.err);
    check("$T archive run --older-than 0s --unsealed --dir $D/damaged --prefix damaged 2>&1", 13,
          "\"damaged\" stays: ");
    check("ls $D/damaged | wc -l", 0, "0: 0\n");
    connection_close(hand);
}

static thole_status second_turn(void *arg, const thole_history_event *event)
{
    if (event->turn == 2)
        *(uint64_t *)arg = event->sequence;
    return THOLE_OK;
}

/* A record in the middle of its history is gone: it is named, and others do not wait for it. */
static void test_hole(void)
{
    uint64_t second = 0;
    struct connection *const hand = stack_connect(&stack);
    run_instances("hole");
    CHECK_OK(thole_client_history(client, THOLE_STR("hole-1"), second_turn, &second, &stack.err), &stack.err);
    CHECK_OK(stream_delete(hand, "THOLE_default_HIST_0", second, &stack.err), &stack.err);
    check("$T history hole-1 2>&1", 1, "records of \"hole-1\" are missing between #");
    check("$T export --prefix hole --to $D/hole.thole 2>&1", 13, "missing: hole-1: records of");
    check("$T export hole-1 --to $D/hole1.thole 2>&1", 13, "0 instances, 0 records; 1 missing");
    check("$T projections verify -o json 2>&1", 0, "\"unreadable\":1");
    check("$T archive run --older-than 0s --unsealed --dir $D/holes --prefix hole 2>&1", 13,
          "\"hole-1\" stays: records of");
    CU_ASSERT_TRUE(!is_there("hole-0") && is_there("hole-1") && !is_there("hole-2"));
    connection_close(hand);
}

/* ---- old executions of instances that go on ---- */

enum { CYCLES = 8 };

static thole_status note_execution(void *arg, const thole_execution_info *info)
{
    char *const to = arg;
    size_t const had = strlen(to);
    (void)snprintf(to + had, 128 - had, "%s%d", had == 0 ? "" : " ", (int)info->execution);
    return THOLE_OK;
}

static const char *executions(const char *id)
{
    static char text[128];
    text[0] = '\0';
    return thole_client_executions(client, thole_slice_from(id), note_execution, text, &stack.err) == THOLE_OK
               ? text
               : stack.err.text;
}

static void wait_executions(const char *id, const char *want)
{
    for (int i = 0; i < WAIT_MS / 10 && strcmp(executions(id), want) != 0; i++)
        pause_ms(10);
    CHECK_STR(id, executions(id), want);
}

static void next_execution(const char *id, const char *how)
{
    CHECK_OK(thole_client_signal(client, thole_slice_from(id), THOLE_STR("next"), thole_slice_from(how),
                                 nothing, NULL, &stack.err),
             &stack.err);
}

static void cycle(const char *id)
{
    start(id, "cycles");
    for (int i = 1; i < CYCLES; i++)
        next_execution(id, "on");
    wait_executions(id, "1 2 3 4 5 6 7 8");
}

static void test_executions(void)
{
    cycle("c-1");
    cycle("c-2");
    cycle("c-held");
    check("$T hold set c-held --reason h", 0, "");
    check("$T archive run --older-than 0s --executions --prefix c- --dir $D/old --key $D/pub 2>&1", 0,
          "2 stay: no checkpoint by --key has all of their records yet");
    check("$T audit checkpoint --key $D/key >/dev/null", 0, "");
    check("$T archive run --older-than 0s --prefix c- --dir $D/old --key $D/pub 2>&1", 0,
          "nothing to archive");
    check("$T archive run --older-than 1h --executions --prefix c- --dir $D/old --key $D/pub 2>&1", 0,
          "nothing to archive");
    check("$T archive run --older-than 0s --executions --prefix c- --key $D/pub --dry-run 2>&1", 0,
          "2 of them go on: their old executions would be archived and pruned");
    CHECK_STR("dry", executions("c-1"), "1 2 3 4 5 6 7 8");
    check("$T archive run --older-than 0s --executions --prefix c- --dir $D/old --key $D/pub -o json "
          "2>$D/notes",
          0, "\"purged\":2,\"kept\":0");
    check("cat $D/notes", 0, "1 stay: they are under legal hold");
    wait_executions("c-1", "1 8");
    wait_executions("c-2", "1 8");
    CHECK_STR("held", executions("c-held"), "1 2 3 4 5 6 7 8");
    check("$T archive verify $D/old --key $D/pub", 0, "whole, and all in signed checkpoints of 1");
    check("$T archive verify $D/old --key $D/pub -o json", 0, "\"first_execution\":2,\"execution\":7,");
    check("$T history --file $D/old/*.thole c-1", 0, "ContinuedAsNew");
    check("$T history c-1 -o wide", 0, "archived in default-");
    check("$T audit checkpoint --key $D/key >/dev/null; $T audit verify --all --key $D/pub", 0, "whole");
    check("$T audit verify c-1 --key $D/pub", 0, "whole");
}

/* An instance that goes on is archived again from where the last archive ended; full files follow one
 * another; an instance that has ended goes as a whole. */
static void test_executions_again(void)
{
    for (int i = 0; i < 4; i++)
        next_execution("c-1", "on");
    wait_executions("c-1", "1 8 9 10 11 12");
    check("$T audit checkpoint --key $D/key >/dev/null", 0, "");
    check("$T archive run --older-than 0s --executions --prefix c-1 --dir $D/more --key $D/pub --file-size 1 "
          "-o name | wc -l",
          0, "0: 4\n");
    wait_executions("c-1", "1 12");
    check("$T archive verify $D/more --key $D/pub -o json", 0, "\"first_execution\":11,\"execution\":11,");
    next_execution("c-1", "end");
    wait_ended("c-1");
    check("$T audit checkpoint --key $D/key >/dev/null", 0, "");
    check("$T archive run --older-than 0s --executions --prefix c-1 --dir $D/more --key $D/pub", 0, "");
    CU_ASSERT_FALSE(is_there("c-1"));
    check("$T archive verify $D/more --key $D/pub", 0, "1 instances, ");
    check("$T archive restore $D/old c-2 --key $D/pub", 4, "stays: executions of one that went on");
    check("$T archive restore $D/old --all --key $D/pub 2>&1", 0, "nothing to restore");
    check("$T archive restore $D/more c-1 --key $D/pub", 0, "restored");
    check("$T audit verify c-1 --key $D/pub", 0, "whole");
    check("$T audit verify --all --key $D/pub", 0, "whole");
    check("$T delete c-1", 0, "accepted");
}

static void test_executions_forged(void)
{
    check("F=$(ls $D/old/*.thole); sed 's/c-1/c-9/' $F >$D/forged; $T archive verify $D/forged --key $D/pub "
          "2>&1",
          5, "");
    check("F=$(ls $D/old/*.thole); cp $F $D/forged; "
          "printf x | dd of=$D/forged bs=1 seek=900 conv=notrunc 2>/dev/null; "
          "$T archive verify $D/forged --key $D/pub 2>&1",
          5, "");
}

static void test_prune_many(void)
{
    cycle("p-1");
    cycle("p-2");
    check("$T prune --executions-before 0s 2>&1", 2, "which instances?");
    check("$T prune p-1 --all --executions-before 0s 2>&1", 2, "which instances?");
    check("$T prune --prefix p- --executions-before 0s --dry-run 2>&1", 0,
          "12 histories would be removed, nothing was changed");
    check("$T prune --prefix p- --executions-before 1h 2>&1", 0, "nothing to prune");
    check("$T prune --all --executions-before 0s --reason 'each night' 2>&1", 0,
          "histories of 2 instances are removed, of 1 they stay");
    wait_executions("p-1", "1 8");
    wait_executions("p-2", "1 8");
    CHECK_STR("held", executions("c-held"), "1 2 3 4 5 6 7 8");
    check("$T audit checkpoint --key $D/key >/dev/null; $T audit verify --all --key $D/pub", 0, "whole");
}
static const struct thole_test tests[] = {
    {"what goes", test_what_goes},
    {"the proof", test_the_proof},
    {"forgeries", test_forgeries},
    {"redaction", test_redaction},
    {"restore", test_restore},
    {"receipts", test_receipts},
    {"what is not restored", test_what_is_not_restored},
    {"another history", test_another_history},
    {"a new life", test_a_new_life},
    {"restore, kill -9", test_restore_kill9},
    {"hooks", test_hooks},
    {"restore from elsewhere", test_restore_from_elsewhere},
    {"a hook that comes later", test_hook_that_comes_later},
    {"an export among them", test_an_export_among_them},
    {"another life", test_another_life},
    {"holds", test_holds},
    {"family", test_family},
    {"kill -9", test_kill9},
    {"executions", test_executions},
    {"executions again", test_executions_again},
    {"executions forged", test_executions_forged},
    {"prune many", test_prune_many},
    {"hole", test_hole},
    {"damaged", test_damaged},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("T", THOLE_COMMAND, 1);
    setenv("D", stack.dir, 1);
    setenv("V", THOLE_TEST_PROGRAMS "/program_verbs", 1);
    (void)stack_program_with(&stack, "program_verbs", "verbs", "run", "--partitions", "1", NULL);
    client = stack_client(&stack);
    int const failed = thole_run_suite("archive", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
