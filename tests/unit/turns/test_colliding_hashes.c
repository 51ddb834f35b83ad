/* Tables in which all hashes are the same: what is in them is told apart by its bytes, also once they grow.
 */
#include "audit_instances.h"
#include "hash.h"
#include "instance_names.h"
#include "thole_cunit.h"

enum { MANY = 40 };

uint64_t __wrap_hash_bytes(uint64_t seed, thole_slice bytes)
{
    (void)seed, (void)bytes;
    return 7;
}

static thole_slice nth(size_t i)
{
    static char texts[MANY][16];
    (void)snprintf(texts[i], sizeof texts[i], "name-%zu", i);
    return thole_slice_from(texts[i]);
}

static void test_names(void)
{
    static struct instance in; /* nothing of it but its names and its memory */
    struct name *names[MANY];
    arena_init(&in.arena, SIZE_MAX / 2);
    for (size_t i = 0; i < MANY; i++) {
        CU_ASSERT_PTR_NULL(names_find(&in, nth(i)));
        names[i] = names_intern(&in, nth(i));
        CU_ASSERT_PTR_NOT_NULL_FATAL(names[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        CU_ASSERT_TRUE(thole_slice_equal(names[i]->text, nth(i)));
        CU_ASSERT_PTR_EQUAL(names_find(&in, nth(i)), names[i]);
        CU_ASSERT_PTR_EQUAL(names_intern(&in, nth(i)), names[i]);
    }
    CU_ASSERT_EQUAL(in.names.len, MANY);
    arena_release(&in.arena);
}

static void test_audited_instances(void)
{
    struct audit_instances instances = {0};
    for (size_t i = 0; i < MANY; i++)
        audit_instances_at(&instances, nth(i))->sequence = i + 1;
    for (size_t i = 0; i < MANY; i++)
        CU_ASSERT_EQUAL(audit_instances_at(&instances, nth(i))->sequence, i + 1);
    CU_ASSERT_EQUAL(instances.len, MANY);
    audit_instances_release(&instances);
}

static const struct thole_test tests[] = {
    {"names", test_names},
    {"audited instances", test_audited_instances},
};
THOLE_TEST_MAIN("colliding_hashes", tests)
