/* thole archive run of so many instances that they are read and deleted side by side: one is held, the run is
 * killed in the midst of it, and the next one goes on. */
#include "stack.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WAIT_MS = 20000, OUTPUT_BYTES = 64 * 1024, COUNT = 120 };

static struct stack stack;
static thole_client *client;

/* ---- the command ---- */

static void check(const char *line, int code, const char *text)
{
    char output[OUTPUT_BYTES];
    FILE *from = popen(line, "r");
    size_t const len = from == NULL ? 0 : fread(output, 1, sizeof output - 1, from);
    int const status = from == NULL ? -1 : pclose(from);
    output[len] = '\0';
    bool const good = WIFEXITED(status) && WEXITSTATUS(status) == code && strstr(output, text) != NULL;
    CU_ASSERT(good);
    if (!good)
        fprintf(stderr, "\n  [%s]\n    got  %d: %s\n    want %d: …%s\n", line,
                WIFEXITED(status) ? WEXITSTATUS(status) : -1, output, code, text);
}

/* ---- instances ---- */

static const char *many_id(int i)
{
    static char id[32];
    (void)snprintf(id, sizeof id, "many-%d", i);
    return id;
}

static thole_status note_status(void *arg, const thole_instance_info *info)
{
    *(thole_instance_status *)arg = info->status;
    return THOLE_OK;
}

static bool has_ended(const char *id)
{
    thole_instance_status status = THOLE_INSTANCE_UNKNOWN;
    return thole_client_show(client, thole_slice_from(id), note_status, &status, NULL) == THOLE_OK &&
           status == THOLE_INSTANCE_COMPLETED;
}

static void run_all_to_their_ends(void)
{
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(thole_client_start(client, thole_slice_from(many_id(i)), THOLE_STR("steps"),
                                    THOLE_STR("input"), NULL, &stack.err),
                 &stack.err);
    for (int i = 0; i < COUNT; i++)
        for (int waited = 0; waited < WAIT_MS / 10 && !has_ended(many_id(i)); waited++)
            pause_ms(10);
}

static int there(void)
{
    int n = 0;
    for (int i = 0; i < COUNT; i++)
        n += strcmp(stack_history(client, many_id(i)), "NOT_FOUND") != 0;
    return n;
}

/* ---- tests ---- */

#define RUN "$T archive run --older-than 0s --prefix many- --dir $D/many --key $D/pub "

static void test_many(void)
{
    run_all_to_their_ends();
    check("$T audit keygen audit.example.com --key $D/key >$D/pub; $T audit checkpoint --key $D/key", 0, "");
    check("$T hold set many-60 --reason 'case 4711' --actor legal -o json", 0, "\"revision\":");
    check(RUN "2>/dev/null & P=$!; N=0; while [ $N -lt 500 ] && ! ls $D/many/*.thole >/dev/null 2>&1; do "
              "N=$((N + 1)); sleep 0.01; done; kill -9 $P; wait $P 2>/dev/null; echo killed",
          0, "killed");
    check(RUN "2>&1", 0, "");
    CU_ASSERT_EQUAL(there(), 1);
    check("$T archive verify $D/many --key $D/pub", 0, "whole, and all in signed checkpoints");
    check("$T hold release many-60 --reason over --actor legal -o json", 0, "\"revision\":");
    check(RUN "2>&1", 0, "");
    CU_ASSERT_EQUAL(there(), 0);
    check("$T archive list $D/many -o name | sort | uniq -d | wc -l", 0, "0\n");
    check("$T archive list $D/many -o name | wc -l", 0, "120\n");
    check("$T audit verify --all --key $D/pub", 0, "whole");
}

static const struct thole_test tests[] = {
    {"many", test_many},
};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    stack_start(&stack);
    setenv("T", THOLE_COMMAND, 1);
    setenv("D", stack.dir, 1);
    (void)stack_program_with(&stack, "program_verbs", "verbs", "run", "--partitions", "1", NULL);
    client = stack_client(&stack);
    int const failed = thole_run_suite("archive_many", tests, ARRAY_LEN(tests));
    thole_client_close(client);
    stack_stop(&stack);
    return failed;
}
