/*
 * A session that goes on with the tasks of another one, whose gateway may be dead or cut off. The row of a
 * task names the worker of its session by the suffix of its name, which is a hash of the session's id. So who
 * knows the id, which is secret, knows the name as well, and the name does not reveal the id.
 */
#include "clock.h"
#include "memory.h"
#include "session_parts.h"
#include "tagged_hash.h"
#include "utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_printable(thole_slice text)
{
    for (size_t at = 0; at < text.len;) {
        size_t const n = utf8_character((thole_slice){text.ptr + at, text.len - at});
        if (n == 0 || utf8_is_control(text.ptr + at, n))
            return false;
        at += n;
    }
    return true;
}

thole_status session_check_resume(const Thole__V1__OpenSession *asked, thole_error *reterr)
{
    thole_slice const host = thole_slice_from(asked->host);
    if (host.len > RUN_HOST_BYTES_MAX || !is_printable(host))
        return thole_fail(reterr, THOLE_INVALID,
                          "host has %zu bytes, it must be at most %d of UTF-8 without control characters",
                          host.len, RUN_HOST_BYTES_MAX);
    if (asked->n_claims > SESSION_CLAIMS_MAX)
        return thole_fail(reterr, THOLE_INVALID, "claims has %zu texts, it must have at most %d",
                          asked->n_claims, SESSION_CLAIMS_MAX);
    if (asked->n_claims > 0 && asked->resume[0] == '\0')
        return thole_fail(reterr, THOLE_INVALID, "claims are of the session that resume names, it is empty");
    return THOLE_OK;
}

static void name_suffix(const char *id, char ret[SESSION_SUFFIX_BYTES])
{
    struct tagged_hash const hash = tagged_hash_make("session", thole_slice_from(id));
    (void)snprintf(ret, SESSION_SUFFIX_BYTES, "%.*s", SESSION_SUFFIX_BYTES - 1, hash.text);
}

void session_plan_resume(struct session *session, const Thole__V1__OpenSession *asked)
{
    size_t const n = asked->n_claims;
    name_suffix(session->id, session->suffix);
    if (asked->resume[0] == '\0')
        return;
    name_suffix(asked->resume, session->from);
    session->claim_bytes = memory_array(n + 1, sizeof *session->claim_bytes);
    session->resumption.claims = memory_array(n + 1, sizeof *session->resumption.claims);
    session->resumption.from = session->from;
    for (size_t i = 0; i < n; i++) {
        struct resumed_claim *const claim = &session->resumption.claims[session->resumption.len];
        if (task_claim_read(asked->claims[i], &session->claim_bytes[i], claim)) {
            claim->place = i;
            session->resumption.len++;
        }
    }
}

void session_resumed(void *arg, struct worker_host *host, struct thole_activity *act, size_t n)
{
    struct session *const session = arg;
    const Thole__V1__OpenSession *const asked = (const Thole__V1__OpenSession *)session->open->message;
    (void)host;
    (void)pthread_mutex_lock(&session->lock);
    struct task *const task =
        session_task_new(session, act, asked->claims[session->resumption.claims[n].place]);
    task->given_ms = clock_monotonic_ms();
    task->resumed = true;
    act->remote = task;
    session_move_task(session, task, TASK_GIVEN);
    (void)pthread_mutex_unlock(&session->lock);
}

char **session_gone_claims(const struct session *session, size_t *ret_len)
{
    const Thole__V1__OpenSession *const asked = (const Thole__V1__OpenSession *)session->open->message;
    char **const gone = memory_array(asked->n_claims + 1, sizeof(char *));
    size_t n = 0;
    for (size_t i = 0; i < asked->n_claims; i++)
        if (session_find_task(session, asked->claims[i]) == NULL)
            gone[n++] = asked->claims[i];
    *ret_len = n;
    return gone;
}

void session_forget_resume(struct session *session)
{
    free(session->resumption.claims);
    free(session->claim_bytes);
    session->resumption = (struct remote_resumption){.len = 0};
    session->claim_bytes = NULL;
}
