#include "defect_stage.h"
#include "api.h"
#include "audit_stream.h"
#include "bindings.h"
#include "holds.h"
#include "jscan.h"
#include "json.h"
#include "restored.h"
#include "server_process.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_MAX = 4 * 1024 * 1024, COMMAND_BYTES = 2048 };

static bool api(struct stage *stage, const char *verb, const char *target, thole_slice body,
                struct buf *answer)
{
    thole_error err = {0};
    thole_status const status = api_call(stage->connection, verb, target, body, answer, NULL, &err);
    if (status != THOLE_OK)
        fprintf(stderr, "  %s %s: %s\n", verb, target, err.text);
    return status == THOLE_OK;
}

/* The object @p config of the answer with one field changed; "null": without it. */
static void changed(thole_slice config, const char *field, const char *value, struct json *json)
{
    thole_slice key, old;
    size_t at = 0;
    json_object(json);
    while (json_field(config, &at, &key, &old))
        if (!thole_slice_equal(key, thole_slice_from(field)))
            json_member_copy(json, key, old);
    if (strcmp(value, "null") != 0)
        json_member_copy(json, thole_slice_from(field), thole_slice_from(value));
    json_end(json);
}

static bool edit_stream(struct stage *stage, const char *name, const char *field, const char *value)
{
    struct buf answer, body;
    struct json json;
    thole_slice config;
    buf_init(&answer, ANSWER_MAX);
    buf_init(&body, ANSWER_MAX);
    bool done = api(stage, "STREAM.INFO", name, THOLE_STR(""), &answer) &&
                json_find(buf_bytes(&answer), "config", &config);
    if (done) {
        json_to_buf(&json, &body);
        changed(config, field, value, &json);
        done = api(stage, "STREAM.UPDATE", name, buf_bytes(&body), &answer);
    }
    buf_release(&answer);
    buf_release(&body);
    return done;
}

static bool edit_queue(struct stage *stage, const char *queue, const char *field, const char *value)
{
    char target[200];
    struct buf answer, body;
    struct json json;
    thole_slice config;
    buf_init(&answer, ANSWER_MAX);
    buf_init(&body, ANSWER_MAX);
    (void)snprintf(target, sizeof target, "THOLE_default_WORK.q_%s", queue);
    bool done = api(stage, "CONSUMER.INFO", target, THOLE_STR(""), &answer) &&
                json_find(buf_bytes(&answer), "config", &config);
    if (done) {
        json_to_buf(&json, &body);
        json_object(&json);
        json_member_text(&json, "stream_name", "THOLE_default_WORK");
        json_member_text(&json, "action", "update");
        json_key(&json, "config");
        changed(config, field, value, &json);
        json_end(&json);
        done = api(stage, "CONSUMER.CREATE", target, buf_bytes(&body), &answer);
    }
    buf_release(&answer);
    buf_release(&body);
    return done;
}

static bool send_api(struct stage *stage, const char *verb, const char *target, const char *body);

/* A consumer that was made while the files of the one before were removed has none (nats-server 2.10.27). */
static bool edit_queue_at_last(struct stage *stage, const char *queue, const char *field, const char *value)
{
    char target[200];
    (void)snprintf(target, sizeof target, "THOLE_default_WORK.q_%s", queue);
    for (int i = 0; i < 3; i++) {
        if (edit_queue(stage, queue, field, value))
            return true;
        (void)send_api(stage, "CONSUMER.DELETE", target, "");
        process_pause_ms(3000); /* a worker makes it again */
    }
    return false;
}

static bool send_api(struct stage *stage, const char *verb, const char *target, const char *body)
{
    struct buf answer;
    buf_init(&answer, ANSWER_MAX);
    bool const done = api(stage, verb, target, thole_slice_from(body), &answer);
    buf_release(&answer);
    return done;
}

static bool put(struct stage *stage, const char *subject, const char *value)
{
    struct buf answer;
    thole_slice found;
    thole_error err = {0};
    buf_init(&answer, ANSWER_MAX);
    bool const done =
        connection_request(stage->connection, subject, thole_slice_from(value), &answer, &err) == THOLE_OK &&
        json_find(buf_bytes(&answer), "seq", &found);
    buf_release(&answer);
    return done;
}

static bool remove_peer(struct stage *stage, const char *name)
{
    struct buf answer;
    thole_slice replicas, first, peer;
    char body[200];
    size_t at = 0;
    buf_init(&answer, ANSWER_MAX);
    bool const found = api(stage, "STREAM.INFO", name, THOLE_STR(""), &answer) &&
                       json_path(buf_bytes(&answer), "cluster.replicas", &replicas) &&
                       json_item(replicas, &at, &first) && json_find(first, "name", &peer);
    if (found)
        (void)snprintf(body, sizeof body, "{\"peer\":%.*s}", THOLE_FMT(peer));
    buf_release(&answer);
    if (found) /* the server removes it, and says that it has no other to take its place */
        (void)send_api(stage, "STREAM.PEER.REMOVE", name, body);
    return found;
}

static bool make_store(struct stage *stage, const char *name)
{
    struct connection *const c = stage->connection;
    thole_status const status = strstr(name, "HOLDS") != NULL      ? holds_require(c, "default", NULL)
                                : strstr(name, "BINDINGS") != NULL ? bindings_require(c, "default", NULL)
                                : strstr(name, "AUDIT") != NULL    ? audit_stream_require(c, "default", NULL)
                                                                   : restored_require(c, "default", NULL);
    return status == THOLE_OK;
}

bool stage_break(struct stage *stage, enum defect_way way, const char *name, const char *field,
                 const char *value)
{
    char target[200], body[200];
    (void)snprintf(target, sizeof target, "THOLE_default_WORK.q_%s", name);
    switch (way) {
    case WAY_REMOVE: return send_api(stage, "STREAM.DELETE", name, "");
    case WAY_EDIT: return edit_stream(stage, name, field, value);
    case WAY_PUT: return put(stage, name, value);
    case WAY_QUEUE: return edit_queue_at_last(stage, name, field, value);
    case WAY_NO_QUEUE: /* a server that cannot remove a file of it has removed it all the same */
        (void)send_api(stage, "CONSUMER.DELETE", target, "");
        return true;
    case WAY_PAUSE:
        (void)snprintf(body, sizeof body, "{\"pause_until\":%s}", value);
        return send_api(stage, "CONSUMER.PAUSE", target, body);
    case WAY_SQL: (void)stack_sql(stage->stack, value); return true;
    case WAY_PEER: return remove_peer(stage, name);
    case WAY_MAKE: return make_store(stage, name) && send_api(stage, "STREAM.DELETE", name, "");
    }
    return false;
}

int stage_command(const char *command, char *ret, size_t cap)
{
    FILE *const from = popen(command, "r");
    size_t len = 0, n;
    ret[0] = '\0';
    if (from == NULL)
        return -1;
    while (len + 1 < cap && (n = fread(ret + len, 1, cap - 1 - len, from)) > 0)
        len += n;
    ret[len] = '\0';
    int const status = pclose(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs the commands that thole recover prints. */
static bool recover(char *ret, size_t cap)
{
    char command[COMMAND_BYTES];
    static const char begin[] = "recover --accept-loss ";
    (void)stage_command(THOLE_COMMAND " recover 2>&1", ret, cap);
    const char *const at = strstr(ret, begin);
    if (at == NULL)
        return false;
    (void)snprintf(command, sizeof command, THOLE_COMMAND " recover --accept-loss %.36s --reason test 2>&1",
                   at + sizeof begin - 1);
    return stage_command(command, ret, cap) == 0;
}

static bool restore_stream(const struct stage *stage, const char *stream, const char *field,
                           const char *value, char *ret, size_t cap)
{
    char command[COMMAND_BYTES];
    bool const bare = strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
    (void)snprintf(command, sizeof command,
                   "python3 " THOLE_SOURCE_DIR
                   "/tests/integration/faults/stream_restore.py '%s' %s %s '%s%s%s' 2>&1",
                   stage->stack->nats.url, stream, field, bare ? "" : "\"", value, bare ? "" : "\"");
    return stage_command(command, ret, cap) == 0;
}

bool stage_remedy(struct stage *stage, const char *remedy, char *ret, size_t cap)
{
    char command[COMMAND_BYTES], bucket[100], key[100], value[100], stream[100], subject[300];
    static const char give_up[] = "or give it up: thole recover -n default";
    ret[0] = '\0';
    if (strstr(remedy, give_up) != NULL) /* as the command says that it names */
        return recover(ret, cap);
    if (strncmp(remedy, "thole ", 6) == 0) {
        (void)snprintf(command, sizeof command, THOLE_COMMAND " %s 2>&1", remedy + 6);
        int const code = stage_command(command, ret, cap);
        return code == 0 || code == 12; /* 12: something else is still not well */
    }
    if (sscanf(remedy, "nats kv put %99s %99s %99s", bucket, key, value) == 3) {
        (void)snprintf(subject, sizeof subject, "$KV.%s.%s", bucket, key);
        return put(stage, subject, value);
    }
    if (sscanf(remedy, "nats stream rm %99s --force", stream) == 1)
        return send_api(stage, "STREAM.DELETE", stream, "");
    if (sscanf(remedy, "nats stream backup %99s DIR && %*[^,], where FILE has %99s %99s", stream, key,
               value) == 3)
        return restore_stream(stage, stream, key, value, ret, cap);
    if (sscanf(remedy, "nats stream edit %99s --replicas %99s --force", stream, value) == 2)
        return edit_stream(stage, stream, "num_replicas", value);
    if (sscanf(remedy, "nats stream edit %99s --max-age=%99[0-9]s --force", stream, value) == 2) {
        (void)snprintf(subject, sizeof subject, "%s000000000", value);
        return edit_stream(stage, stream, "max_age", subject);
    }
    return false;
}

bool stage_get(uint16_t port, const char *path, char *ret, size_t cap)
{
    struct sockaddr_in const to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[128];
    size_t len = 0;
    ssize_t n = -1;
    int const fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const size =
        snprintf(request, sizeof request,
                 "GET %s HTTP/1.0\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n", path, port);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
        write(fd, request, (size_t)size) == size)
        while (len + 1 < cap && (n = read(fd, ret + len, cap - 1 - len)) > 0)
            len += (size_t)n;
    ret[len] = '\0';
    if (fd >= 0)
        (void)close(fd);
    return n == 0 && len > 0;
}

uint16_t stage_console(const struct stack *stack)
{
    static char text[4096];
    uint16_t const port = server_free_port();
    struct process process = {.len = 0};
    pid_t pid = 0;
    process_arg(&process, "%s", THOLE_COMMAND);
    process_arg(&process, "console");
    process_arg(&process, "--http=%u", port);
    (void)snprintf(process.log, sizeof process.log, "%s/console.log", stack->dir);
    if (process_spawn(&process, &pid, NULL) != THOLE_OK)
        return 0;
    for (int i = 0; i < 200; i++, process_pause_ms(50))
        if (stage_get(port, "/healthz", text, sizeof text))
            return port;
    return 0;
}

uint64_t stage_metric(uint16_t port, const char *series)
{
    static char text[512 * 1024];
    unsigned long long value = 0;
    const char *const at = stage_get(port, "/metrics", text, sizeof text) ? strstr(text, series) : NULL;
    return at != NULL && sscanf(at + strlen(series), " %llu", &value) == 1 ? value : UINT64_MAX;
}
