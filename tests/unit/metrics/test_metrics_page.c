/* docs/metrics.md has a row for each metric, as the table of rules says, and no other. */
#include "buf.h"
#include "metric_table.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

enum { PAGE_MAX = 256 * 1024 };

static void labels_text(const struct metric_rule *rule, struct buf *to)
{
    if (rule->label == NULL)
        return;
    if (rule->named != NULL)
        buf_printf(to, "`%s`; ", rule->named);
    buf_printf(to, "`%s`: ", rule->label);
    if (rule->values == NULL)
        buf_text(to, "each that the program registers");
    for (size_t i = 0; rule->values != NULL && rule->values[i] != NULL; i++)
        buf_printf(to, "%s%s", i == 0 ? "" : ", ", rule->values[i]);
}

static void row_text(const struct metric_rule *rule, struct buf *to)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    buf_printf(to, "| `%s` | %s | ", rule->name, kinds[rule->kind]);
    labels_text(rule, to);
    buf_printf(to, "%s| %s |\n", rule->label == NULL ? "" : " ", rule->help);
}

static void rules_text(unsigned roles, struct buf *to)
{
    for (int m = 0; m < METRICS; m++)
        if (metric_rules[m].roles == roles ||
            (roles == METRIC_WORKER && metric_rules[m].roles == METRIC_RUNS))
            row_text(&metric_rules[m], to);
}

/* The rows of the table under @p heading. */
static void rows_of(const char *page, const char *heading, struct buf *to)
{
    const char *at = strstr(page, heading);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    at = strstr(at, "\n|---");
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    for (at = strchr(at + 1, '\n') + 1; *at == '|'; at = strchr(at, '\n') + 1)
        buf_append(to, at, (size_t)(strchr(at, '\n') - at) + 1);
}

static void test_page(void)
{
    static const struct {
        const char *heading;
        unsigned roles;
    } rows[] = {{"\n## Of each process\n", METRIC_EACH},
                {"\n## Of an engine\n", METRIC_ENGINE},
                {"\n## Of a worker\n", METRIC_WORKER},
                {"\n## Of a binder\n", METRIC_BINDER},
                {"\n## Of a gateway\n", METRIC_GATEWAY}};
    static char page[PAGE_MAX];
    FILE *const file = fopen(THOLE_SOURCE_DIR "/docs/metrics.md", "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    size_t const len = fread(page, 1, sizeof page - 1, file);
    page[len] = '\0';
    (void)fclose(file);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf want, got;
        buf_init(&want, PAGE_MAX);
        buf_init(&got, PAGE_MAX);
        rules_text(rows[i].roles, &want);
        rows_of(page, rows[i].heading, &got);
        CHECK_STR(rows[i].heading, buf_cstr(&got), buf_cstr(&want));
        buf_release(&want);
        buf_release(&got);
    }
}

static const struct thole_test tests[] = {{"docs/metrics.md", test_page}};
THOLE_TEST_MAIN("metrics_page", tests)
