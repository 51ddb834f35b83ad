/* A client without our library: a program in another language, from docs/wire.md alone, against real
 * servers. */
#include "stack.h"
#include <stdlib.h>

static struct stack stack;

static void test_from_the_page_alone(void)
{
    char tokens[256], command[1024];
    snprintf(tokens, sizeof tokens, "%s/later", stack.dir);
    setenv("VERBS_TOKENS", tokens, 1);
    (void)stack_program_of(&stack, "program_verbs", "verbs", "run");
    thole_client_close(stack_client(&stack)); /* the namespace is set up */
    snprintf(command, sizeof command,
             "python3 " THOLE_SOURCE_DIR "/tests/integration/wire/wire_client.py 127.0.0.1:%u default %s >&2",
             (unsigned)stack.nats.port, tokens);
    CU_ASSERT_EQUAL(system(command), 0);
}

static const struct thole_test tests[] = {{"from_the_page_alone", test_from_the_page_alone}};

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    if (system("python3 -c 'import zlib' 2>/dev/null") != 0) {
        fprintf(stderr, "skipped: no python3\n");
        return EXIT_SKIPPED;
    }
    stack_start(&stack);
    int const failed = thole_run_suite("wire client", tests, ARRAY_LEN(tests));
    stack_stop(&stack);
    return failed;
}
