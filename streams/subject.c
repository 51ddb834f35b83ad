/* The subject gate. */
#include "subject.h"
#include "message.h"
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CRC_TABLE_LEN = 16 };

/* CRC-32 (IEEE 802.3, reflected, 0xedb88320) of every half byte. */
static const uint32_t crc_table[CRC_TABLE_LEN] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

uint32_t subject_partition(thole_slice instance, uint32_t partitions)
{
    assert(partitions > 0);
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < instance.len; i++) {
        crc ^= instance.ptr[i];
        crc = (crc >> 4) ^ crc_table[crc & 15];
        crc = (crc >> 4) ^ crc_table[crc & 15];
    }
    return (crc ^ 0xffffffffu) % partitions;
}

/* Bytes that are not escaped in a token: none of them is special to NATS. */
static bool token_byte(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '~';
}

static void append_token(struct buf *to, thole_slice id)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < id.len; i++) {
        uint8_t const c = id.ptr[i];
        if (token_byte(c))
            buf_append(to, &c, 1);
        else
            buf_append(to, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
    }
}

static int subject_hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* buf's own failure with a text. */
static thole_status subject_finished(const struct buf *to, thole_error *reterr)
{
    if (buf_status(to) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(reterr, buf_status(to), "subject does not fit into %zu bytes", to->max);
}

thole_status subject_token(struct buf *to, thole_slice id, thole_error *reterr)
{
    buf_clear(to);
    THOLE_TRY(id_check(id, reterr));
    append_token(to, id);
    return subject_finished(to, reterr);
}

thole_status subject_token_decode(thole_slice token, struct buf *to, thole_error *reterr)
{
    buf_clear(to);
    for (size_t i = 0; i < token.len; i++) {
        uint8_t c = token.ptr[i];
        if (c == '%') {
            int const high = i + 2 < token.len ? subject_hex_digit(token.ptr[i + 1]) : -1;
            int const low = i + 2 < token.len ? subject_hex_digit(token.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return thole_fail(reterr, THOLE_INVALID, "subject token has a bad escape at byte %zu", i);
            c = (uint8_t)(high * 16 + low);
            i += 2;
            if (token_byte(c)) /* each id has exactly one token, so that one instance has one subject */
                return thole_fail(reterr, THOLE_INVALID, "subject token escapes 0x%02x without need", c);
        } else if (!token_byte(c)) {
            return thole_fail(reterr, THOLE_INVALID, "subject token has byte 0x%02x at %zu", c, i);
        }
        buf_append(to, &c, 1);
    }
    THOLE_TRY(subject_finished(to, reterr));
    return id_check(buf_bytes(to), reterr);
}

static thole_status subject_begin(struct buf *to, const char *ns, thole_error *reterr)
{
    buf_clear(to);
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    buf_printf(to, "thole.%s.", ns);
    return THOLE_OK;
}

static thole_status subject_check_partition(uint32_t p, thole_error *reterr)
{
    if (p < PARTITIONS_MAX)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "partition %u is not below %d", p, PARTITIONS_MAX);
}

/* "<kind>.<name>" of the bytes that names have, and '~'. */
static thole_status check_route(thole_slice route, thole_error *reterr)
{
    thole_slice const kind = subject_nth(route, 0), name = subject_nth(route, 1);
    bool good = kind.len > 0 && name.len > 0 && kind.len + 1 + name.len == route.len;
    for (size_t i = 0; good && i < route.len; i++)
        good = i == kind.len || token_byte(route.ptr[i]);
    if (good)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "the subject's kind and name are not two tokens");
}

thole_status subject_inbox(struct buf *to, const char *ns, uint32_t p, thole_slice route,
                           thole_slice instance, thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(subject_check_partition(p, reterr));
    THOLE_TRY(check_route(route, reterr));
    THOLE_TRY(id_check(instance, reterr));
    buf_printf(to, "in.%u.%.*s.", p, THOLE_FMT(route));
    append_token(to, instance);
    return subject_finished(to, reterr);
}

static thole_status subject_waiting(struct buf *to, const char *ns, uint32_t p, const char *route,
                                    thole_slice instance, const char *by, thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(subject_check_partition(p, reterr));
    THOLE_TRY(id_check(instance, reterr));
    buf_printf(to, "in.%u.%s.", p, route);
    append_token(to, instance);
    buf_text(to, by);
    return subject_finished(to, reterr);
}

thole_status subject_controls(struct buf *to, const char *ns, uint32_t p, size_t which, thole_slice instance,
                              thole_error *reterr)
{
    assert(which < SUBJECT_CONTROLS);
    return subject_waiting(to, ns, p, "control.*", instance, which == 0 ? "" : ".by.*", reterr);
}

thole_status subject_deletions(struct buf *to, const char *ns, uint32_t p, size_t which, thole_slice instance,
                               thole_error *reterr)
{
    assert(which < SUBJECT_DELETIONS);
    return subject_waiting(to, ns, p, which < 2 ? "control.delete" : "control.force_delete", instance,
                           which % 2 == 0 ? "" : ".by.*", reterr);
}

thole_status subject_starts(struct buf *to, const char *ns, uint32_t p, size_t which, thole_slice instance,
                            thole_error *reterr)
{
    static const struct {
        const char *route, *by;
    } starts[SUBJECT_STARTS] = {
        {"start.*", ""},      {"start.*", ".by.*"}, {"start_event.*", ""}, {"start_event.*", ".by.*"},
        {"engine.start", ""},
    };
    assert(which < SUBJECT_STARTS);
    return subject_waiting(to, ns, p, starts[which].route, instance, starts[which].by, reterr);
}

static const char SEVERAL[] = "+", RESULTS[] = "result.worker";

thole_status subject_results(struct buf *to, const char *ns, uint32_t p, thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(subject_check_partition(p, reterr));
    buf_printf(to, "in.%u.%s.%s", p, RESULTS, SEVERAL);
    return subject_finished(to, reterr);
}

bool subject_is_results(thole_slice subject)
{
    return subject_nth(subject, INBOX_TOKEN_INSTANCE + 1).len == 0 &&
           thole_slice_equal(subject_nth(subject, INBOX_TOKEN_INSTANCE), thole_slice_from(SEVERAL)) &&
           thole_slice_equal(subject_inbox_route(subject), thole_slice_from(RESULTS));
}

bool subject_is_of_log(thole_slice subject, const char *ns, uint32_t p)
{
    char number[12];
    thole_slice const kind = subject_nth(subject, 2);
    (void)snprintf(number, sizeof number, "%" PRIu32, p);
    return thole_slice_equal(subject_nth(subject, 0), THOLE_STR("thole")) &&
           thole_slice_equal(subject_nth(subject, 1), thole_slice_from(ns)) &&
           (thole_slice_equal(kind, THOLE_STR("hist")) || thole_slice_equal(kind, THOLE_STR("ctl"))) &&
           thole_slice_equal(subject_nth(subject, 3), thole_slice_from(number));
}

thole_slice subject_inbox_route(thole_slice subject)
{
    thole_slice const kind = subject_nth(subject, INBOX_TOKEN_KIND);
    thole_slice const name = subject_nth(subject, INBOX_TOKEN_KIND + 1);
    return name.len == 0 ? name : (thole_slice){kind.ptr, kind.len + 1 + name.len};
}

static const char BY[] = "by";

thole_status subject_add_actor(struct buf *to, thole_slice actor, thole_error *reterr)
{
    if (actor.len == 0)
        return THOLE_OK;
    THOLE_TRY(id_check(actor, reterr));
    buf_printf(to, ".%s.", BY);
    append_token(to, actor);
    return subject_finished(to, reterr);
}

thole_status subject_actor(thole_slice subject, size_t by, struct buf *ret, thole_error *reterr)
{
    thole_slice const word = subject_nth(subject, by), actor = subject_nth(subject, by + 1);
    buf_clear(ret);
    if (word.len == 0)
        return THOLE_OK;
    if (!thole_slice_equal(word, thole_slice_from(BY)) || actor.len == 0 ||
        actor.ptr + actor.len != subject.ptr + subject.len)
        return thole_fail(reterr, THOLE_INVALID, "the end of the subject is not .by.<actor>");
    return subject_token_decode(actor, ret, reterr);
}

thole_status subject_history(struct buf *to, const char *ns, uint32_t p, thole_slice instance,
                             uint64_t execution, thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(subject_check_partition(p, reterr));
    THOLE_TRY(id_check(instance, reterr));
    buf_printf(to, "hist.%u.", p);
    append_token(to, instance);
    if (execution == EXECUTIONS_ALL)
        buf_text(to, ".*");
    else if (execution == EXECUTION_DELETED)
        buf_text(to, "." SUBJECT_DELETED);
    else
        buf_printf(to, ".%llu", (unsigned long long)execution);
    return subject_finished(to, reterr);
}

thole_status subject_control(struct buf *to, const char *ns, uint32_t p, const char *what,
                             thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(subject_check_partition(p, reterr));
    THOLE_TRY(name_check(thole_slice_from(what), "control subject", reterr));
    buf_printf(to, "ctl.%u.%s", p, what);
    return subject_finished(to, reterr);
}

thole_status subject_audit(struct buf *to, const char *ns, uint32_t p, const char *what, thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(subject_check_partition(p, reterr));
    if (what != NULL)
        THOLE_TRY(name_check(thole_slice_from(what), "audit subject", reterr));
    buf_printf(to, "audit.%u.%s", p, what == NULL ? "*" : what);
    return subject_finished(to, reterr);
}

thole_status subject_restored(struct buf *to, const char *ns, uint32_t p, thole_slice instance,
                              const char *what, thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(subject_check_partition(p, reterr));
    THOLE_TRY(id_check(instance, reterr));
    if (what[0] != '*')
        THOLE_TRY(name_check(thole_slice_from(what), "restored subject", reterr));
    buf_printf(to, "restored.%u.", p);
    append_token(to, instance);
    buf_printf(to, ".%s", what);
    return subject_finished(to, reterr);
}

thole_status subject_work(struct buf *to, const char *ns, thole_slice queue, thole_slice instance,
                          uint64_t execution, uint64_t activity_id, uint64_t try_number, thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(name_check(queue, "queue", reterr));
    THOLE_TRY(id_check(instance, reterr));
    buf_printf(to, "work.%.*s.", THOLE_FMT(queue));
    append_token(to, instance);
    buf_printf(to, ".%llu.%llu.%llu", (unsigned long long)execution, (unsigned long long)activity_id,
               (unsigned long long)try_number);
    return subject_finished(to, reterr);
}

thole_status subject_cancel(struct buf *to, const char *ns, thole_slice instance, uint64_t execution,
                            thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(id_check(instance, reterr));
    buf_text(to, "cancel.");
    append_token(to, instance);
    buf_printf(to, ".%llu", (unsigned long long)execution);
    return subject_finished(to, reterr);
}

thole_status subject_event(struct buf *to, const char *ns, thole_slice orchestration, thole_slice instance,
                           const char *kind, thole_error *reterr)
{
    bool const any_kind = kind == NULL || kind[0] == 0;
    THOLE_TRY(subject_begin(to, ns, reterr));
    if (orchestration.len > 0)
        THOLE_TRY(name_check(orchestration, "orchestration", reterr));
    if (instance.len > 0 || !any_kind)
        THOLE_TRY(id_check(instance, reterr));
    if (!any_kind)
        THOLE_TRY(name_check(thole_slice_from(kind), "event kind", reterr));
    buf_text(to, "event.");
    buf_slice(to, orchestration.len > 0 ? orchestration : THOLE_STR("*"));
    buf_text(to, ".");
    if (instance.len > 0)
        append_token(to, instance);
    else
        buf_text(to, "*");
    buf_text(to, ".");
    buf_text(to, any_kind ? "*" : kind);
    return subject_finished(to, reterr);
}

thole_status subject_emitted(struct buf *to, const char *ns, thole_slice orchestration, thole_slice instance,
                             thole_slice type, thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(name_check(orchestration, "orchestration", reterr));
    THOLE_TRY(id_check(instance, reterr));
    THOLE_TRY(dotted_check(type, reterr));
    buf_printf(to, "event.%.*s.", THOLE_FMT(orchestration));
    append_token(to, instance);
    buf_printf(to, ".ce.%.*s", THOLE_FMT(type));
    return subject_finished(to, reterr);
}

thole_status subject_query(struct buf *to, const char *ns, uint32_t p, thole_slice query,
                           thole_slice instance, thole_error *reterr)
{
    THOLE_TRY(subject_begin(to, ns, reterr));
    THOLE_TRY(subject_check_partition(p, reterr));
    if (query.len > 0)
        THOLE_TRY(name_check(query, "query", reterr));
    if (instance.len > 0)
        THOLE_TRY(id_check(instance, reterr));
    buf_printf(to, "query.%u.", p);
    buf_slice(to, query.len > 0 ? query : THOLE_STR("*"));
    buf_text(to, ".");
    if (instance.len > 0)
        append_token(to, instance);
    else
        buf_text(to, "*");
    return subject_finished(to, reterr);
}

bool subject_begins_with(thole_slice text, const char *with)
{
    size_t const len = strlen(with);
    return text.len > len && memcmp(text.ptr, with, len) == 0;
}

bool subject_is_reply(thole_slice subject)
{
    bool previous_dot = true;
    if (!subject_begins_with(subject, "_INBOX") && !subject_begins_with(subject, "_R_."))
        return false;
    for (size_t i = 0; i < subject.len; i++) {
        uint8_t const c = subject.ptr[i];
        if (c <= ' ' || c >= 0x7f || c == '*' || c == '>' || (c == '.' && previous_dot))
            return false;
        previous_dot = c == '.';
    }
    return !previous_dot && subject.len < SUBJECT_BYTES_MAX;
}

thole_status stream_name(struct buf *to, const char *ns, const char *kind, int64_t p, thole_error *reterr)
{
    buf_clear(to);
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    THOLE_TRY(name_check(thole_slice_from(kind), "stream kind", reterr));
    buf_printf(to, "THOLE_%s_%s", ns, kind);
    if (p >= 0) {
        if (p >= PARTITIONS_MAX)
            return thole_fail(reterr, THOLE_INVALID, "partition %lld is not below %d", (long long)p,
                              PARTITIONS_MAX);
        buf_printf(to, "_%u", (uint32_t)p);
    }
    return subject_finished(to, reterr);
}

thole_slice subject_nth(thole_slice subject, size_t index)
{
    const uint8_t *at = subject.ptr;
    size_t left = subject.len;
    while (left > 0) {
        const uint8_t *dot = memchr(at, '.', left);
        size_t const len = dot == NULL ? left : (size_t)(dot - at);
        if (index-- == 0)
            return (thole_slice){at, len};
        if (dot == NULL)
            break;
        at = dot + 1;
        left -= len + 1;
    }
    return (thole_slice){NULL, 0};
}

size_t subject_split(thole_slice subject, thole_slice *ret, size_t max)
{
    size_t n = 0, begin = 0;
    memset(ret, 0, max * sizeof *ret);
    for (size_t i = 0; i < subject.len && n < max; i++)
        if (subject.ptr[i] == '.') {
            ret[n++] = (thole_slice){subject.ptr + begin, i - begin};
            begin = i + 1;
        }
    if (subject.len > 0 && n < max)
        ret[n++] = (thole_slice){subject.ptr + begin, subject.len - begin};
    return n;
}
