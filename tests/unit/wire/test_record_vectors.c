/* proto/golden/records: the hashes of records are the same here and in record_hash.py, which shares no code
 * with this; and what is called form 1 there is so. */
#include "buf.h"
#include "jscan.h"
#include "record_hash.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { TEXT_BYTES = 1024 * 1024, VECTORS_MIN = 24, SHELL_CANNOT = 127 };
#define FOLDER THOLE_SOURCE_DIR "/proto/golden/records/"

struct vector {
    struct buf name, ns, record, hash;
    uint64_t partition;
};

static void take_hex(thole_slice item, const char *member, struct buf *to)
{
    struct buf text;
    thole_slice value;
    unsigned byte;
    buf_init(&text, TEXT_BYTES);
    CU_ASSERT_TRUE(json_find(item, member, &value) && json_text(value, &text));
    for (const char *at = buf_cstr(&text); sscanf(at, "%2x", &byte) == 1; at += 2)
        buf_append(to, &(uint8_t){(uint8_t)byte}, 1);
    buf_release(&text);
}

static void check(thole_slice item, struct record_hash *last)
{
    struct vector v = {.partition = 0};
    thole_slice value;
    struct buf *const all[] = {&v.name, &v.ns, &v.record, &v.hash};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_init(all[i], TEXT_BYTES);
    CU_ASSERT_TRUE(json_find(item, "name", &value) && json_text(value, &v.name));
    CU_ASSERT_TRUE(json_find(item, "namespace", &value) && json_text(value, &v.ns));
    CU_ASSERT_TRUE(json_find(item, "partition", &value) && json_uint(value, &v.partition));
    take_hex(item, "record", &v.record);
    take_hex(item, "hash", &v.hash);
    struct record_hash const hash =
        record_hash_make(buf_bytes(&v.ns), (uint32_t)v.partition, buf_bytes(&v.record));
    bool const fits = thole_slice_equal(record_hash_slice(&hash), buf_bytes(&v.hash));
    if (!fits)
        fprintf(stderr, "\n  [%s] has another hash\n", buf_cstr(&v.name));
    CU_ASSERT_TRUE(fits);
    if (strstr(buf_cstr(&v.name), "erased") != NULL && strstr(buf_cstr(&v.name), "form 1") == NULL)
        CU_ASSERT_TRUE(record_hash_equal(&hash, last)); /* as before the redaction */
    *last = hash;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        buf_release(all[i]);
}

static thole_slice read_vectors(void)
{
    static char text[TEXT_BYTES];
    FILE *const file = fopen(FOLDER "vectors.json", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    size_t const len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    return (thole_slice){(const uint8_t *)text, len};
}

static void test_here(void)
{
    struct record_hash last = {{0}};
    thole_slice item;
    size_t at = 0, n = 0;
    thole_slice const list = read_vectors();
    for (; json_item(list, &at, &item); n++)
        check(item, &last);
    CU_ASSERT_TRUE(n >= VECTORS_MIN);
}

static void test_there(void)
{
    if (WEXITSTATUS(system("python3 -c ''")) == SHELL_CANNOT) {
        fprintf(stderr, "\n  no python3: record_hash.py is not run\n");
        return;
    }
    CU_ASSERT_EQUAL(system("python3 " FOLDER "record_hash.py " FOLDER "vectors.json"), 0);
    CU_ASSERT(system("sed 's/08011003180c/08011003180d/' " FOLDER
                     "vectors.json >record_vectors.tmp && python3 " FOLDER
                     "record_hash.py record_vectors.tmp >record_vectors.out") != 0);
    (void)remove("record_vectors.tmp");
    (void)remove("record_vectors.out");
}

/* ---- records that are nearly those of the vectors: both must see the same form in them ---- */

enum { NEARLY_EACH = 1000, NEARLY_BYTES = 4096 };
static uint64_t drawn = 15;

static uint32_t draw(uint32_t below)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(drawn >> 33) % below;
}

/* A bit, a byte, or an end of it. Records are short, so most changes meet a tag or a length. */
static void spoil(struct buf *record)
{
    if (record->len == 0)
        return;
    size_t const at = draw((uint32_t)record->len);
    switch (draw(5)) {
    case 0: record->ptr[at] ^= (uint8_t)(1U << draw(8)); break;
    case 1: record->ptr[at] = (uint8_t)draw(256); break;
    case 2: record->ptr[at] |= 0x80; break;
    case 3: /* taken out */
        memmove(record->ptr + at, record->ptr + at + 1, record->len - at - 1);
        record->len--;
        break;
    default: /* twice */
        buf_append(record, &(uint8_t){0}, 1);
        memmove(record->ptr + at + 1, record->ptr + at, record->len - at - 1);
    }
}

static void put_hex(FILE *to, thole_slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        (void)fprintf(to, "%02x", bytes.ptr[i]);
}

static void put_nearly(FILE *to, thole_slice item, size_t vector)
{
    struct buf record;
    buf_init(&record, NEARLY_BYTES);
    for (size_t i = 0; i < NEARLY_EACH; i++) {
        buf_clear(&record);
        take_hex(item, "record", &record);
        for (uint32_t n = draw(3) + 1; n > 0; n--)
            spoil(&record);
        struct record_hash const hash = record_hash_make(THOLE_STR("default"), 0, buf_bytes(&record));
        (void)fprintf(to,
                      "%s{\"name\": \"%zu of vector %zu\", \"namespace\": \"default\", \"partition\": 0, "
                      "\"record\": \"",
                      i + vector == 0 ? "[" : ",\n", i, vector);
        put_hex(to, buf_bytes(&record));
        (void)fprintf(to, "\", \"hash\": \"");
        put_hex(to, record_hash_slice(&hash));
        (void)fprintf(to, "\"}");
    }
    buf_release(&record);
}

static void test_nearly(void)
{
    thole_slice item;
    size_t at = 0, n = 0;
    if (WEXITSTATUS(system("python3 -c ''")) == SHELL_CANNOT)
        return;
    thole_slice const list = read_vectors();
    FILE *const to = fopen("record_nearly.tmp", "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    while (json_item(list, &at, &item))
        put_nearly(to, item, n++);
    (void)fputs("]\n", to);
    (void)fclose(to);
    CU_ASSERT_EQUAL(system("python3 " FOLDER "record_hash.py record_nearly.tmp"), 0);
    (void)remove("record_nearly.tmp");
}

static const struct thole_test tests[] = {
    {"here", test_here},
    {"record_hash.py", test_there},
    {"records that are nearly those", test_nearly},
};
THOLE_TEST_MAIN("record_vectors", tests)
