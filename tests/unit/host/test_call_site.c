/* Where code is, in words; looking leaves nothing behind. */
#include "call_site.h"
#include "thole_cunit.h"
#include <dirent.h>

static size_t count_descriptors(void)
{
    size_t n = 0;
    DIR *const folder = opendir("/proc/self/fd");
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    while (readdir(folder) != NULL)
        n++;
    (void)closedir(folder);
    return n;
}

static void test_text(void)
{
    struct buf text;
    buf_init(&text, 4096);
    call_site_text(NULL, &text);
    CHECK_STR("nowhere", buf_cstr(&text), "unknown");
    size_t const before = count_descriptors();
    for (int i = 0; i < 5; i++) {
        buf_clear(&text);
        call_site_text((const void *)((uintptr_t)test_text + 4), &text);
        CU_ASSERT_PTR_NOT_NULL(
            strstr(buf_cstr(&text), "test_")); /* function and file, or at least the program */
    }
    CU_ASSERT_EQUAL(count_descriptors(), before);
    buf_release(&text);
}

static const struct thole_test tests[] = {{"text", test_text}};
THOLE_TEST_MAIN("call_site", tests)
