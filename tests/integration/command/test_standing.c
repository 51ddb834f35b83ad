/* Instances that do not go on, as people meet them: standing.sh, with real servers, engines and programs. */
#include "integration.h"
#include <string.h>
#include <sys/wait.h>

enum { OUTPUT_BYTES = 64 * 1024 };

static void test_standing(void)
{
    static char output[OUTPUT_BYTES];
    FILE *const from = popen(THOLE_COMMAND " dev -- " THOLE_SOURCE_DIR
                                           "/tests/integration/command/cli_standing.sh " THOLE_COMMAND
                                           " " THOLE_BUILD_DIR " 2>&1",
                             "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    output[fread(output, 1, sizeof output - 1, from)] = '\0';
    int const status = pclose(from);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fprintf(stderr, "\n%s\n", output);
}

static const struct thole_test tests[] = {{"standing", test_standing}};

int main(void)
{
    setenv("THOLE_CONTEXT", "none", 1);
    skip_without_nats();
    return thole_run_suite("standing", tests, ARRAY_LEN(tests));
}
