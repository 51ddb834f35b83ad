/* The golden bytes read as when they were written, and are still written so. */
#include "golden.h"
#include "thole_cunit.h"

static void check(void *arg, struct golden golden, thole_slice bytes, thole_slice text)
{
    struct buf then, then_text, show;
    char row[100];
    (void)arg;
    (void)snprintf(row, sizeof row, "%s/%s", golden.group, golden.name);
    buf_init(&then, GOLDEN_BYTES_MAX);
    buf_init(&then_text, GOLDEN_BYTES_MAX);
    buf_init(&show, GOLDEN_BYTES_MAX);
    bool const found = golden_read(golden_path(1, golden, ".bin"), &then) &&
                       golden_read(golden_path(1, golden, ".txt"), &then_text);
    if (!found)
        fprintf(stderr, "\n  [%s] is not there: run golden_write\n", row);
    CU_ASSERT(found);
    golden_show(golden, buf_bytes(&then), &show);
    CHECK_STR(row, buf_cstr(&show), buf_cstr(&then_text));
    CU_ASSERT(thole_slice_equal(bytes, buf_bytes(&then))); /* until the form is no longer written */
    CU_ASSERT(thole_slice_equal(text, buf_bytes(&then_text)));
    buf_release(&then);
    buf_release(&then_text);
    buf_release(&show);
}

static void samples(void)
{
    golden_samples(check, NULL);
}

/* Whoever adds a kind adds its sample, and with it a golden file. */
static void every_kind(void)
{
    CU_ASSERT_EQUAL(sample_events_len, EVENT_LAST - EVENT_STARTED + 1);
    for (size_t i = 0; i < sample_events_len; i++)
        CU_ASSERT_EQUAL(sample_events[i].kind, EVENT_STARTED + i);
    CHECK_STR("no kind behind the last", event_kind_name((enum event_kind)(EVENT_LAST + 1)), "Unknown");
    CU_ASSERT_EQUAL(sample_messages_len, MESSAGE_LAST - MESSAGE_START + 1);
    for (size_t i = 0; i < sample_messages_len; i++)
        CU_ASSERT_EQUAL(sample_messages[i].kind, MESSAGE_START + i);
}

static const struct thole_test tests[] = {
    {"samples", samples},
    {"every kind", every_kind},
};
THOLE_TEST_MAIN("golden bytes", tests)
