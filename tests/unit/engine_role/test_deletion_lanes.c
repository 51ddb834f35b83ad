/* Deletions are found in the log's order, as a walk from one to the next finds them, and in few rounds. */
#include "deletion_lanes.h"
#include "thole_cunit.h"
#include <stdlib.h>
#include <string.h>

enum { DELETIONS_MAX = 4000 };

struct log_deletion {
    uint64_t sequence;
    enum dispensable_age age;
    bool last;
};
/* A log, of which only the deletions are told. */
static struct log_deletion deletions[DELETIONS_MAX];
static size_t deletions_len;
static uint64_t rng = 88172645463325252u;

static uint64_t draw(uint64_t bound)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (rng >> 11) % bound;
}

/* @p n deletions, on average @p apart sequences from each other; the last @p young of them are young. */
static void log_fill(size_t n, uint64_t apart, size_t young)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        at += 1 + draw(2 * apart);
        deletions[i] = (struct log_deletion){.sequence = at, .age = DISPENSABLE_AGE_OLD, .last = draw(4) > 0};
        if (i + young >= n)
            deletions[i].age = DISPENSABLE_AGE_YOUNG;
        else if (draw(50) == 0)
            deletions[i].age = DISPENSABLE_AGE_UNREADABLE;
    }
    deletions_len = n;
}

static const struct log_deletion *log_next(uint64_t from)
{
    for (size_t i = 0; i < deletions_len; i++)
        if (deletions[i].sequence >= from)
            return &deletions[i];
    return NULL;
}

/* The place of a deletion is its subject and its bytes. */
static const struct log_deletion *log_at(thole_slice subject)
{
    uint64_t sequence;
    CU_ASSERT_EQUAL_FATAL(subject.len, sizeof sequence);
    memcpy(&sequence, subject.ptr, sizeof sequence);
    return log_next(sequence);
}

static void answer(struct deletion_lanes *lanes, const struct deletion_question *question)
{
    const struct log_deletion *const found =
        question->last ? log_at(question->subject) : log_next(question->from);
    struct log_deletion const none = {.sequence = 0}, copy = found == NULL ? none : *found;
    thole_slice const place = {(const uint8_t *)&copy.sequence, sizeof copy.sequence};
    uint64_t const sequence = question->last && !copy.last ? copy.sequence + 1 : copy.sequence;
    CU_ASSERT_EQUAL(deletion_lanes_answer(lanes, question, sequence, copy.age, place, place), THOLE_OK);
}

/* All that a walk finds is found, from @p from to @p to. Returns the rounds. */
static size_t walk(uint64_t from, uint64_t to)
{
    struct deletion_lanes *const lanes = malloc(sizeof *lanes);
    const struct log_deletion *next = log_next(from);
    const struct deletion_item *item;
    size_t rounds = 0;
    deletion_lanes_init(lanes, from, to);
    do {
        struct deletion_question asked[DELETION_QUESTIONS_MAX];
        for (size_t n; (n = deletion_lanes_ask(lanes, asked)) > 0; rounds++)
            for (size_t i = 0; i < n; i++)
                answer(lanes, &asked[i]);
        for (size_t i = 0; (item = deletion_lanes_item(lanes, i)) != NULL; i++) {
            CU_ASSERT_PTR_NOT_NULL_FATAL(next);
            CU_ASSERT_EQUAL_FATAL(item->sequence, next->sequence);
            CU_ASSERT_NOT_EQUAL(next->age, DISPENSABLE_AGE_YOUNG);
            CU_ASSERT_EQUAL(item->last, next->age == DISPENSABLE_AGE_OLD && next->last);
            CU_ASSERT_EQUAL(memcmp(item->bytes.ptr, &next->sequence, sizeof next->sequence), 0);
            next = log_next(next->sequence + 1);
        }
    } while (deletion_lanes_advance(lanes));
    CU_ASSERT(next == NULL || next->age == DISPENSABLE_AGE_YOUNG || next->sequence > to);
    deletion_lanes_release(lanes);
    free(lanes);
    return rounds;
}

static void test_as_a_walk(void)
{
    for (int i = 0; i < 400; i++) {
        log_fill(draw(600), 1 + draw(40), draw(3) == 0 ? draw(300) : 0);
        uint64_t const end = deletions_len == 0 ? 0 : deletions[deletions_len - 1].sequence;
        (void)walk(1 + draw(20), 1 + draw(end + 20));
        (void)walk(1, UINT64_MAX - 1);
    }
}

/* Deletions close together after many that are far apart, and the other way round; the last ones are young,
 * some lanes later. */
static void test_uneven(void)
{
    enum { HALF = DELETIONS_MAX / 2, YOUNG = 10, FAR = 1000, BEGIN = 2000 * FAR, BEHIND = 30 * FAR };
    for (int far_first = 0; far_first < 2; far_first++) {
        log_fill(DELETIONS_MAX, 1, YOUNG);
        for (uint64_t k = 0; k < HALF; k++) {
            deletions[k].sequence = far_first ? (k + 1) * FAR : k + 1;
            deletions[HALF + k].sequence = BEGIN + (far_first ? k : k * FAR);
        }
        for (uint64_t k = DELETIONS_MAX - YOUNG; k < DELETIONS_MAX; k++)
            deletions[k].sequence += BEHIND;
        (void)walk(1, UINT64_MAX - 1);
    }
}

static void test_few_rounds(void)
{
    log_fill(2048, 8, 0);
    size_t const rounds = walk(1, UINT64_MAX - 1);
    CU_ASSERT(rounds < 2048 / 16);
    log_fill(10, 8, 0);
    CU_ASSERT(walk(1, UINT64_MAX - 1) <= 12); /* one lane, and the end */
    log_fill(400, 8, 400);
    CU_ASSERT_EQUAL(walk(1, UINT64_MAX - 1), 1);
}

static const struct thole_test tests[] = {
    {"as a walk", test_as_a_walk},
    {"uneven", test_uneven},
    {"few rounds", test_few_rounds},
};
THOLE_TEST_MAIN("deletion_lanes", tests)
