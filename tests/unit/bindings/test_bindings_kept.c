/* Data of thole bind and binders in NATS, and the treatment of its answers: bindings_kept.transcript has
 * calls ("$ CALL ARGUMENTS | ANSWER | …"), each followed by the requests, the answers and the result. An
 * answer "-" stands for none in time; further ones: stored. With THOLE_WRITE_TRANSCRIPT=1 in the environment
 * the file is written again, to be read and committed. */
#include "bindings.h"
#include "header_names.h"
#include "link.h"
#include "reader.h"
#include "subject_list.h"
#include "thole_cunit.h"
#include "transcript.h"
#include "work_message.h"
#include "wrap_link.h"
#include "wrap_one_attempt.h"
#include <inttypes.h>
#include <stdlib.h>

#define TRANSCRIPT THOLE_SOURCE_DIR "/tests/unit/bindings/bindings_kept.transcript"
enum { PARTS_MAX = 12, ARGUMENTS_MAX = 6 };

static struct {
    FILE *said;
    char *answers[PARTS_MAX]; /* NULL: no more */
    size_t answered;
} play;
static thole_error err;

/* ---- the server ---- */

static const char *next_answer(void)
{
    const char *const answer = play.answered < PARTS_MAX ? play.answers[play.answered] : NULL;
    play.answered += answer != NULL;
    return answer;
}

thole_status __wrap_connection_request_with(struct connection *connection, const char *subject,
                                            const struct header *headers, size_t headers_len,
                                            thole_slice body, struct buf *ret, thole_error *reterr)
{
    const char *const answer = next_answer();
    (void)connection;
    (void)fprintf(play.said, "  asks %s %.*s", subject, THOLE_FMT(body));
    for (size_t i = 0; i < headers_len; i++)
        (void)fprintf(play.said, " %s=%.*s", headers[i].key, THOLE_FMT(headers[i].value));
    (void)fprintf(play.said, "\n");
    if (answer != NULL && strcmp(answer, "-") == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no answer");
    if (answer != NULL && strcmp(answer, "denied") == 0)
        return thole_fail(reterr, THOLE_DENIED, "no permission");
    buf_clear(ret);
    buf_text(ret, answer == NULL ? "{\"type\":\"t\",\"seq\":9}" : answer);
    return buf_status(ret);
}

thole_status __wrap_connection_request(struct connection *connection, const char *subject, thole_slice body,
                                       struct buf *ret, thole_error *reterr)
{
    return __wrap_connection_request_with(connection, subject, NULL, 0, body, ret, reterr);
}

/* REVISION VALUE; nothing: there is none. */
thole_status __wrap_stream_last_by_subject(struct connection *connection, const char *stream,
                                           const char *subject, uint64_t *ret_sequence, struct buf *ret_body,
                                           thole_error *reterr)
{
    bool const of_mark = strstr(subject, "_CONFIG.store_") != NULL; /* nobody has made one before */
    const char *const answer = of_mark ? NULL : next_answer();
    char *end = NULL;
    (void)connection;
    (void)fprintf(play.said, "  last of %s %s\n", stream, subject);
    if (answer != NULL && answer[0] == '-')
        return thole_fail(reterr, strcmp(answer, "-") == 0 ? THOLE_UNAVAILABLE : THOLE_NOT_FOUND,
                          "no answer");
    *ret_sequence = answer == NULL ? 0 : strtoull(answer, &end, 10);
    if (end != NULL)
        buf_text(ret_body, end + (*end == ' '));
    return buf_status(ret_body);
}

/* MESSAGES LAST; none: there is no stream. */
thole_status __wrap_stream_bounds(struct connection *connection, const char *stream,
                                  struct stream_bounds *ret, thole_error *reterr)
{
    const char *const answer = next_answer();
    (void)connection;
    (void)fprintf(play.said, "  bounds of %s\n", stream);
    *ret = (struct stream_bounds){.first = 1};
    if (answer != NULL && strcmp(answer, "none") == 0)
        return THOLE_NOT_FOUND;
    if (answer == NULL || sscanf(answer, "%" SCNu64 " %" SCNu64, &ret->messages, &ret->last) != 2)
        return thole_fail(reterr, answer == NULL ? THOLE_NOT_FOUND : THOLE_UNAVAILABLE, "no bounds");
    return THOLE_OK;
}

/* SUBJECT SUBJECT … */
thole_status __wrap_stream_subjects(struct connection *connection, const char *stream, uint64_t since,
                                    size_t most, stream_subject_fn *each, void *arg, thole_error *reterr)
{
    const char *at = next_answer();
    (void)connection;
    (void)fprintf(play.said, "  subjects of %s since %" PRIu64 ", at most %zu\n", stream, since, most);
    if (at == NULL || strcmp(at, "-") == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no subjects");
    for (size_t len; *at != '\0'; at += len + (at[len] == ' ')) {
        len = strcspn(at, " ");
        each(arg, (thole_slice){(const uint8_t *)at, len});
    }
    return THOLE_OK;
}

/* SEQUENCE SUBJECT VALUE of each entry. */
thole_status __wrap_ordered_reader_open(struct connection *connection,
                                        const struct ordered_reader_options *options,
                                        struct ordered_reader **ret, thole_error *reterr)
{
    const char *answer;
    (void)connection;
    (void)fprintf(play.said, "  follows %s %s%s\n", options->stream, options->filter,
                  options->last_per_subject ? ", the last of each subject" : "");
    while ((answer = next_answer()) != NULL) {
        char subject[80] = "", value[80] = "";
        uint64_t sequence = 0;
        if (strcmp(answer, "-") == 0)
            return thole_fail(reterr, THOLE_UNAVAILABLE, "no consumer");
        (void)sscanf(answer, "%" SCNu64 " %79s %79s", &sequence, subject, value);
        options->each(
            options->arg, sequence,
            &(struct delivery){.subject = thole_slice_from(subject), .body = thole_slice_from(value)});
    }
    *ret = (struct ordered_reader *)&play;
    return THOLE_OK;
}

void __wrap_ordered_reader_close(struct ordered_reader *reader)
{
    CU_ASSERT_PTR_EQUAL(reader, (struct ordered_reader *)&play);
}

/* ---- calls ---- */

static void result(thole_status status)
{
    (void)fprintf(play.said, "= %s", thole_status_name(status));
    if (status != THOLE_OK)
        (void)fprintf(play.said, ": %s", err.text);
    (void)fputc('\n', play.said);
}

static thole_status on_rule(void *arg, thole_slice name, thole_slice value, uint64_t revision)
{
    (void)arg;
    (void)fprintf(play.said, "  rule %.*s %" PRIu64 ": %.*s\n", THOLE_FMT(name), revision, THOLE_FMT(value));
    return thole_slice_equal(value, THOLE_STR("stop")) ? thole_fail(&err, THOLE_CANCELLED, "stopped")
                                                       : THOLE_OK;
}

static void on_change(void *arg, thole_slice name, thole_slice value, uint64_t revision)
{
    (void)on_rule(arg, name, value, revision);
}

static thole_status get(const char *ns, thole_slice name)
{
    uint64_t revision = 0;
    struct buf value;
    buf_init(&value, 1000);
    buf_text(&value, "of before");
    thole_status const status = bindings_get(NULL, ns, name, &value, &revision, &err);
    (void)fprintf(play.said, "  %" PRIu64 " %s\n", revision, buf_cstr(&value));
    buf_release(&value);
    return status;
}

static thole_status put(const char *ns, thole_slice name, const char *value, const char *over)
{
    uint64_t revision = 0;
    thole_status const status =
        bindings_put(NULL, ns, name, thole_slice_from(value),
                     strcmp(over, "any") == 0 ? BINDINGS_ANY : strtoull(over, NULL, 10), &revision, &err);
    (void)fprintf(play.said, "  revision %" PRIu64 "\n", revision);
    return status;
}

static thole_status state(const char *ns, thole_slice rule, thole_slice stream)
{
    struct binding_state s;
    thole_status const status = binding_consumer_state(NULL, ns, rule, stream, &s, &err);
    (void)fprintf(play.said, "  pending %" PRIu64 ", acks %" PRIu64 ", again %" PRIu64 ", done %" PRIu64 "\n",
                  s.pending, s.ack_pending, s.redelivered, s.acked);
    return status;
}

static thole_status stream_of(thole_slice subject)
{
    struct buf stream;
    buf_init(&stream, 1000);
    buf_text(&stream, "of before");
    thole_status const status = binding_stream_of(NULL, subject, &stream, &err);
    (void)fprintf(play.said, "  %s\n", buf_cstr(&stream));
    buf_release(&stream);
    return status;
}

static thole_status watch(const char *ns)
{
    struct bindings_watch *watch = NULL;
    thole_status const status = bindings_watch_open(NULL, ns, on_change, NULL, &watch, &err);
    CU_ASSERT_EQUAL(status == THOLE_OK, watch != NULL);
    bindings_watch_close(watch);
    return status;
}

static thole_status call(char *const *words)
{
    const char *const verb = words[0], *const ns = words[1];
    thole_slice const name = thole_slice_from(words[2]), more = thole_slice_from(words[3]);
    struct binding_consumer const consumer = {.stream = more,
                                              .subject = THOLE_STR("orders.>"),
                                              .only_new = words[5] != NULL && strcmp(words[5], "new") == 0,
                                              .in_flight =
                                                  words[4] == NULL ? 0 : strtoull(words[4], NULL, 10)};
    if (strcmp(verb, "bucket") == 0)
        return bindings_require(NULL, ns, &err);
    if (strcmp(verb, "get") == 0)
        return get(ns, name);
    if (strcmp(verb, "put") == 0)
        return put(ns, name, words[3], words[4]);
    if (strcmp(verb, "delete") == 0)
        return bindings_delete(NULL, ns, name, &err);
    if (strcmp(verb, "list") == 0)
        return bindings_list(NULL, ns, on_rule, NULL, &err);
    if (strcmp(verb, "watch") == 0)
        return watch(ns);
    if (strcmp(verb, "stream") == 0)
        return stream_of(name);
    if (strcmp(verb, "takes") == 0)
        return binding_stream_takes(NULL, name, more, &err);
    if (strcmp(verb, "ensure") == 0)
        return binding_consumer_ensure(NULL, ns, name, &consumer, &err);
    if (strcmp(verb, "state") == 0)
        return state(ns, name, more);
    CU_ASSERT_STRING_EQUAL(verb, "forget");
    return binding_consumer_delete(NULL, ns, name, more, &err);
}

static void play_line(const char *line, FILE *to)
{
    char *words[ARGUMENTS_MAX] = {NULL}, *const room = strdup(line);
    memset(&play, 0, sizeof play);
    memset(&err, 0, sizeof err);
    play.said = to;
    char *answers = strstr(room, " | ");
    if (answers != NULL)
        *answers = '\0';
    for (size_t n = 0; answers != NULL; n++) {
        CU_ASSERT_FATAL(n < PARTS_MAX);
        play.answers[n] = answers + 3;
        answers = strstr(answers + 3, " | ");
        if (answers != NULL)
            *answers = '\0';
    }
    char *rest = room, *word;
    for (size_t n = 0; n < ARGUMENTS_MAX && (word = strtok_r(rest, " ", &rest)) != NULL; n++)
        words[n] = word;
    result(call(words));
    free(room);
}

static void test_transcript(void)
{
    transcript_check(TRANSCRIPT, play_line);
}

static void test_nothing_stays(void)
{
    transcript_check_heap(TRANSCRIPT, play_line);
}

/* By name, whatever order they came in; of more than there is room for it is said that there are more. */
static void test_view(void)
{
    struct header const some[] = {{"b", THOLE_STR("2")}, {"ab", THOLE_STR("3")}, {"a", THOLE_STR("1")}};
    static struct header many[BOUND_HEADERS_MAX + 1];
    static char names[BOUND_HEADERS_MAX + 1][8];
    struct bound_view view;
    CU_ASSERT_EQUAL_FATAL(nats_Open(-1), NATS_OK);
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        (void)snprintf(names[i], sizeof names[i], "h%zu", i);
        many[i] = (struct header){names[i], THOLE_STR("v")};
    }
    for (size_t n = 0; n < 4; n++) {
        size_t const len = (const size_t[]){0, 3, BOUND_HEADERS_MAX, BOUND_HEADERS_MAX + 1}[n];
        natsMsg *native = NULL;
        CU_ASSERT_EQUAL_FATAL(
            link_message("orders.a", NULL, len == 3 ? some : many, len, THOLE_STR("body"), &native, NULL),
            THOLE_OK);
        struct work_message const message = {
            .native = native,
            .reply = (char *)"$JS.ACK.ORDERS.thole_shop_bind_r.2.70.5.1700000000000000123.0"};
        bound_view(&message, &view);
        CU_ASSERT_TRUE(thole_slice_equal(view.subject, THOLE_STR("orders.a")));
        CU_ASSERT_TRUE(thole_slice_equal(view.stream, THOLE_STR("ORDERS")));
        CU_ASSERT_TRUE(thole_slice_equal(view.body, THOLE_STR("body")));
        CU_ASSERT_TRUE(view.sequence == 70 && view.deliveries == 2 && view.stored_ns == 1700000000000000123);
        CU_ASSERT_EQUAL(view.headers_len, len > BOUND_HEADERS_MAX ? BOUND_HEADERS_MAX : len);
        CU_ASSERT_EQUAL(view.more_headers, len > BOUND_HEADERS_MAX);
        for (size_t i = 0; len == 3 && i < 3; i++) {
            CU_ASSERT_TRUE(thole_slice_equal(view.headers[i].name,
                                             thole_slice_from((const char *[]){"a", "ab", "b"}[i])));
            CU_ASSERT_TRUE(thole_slice_equal(view.headers[i].value,
                                             thole_slice_from((const char *[]){"1", "3", "2"}[i])));
        }
        natsMsg_Destroy(native);
    }
}

static const struct thole_test tests[] = {
    {"transcript", test_transcript}, {"nothing stays", test_nothing_stays}, {"view", test_view}};
THOLE_TEST_MAIN("bindings_kept", tests)
