/* Any bytes as an id: the token is one token, and comes back. Any bytes as a token: what is accepted is
 * canonical. */
#include "message.h"
#include "subject.h"
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_subject(const struct buf *subject, size_t tokens)
{
    size_t dots = 0;
    for (size_t i = 0; i < subject->len; i++) {
        assert(subject->ptr[i] > ' ' && subject->ptr[i] < 0x7f);
        assert(subject->ptr[i] != '*' && subject->ptr[i] != '>');
        dots += subject->ptr[i] == '.';
    }
    assert(dots + 1 == tokens);
}

static void check_id(thole_slice id)
{
    struct buf to, back;
    buf_init(&to, SUBJECT_BYTES_MAX);
    buf_init(&back, SUBJECT_BYTES_MAX);
    bool const good = id_check(id, NULL) == THOLE_OK;
    assert((subject_token(&to, id, NULL) == THOLE_OK) == good);
    if (good) {
        check_subject(&to, 1);
        thole_status const status = subject_token_decode(buf_bytes(&to), &back, NULL);
        assert(status == THOLE_OK);
        assert(thole_slice_equal(buf_bytes(&back), id));
        (void)status;
    }
    if (subject_work(&to, "ns", THOLE_STR("q"), id, 1, 2, 3, NULL) == THOLE_OK)
        check_subject(&to, 8);
    if (id.len > 0 && subject_query(&to, "ns", 3, THOLE_STR("how"), id, NULL) == THOLE_OK)
        check_subject(&to, 6);
    if (subject_event(&to, "ns", THOLE_STR("o"), id, "failed", NULL) == THOLE_OK)
        check_subject(&to, 6);
    if (subject_work(&to, "ns", id, THOLE_STR("i"), 1, 2, 3, NULL) == THOLE_OK) /* as a name */
        check_subject(&to, 8);
    if (subject_inbox(&to, "ns", 3, THOLE_STR("event.paid"), id, NULL) == THOLE_OK)
        check_subject(&to, 7);
    if (subject_cancel(&to, "ns", THOLE_STR("i"), 1, NULL) == THOLE_OK && id.len > 0 &&
        subject_add_actor(&to, id, NULL) == THOLE_OK) {
        check_subject(&to, 7);
        thole_status const status = subject_actor(buf_bytes(&to), 5, &back, NULL);
        assert(status == THOLE_OK && thole_slice_equal(buf_bytes(&back), id));
        (void)status;
    }
    if (subject_actor(id, 1, &back, NULL) == THOLE_OK) /* as a subject */
        assert(back.len == 0 || id_check(buf_bytes(&back), NULL) == THOLE_OK);
    if (subject_inbox(&to, "ns", 3, id, THOLE_STR("i"), NULL) == THOLE_OK) /* as a route */
        check_subject(&to, 7);
    if (subject_history(&to, "ns", 3, id, 0, NULL) == THOLE_OK)
        check_subject(&to, 6);
    if (subject_cancel(&to, "ns", id, 1, NULL) == THOLE_OK)
        check_subject(&to, 5);
    if (id.len > 0 && subject_query(&to, "ns", 3, THOLE_STR("how"), id, NULL) == THOLE_OK)
        check_subject(&to, 6);
    if (good) /* no id of an instance is that of another inbox */
        assert(!subject_is_reply(buf_bytes(&to)));
    if (good && subject_inbox(&to, "ns", 3, THOLE_STR("result.worker"), id, NULL) == THOLE_OK)
        assert(!subject_is_results(buf_bytes(&to))); /* nor all of a partition's */
    buf_release(&to);
    buf_release(&back);
}

static void check_token(thole_slice token)
{
    struct buf id, again;
    buf_init(&id, SUBJECT_BYTES_MAX);
    buf_init(&again, SUBJECT_BYTES_MAX);
    if (subject_token_decode(token, &id, NULL) == THOLE_OK) {
        thole_status const status = subject_token(&again, buf_bytes(&id), NULL);
        assert(status == THOLE_OK);
        assert(thole_slice_equal(buf_bytes(&again), token));
        (void)status;
    }
    buf_release(&id);
    buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    thole_slice const input = {data, size};
    check_id(input);
    check_token(input);
    for (size_t i = 0; i < 4; i++)
        (void)subject_nth(input, i);
    (void)subject_partition(input, 8);
    (void)subject_is_reply(input);
    (void)subject_is_results(input);
    if (subject_is_reply(input))
        assert(input.len > 4 && memchr(input.ptr, ' ', input.len) == NULL &&
               memchr(input.ptr, '\n', input.len) == NULL);
    return 0;
}
