/* JSON as YAML: what needs quotes has them, and what is read of it again is the same. */
#include "thole_cunit.h"
#include "yaml_output.h"
#include <stdlib.h>
#include <string.h>

static char *written(const char *json)
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    CU_ASSERT_TRUE(yaml_write(to, json, strlen(json)));
    CU_ASSERT_EQUAL_FATAL(fclose(to), 0);
    return text;
}

static void test_documents(void)
{
    static const struct {
        const char *json, *yaml;
    } cases[] = {
        {"{\"a\":1,\"b\":true,\"c\":null,\"d\":-2}\n", "a: 1\nb: true\nc: null\nd: -2\n"},
        {"{\"a\":\"word\",\"b\":\"two words\",\"c\":\"\"}\n", "a: word\nb: two words\nc: ''\n"},
        {"[\"true\",\"No\",\"null\",\"y\",\"1\",\"1.5\",\"2026-01-01\",\"~\",\".inf\",\"0x1f\"]\n",
         "- 'true'\n- 'No'\n- 'null'\n- 'y'\n- '1'\n- '1.5'\n- '2026-01-01'\n- '~'\n- '.inf'\n- '0x1f'\n"},
        {"[\"a: b\",\"a #b\",\"- a\",\"a:\",\"{a\",\"*a\",\" a\",\"a \",\"'\"]\n",
         "- 'a: b'\n- 'a #b'\n- '- a'\n- 'a:'\n- '{a'\n- '*a'\n- ' a'\n- 'a '\n- ''''\n"},
        {"{\"a\":\"one\\ntwo\\n\",\"b\":\"\\u001b[31m\",\"c\":\"\\u0007\"}\n",
         "a: |\n  one\n  two\nb: \"\\e[31m\"\nc: \"\\a\"\n"},
        {"{\"a\":[],\"b\":{},\"c\":[{\"d\":[1,[2]]}]}\n", "a: []\nb: {}\nc:\n- d:\n  - 1\n  - - 2\n"},
        {"{\"a\":1}\n{\"a\":2}\n", "a: 1\n---\na: 2\n"},
        {"{\"größe\":\"größe 日本\"}\n", "größe: größe 日本\n"},
        {"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *const yaml = written(cases[i].json);
        CHECK_STR(cases[i].json, yaml, cases[i].yaml);
        free(yaml);
    }
}

static void test_failures(void)
{
    static const char json[] = "{\"a\":\"longer than what it fits into\"}\n";
    char room[8];
    FILE *to = fmemopen(room, sizeof room, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    (void)setvbuf(to, NULL, _IONBF, 0);
    CU_ASSERT_FALSE(yaml_write(to, json, strlen(json)));
    (void)fclose(to);
    to = fopen("/dev/null", "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    CU_ASSERT_FALSE(yaml_write(to, "{\"a\":[", 6)); /* cut off */
    (void)fclose(to);
}

static const struct thole_test tests[] = {{"documents", test_documents}, {"failures", test_failures}};

int main(void)
{
    return thole_run_suite("yaml_output", tests, ARRAY_LEN(tests));
}
