/* Each line that others can cause has all of its parts, and a name of its own. */
#include "engine_lines.h"
#include "thole_cunit.h"

static void test_each_is_whole(void)
{
    for (size_t i = 0; i < ENGINE_LINES; i++) {
        const struct log_kind *const kind = &engine_lines[i];
        CU_ASSERT_FATAL(kind->area != NULL && kind->name != NULL && kind->more != NULL);
        CU_ASSERT_TRUE(kind->lines > 0 && kind->level != LOG_LEVEL_DEBUG);
        CU_ASSERT_EQUAL(strspn(kind->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(kind->name));
        for (size_t k = 0; k < i; k++)
            CU_ASSERT_NOT_EQUAL(strcmp(kind->name, engine_lines[k].name), 0);
    }
    for (enum reject_code code = REJECT_SUBJECT; code <= REJECT_HOLD_UNKNOWN; code++) {
        char name[64];
        (void)snprintf(name, sizeof name, "rejected_%s", reject_code_name(code));
        CHECK_STR(name, engine_lines[LINE_REJECTED + code].name, name);
    }
}

static const struct thole_test tests[] = {{"each_is_whole", test_each_is_whole}};
THOLE_TEST_MAIN("engine_lines", tests)
