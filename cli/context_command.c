/* context: which there are, and which is in use. */
#include "context.h"
#include "file_fault.h"
#include "line_read.h"
#include "listing.h"
#include "memory.h"
#include "message.h"
#include "nats_url.h"
#include "option_file.h"
#include "postgres.h"
#include "servers.h"
#include "text.h"
#include "values.h"
#include "verb_options.h"
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 * 1024, NAMES_MAX = 1000 };

/* ---- files ---- */

/* A path below the folder of contexts; @p parts: the rest of the path. */
static thole_status path_below(const char *part, const char *name, const char *end,
                               char ret[CONTEXT_PATH_BYTES], thole_error *reterr)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool const own =
        base == NULL || base[0] != '/'; /* a relative one is to be ignored, says its specification */
    if (own && (home == NULL || home[0] == '\0'))
        return thole_fail(reterr, THOLE_INVALID,
                          "neither HOME nor XDG_CONFIG_HOME says where contexts are kept");
    int const n = snprintf(ret, CONTEXT_PATH_BYTES, "%s%s/thole%s%s%s", own ? home : base,
                           own ? "/.config" : "", part, name, end);
    return n > 0 && n < CONTEXT_PATH_BYTES
               ? THOLE_OK
               : thole_fail(reterr, THOLE_INVALID, "the path of the folder of contexts is too long");
}

const struct option_row context_rows[CONTEXT_ROWS] = {
    {.flag = "force",
     .kind = OPTION_SWITCH,
     FIELD(force),
     .help = "save: also over another one of that name"},
};

static thole_status file_of(const char *name, char ret[CONTEXT_PATH_BYTES], thole_error *reterr)
{
    return path_below("/contexts/", name, ".yaml", ret, reterr);
}

/* "" when none is in use. */
static thole_status read_current(char ret[THOLE_NAME_BYTES_MAX + 1], thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES];
    struct buf line;
    ret[0] = '\0';
    if (path_below("/current", "", "", path, NULL) != THOLE_OK)
        return THOLE_OK; /* no home, no contexts */
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT ? THOLE_OK : file_fault_read(path, errno, reterr);
    buf_init(&line, THOLE_NAME_BYTES_MAX);
    bool const empty =
        line_read(file, &line) == LINE_READ_NONE || (line.len == 0 && buf_status(&line) == THOLE_OK);
    bool const named =
        buf_status(&line) == THOLE_OK && name_check(buf_bytes(&line), "context", NULL) == THOLE_OK;
    (void)fclose(file);
    if (named)
        (void)snprintf(ret, THOLE_NAME_BYTES_MAX + 1, "%s", buf_cstr(&line));
    buf_release(&line);
    return empty || named ? THOLE_OK
                          : thole_fail(reterr, THOLE_INVALID,
                                       "%s has no name of a context; thole context use NAME", path);
}

/* By errno: it is not there, or cannot be used. */
static thole_status context_missing(const char *name, const char *path, thole_error *reterr)
{
    int const why = errno;
    if (why == ENOENT)
        return thole_fail(reterr, THOLE_NOT_FOUND, "there is no context %s", name);
    return file_fault_read(path, why, reterr);
}

thole_status context_path(const char *name, char ret[CONTEXT_PATH_BYTES], thole_error *reterr)
{
    char current[THOLE_NAME_BYTES_MAX + 1] = "";
    ret[0] = '\0';
    if (name == NULL || name[0] == '\0') {
        THOLE_TRY(read_current(current, reterr));
        name = current;
    }
    if (name[0] == '\0' || strcmp(name, "none") == 0)
        return THOLE_OK;
    THOLE_TRY(file_of(name, ret, reterr));
    return access(ret, R_OK) == 0 ? THOLE_OK : context_missing(name, ret, reterr);
}

/* Those folders of the path that are missing. */
static thole_status make_folders(char *path, thole_error *reterr)
{
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        int const made = mkdir(path, 0700);
        int const why = errno;
        if (made != 0 && why != EEXIST)
            return file_fault_write(path, why, reterr);
        *at = '/';
    }
    return THOLE_OK;
}

static thole_status context_command_write_file(char *path, const char *text, thole_error *reterr)
{
    THOLE_TRY(make_folders(path, reterr));
    return server_write_private(path, text, reterr);
}

/* ---- save ---- */

/* The options that a context keeps. */
static const struct {
    const char *key;
    size_t offset; /* of a text, in the options */
} context_members[] = {{"nats", offsetof(struct cli_options, nats_url)},
                       {"nats-creds", offsetof(struct cli_options, nats_creds)},
                       {"nats-ca", offsetof(struct cli_options, nats_ca)},
                       {"nats-cert", offsetof(struct cli_options, nats_cert)},
                       {"nats-key", offsetof(struct cli_options, nats_key)},
                       {"nats-server-name", offsetof(struct cli_options, nats_server_name)},
                       {"nats-inbox", offsetof(struct cli_options, nats_inbox)},
                       {"nats-api-prefix", offsetof(struct cli_options, nats_api_prefix)},
                       {"postgres", offsetof(struct cli_options, postgres)},
                       {"namespace", offsetof(struct cli_options, ns)},
                       {"actor", offsetof(struct cli_options, actor)},
                       {"vouched-actor", offsetof(struct cli_options, vouched_actor)}};

/* "": it has none. */
static const char *context_value(const struct cli_options *options, size_t i)
{
    const char *value;
    memcpy(&value, (const char *)options + context_members[i].offset, sizeof value);
    return value == NULL ? "" : value;
}

static void add_members(struct buf *to, const struct cli_options *options)
{
    for (size_t i = 0; i < sizeof context_members / sizeof context_members[0]; i++) {
        const char *const value = context_value(options, i);
        struct json json;
        if (value[0] == '\0')
            continue;
        buf_printf(to, "%s: ", context_members[i].key);
        json_to_buf(&json, to);
        json.lines = false;
        json_string(&json, thole_slice_from(value)); /* a string of JSON is one of YAML */
        buf_text(to, "\n");
    }
}

static void print_members(const char *name, const struct cli_options *options)
{
    struct json json;
    json_document(&json, stdout, "thole.context_options.v1");
    json_member_text(&json, "context", name);
    json_key(&json, "options");
    json_object(&json);
    for (size_t i = 0; i < sizeof context_members / sizeof context_members[0]; i++)
        if (context_value(options, i)[0] != '\0')
            json_member_text(&json, context_members[i].key, context_value(options, i));
    json_end(&json);
    json_end(&json);
}

static thole_status context_command_read_text(const char *path, struct buf *to, bool *ret_missing,
                                              thole_error *reterr)
{
    char bytes[4096];
    size_t len;
    FILE *file = fopen(path, "re");
    *ret_missing = file == NULL && errno == ENOENT;
    if (file == NULL)
        return file_fault_read(path, errno, reterr);
    while ((len = fread(bytes, 1, sizeof bytes, file)) > 0)
        buf_append(to, bytes, len);
    int const failed = ferror(file) ? errno : 0;
    (void)fclose(file);
    if (failed != 0)
        return file_fault_read(path, failed, reterr);
    return buf_status(to) == THOLE_OK ? THOLE_OK
                                      : thole_fail(reterr, THOLE_LIMIT, "%s is too long for a context", path);
}

/* Another context of that name stays, unless --force says that it may go. */
static thole_status may_save(const struct cli_options *options, const char *name, const char *path,
                             const struct buf *text, thole_error *reterr)
{
    struct buf there;
    thole_error ignored;
    bool missing;
    if (options->force)
        return THOLE_OK;
    buf_init(&there, FILE_BYTES_MAX);
    thole_status const status = context_command_read_text(path, &there, &missing, &ignored);
    bool const same = status == THOLE_OK && thole_slice_equal(buf_bytes(&there), buf_bytes(text));
    buf_release(&there);
    return missing || same ? THOLE_OK
                           : thole_fail(reterr, THOLE_CONFLICT,
                                        "there is a context %s, and it says something else", name);
}

static thole_status context_command_save(const struct cli_options *options, const char *name,
                                         thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES];
    struct buf text;
    THOLE_TRY(file_of(name, path, reterr));
    buf_init(&text, FILE_BYTES_MAX);
    add_members(&text, options);
    thole_status status = buf_status(&text);
    if (status != THOLE_OK)
        status = thole_fail(reterr, status, "the options are too long for a context");
    else
        status = may_save(options, name, path, &text, reterr);
    if (status == THOLE_OK)
        status = context_command_write_file(path, buf_cstr(&text), reterr);
    buf_release(&text);
    return status;
}

/* ---- use, delete, show ---- */

static thole_status context_command_use(const char *name, thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES], line[THOLE_NAME_BYTES_MAX + 2];
    THOLE_TRY(context_path(name, path, reterr));
    THOLE_TRY(path_below("/current", "", "", path, reterr));
    (void)snprintf(line, sizeof line, "%s\n", strcmp(name, "none") == 0 ? "" : name);
    return context_command_write_file(path, line, reterr);
}

static thole_status context_command_forget(const char *name, thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES], current[THOLE_NAME_BYTES_MAX + 1];
    THOLE_TRY(file_of(name, path, reterr));
    THOLE_TRY(read_current(current, reterr));
    if (unlink(path) != 0)
        return context_missing(name, path, reterr);
    return strcmp(current, name) == 0 ? context_command_use("none", reterr) : THOLE_OK;
}

/* User, password and token of each URL as dots. What is no URL is not shown at all: it has no known place
 * where a password stands. */
static void show_nats(const char *urls, struct buf *to)
{
    char *each[NATS_URLS_MAX];
    char *const copy = memory_text(urls);
    size_t len = 0;
    if (nats_urls_split(copy, each, &len, NULL) != THOLE_OK) {
        buf_text(to, "…");
        len = 0;
    }
    for (size_t i = 0; i < len; i++) {
        const char *const host = strrchr(each[i], '@'), *const scheme = strstr(each[i], "://");
        buf_text(to, i == 0 ? "" : ",");
        if (host != NULL && scheme != NULL)
            buf_append(to, each[i], (size_t)(scheme + strlen("://") - each[i]));
        buf_printf(to, "%s%s", host == NULL ? "" : "…", host == NULL ? each[i] : host);
    }
    free(copy);
}

/* "prod" of "…/prod.yaml" */
static const char *context_name_of(const char *path, char to[THOLE_NAME_BYTES_MAX + 1])
{
    const char *const base = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
    (void)snprintf(to, THOLE_NAME_BYTES_MAX + 1, "%.*s", (int)(strlen(base) - strlen(".yaml")), base);
    return to;
}

/* A file without secrets is shown as it is, another one as save would write it, with dots for them. */
static thole_status print_context(const struct cli *cli, const char *path, const struct buf *file,
                                  thole_error *reterr)
{
    const struct verbs *const verbs = cli->verbs;
    struct cli_options options;
    struct option_row rows[OPTION_ROWS_MAX];
    struct option_set const set = {.rows = rows, .len = verbs->options_len, .target = &options};
    struct option_file read = {.len = 0};
    struct buf nats, postgres, text;
    char name[THOLE_NAME_BYTES_MAX + 1];
    memset(&options, 0, sizeof options);
    assert(verbs->options_len <= OPTION_ROWS_MAX);
    memcpy(rows, verbs->options, verbs->options_len * sizeof *rows);
    for (size_t i = 0; i < verbs->options_len; i++)
        if (rows[i].env != NULL)
            rows[i].env = ""; /* the file's value, whatever the environment has */
    thole_status const status =
        option_file_read(&set, 1, path, &(struct option_given){{false}}, &read, reterr);
    buf_init(&nats, FILE_BYTES_MAX);
    buf_init(&postgres, FILE_BYTES_MAX);
    buf_init(&text, FILE_BYTES_MAX);
    bool secret = options.nats_url != NULL && nats_urls_have_secret(options.nats_url);
    if (options.nats_url != NULL) {
        show_nats(options.nats_url, &nats);
        options.nats_url = buf_cstr(&nats);
    }
    if (options.postgres != NULL) {
        secret = postgres_show(options.postgres, &postgres) || secret;
        options.postgres = buf_cstr(&postgres);
    }
    add_members(&text, &options);
    if (status == THOLE_OK && cli_is_json(cli))
        print_members(context_name_of(path, name), &options);
    else if (status == THOLE_OK)
        (void)fputs(buf_cstr(secret ? &text : file), stdout);
    buf_release(&nats);
    buf_release(&postgres);
    buf_release(&text);
    option_file_free(&read);
    return status;
}

static thole_status context_show(const struct cli *cli, const char *name, thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES];
    struct buf file;
    THOLE_TRY(context_path(name, path, reterr));
    if (path[0] == '\0')
        return thole_fail(reterr, THOLE_NOT_FOUND, "no context is in use; thole context use NAME");
    buf_init(&file, FILE_BYTES_MAX);
    bool missing;
    thole_status status = context_command_read_text(path, &file, &missing, reterr);
    if (status == THOLE_OK)
        status = print_context(cli, path, &file, reterr);
    buf_release(&file);
    return status;
}

/* ---- list ---- */

static int is_context(const struct dirent *entry)
{
    char name[THOLE_NAME_BYTES_MAX + 1];
    size_t const len = strlen(entry->d_name), end = strlen(".yaml");
    if (len <= end || len - end > THOLE_NAME_BYTES_MAX || strcmp(entry->d_name + len - end, ".yaml") != 0)
        return 0;
    (void)snprintf(name, sizeof name, "%.*s", (int)(len - end), entry->d_name);
    return name_check(thole_slice_from(name), "context", NULL) == THOLE_OK;
}

static void context_command_list_row(struct listing *listing, const char *file, const char *current)
{
    char name[THOLE_NAME_BYTES_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - strlen(".yaml")), file);
    bool const used = strcmp(name, current) == 0;
    switch (listing_row(listing, "thole.context.v1")) {
    case LISTING_STOP: return;
    case LISTING_TABLE: (void)printf("%s %s\n", used ? "*" : " ", name); break;
    case LISTING_NAME: listing_name(thole_slice_from(name)); break;
    case LISTING_JSON:
        json_member_text(&listing->json, "context", name);
        json_member_bool(&listing->json, "current", used);
        break;
    }
    (void)listing_row_end(listing); /* cli_finish() reports an error of stdout */
}

static int context_command_list(const struct cli *cli)
{
    char path[CONTEXT_PATH_BYTES], current[THOLE_NAME_BYTES_MAX + 1] = "";
    struct dirent **found = NULL;
    struct listing listing;
    thole_error error = {.status = THOLE_OK};
    listing_begin(&listing, cli, "thole.context_list.v1", "contexts", 0);
    error.status = path_below("/contexts", "", "", path, &error);
    const char *const chosen = cli->options.context; /* --context, or THOLE_CONTEXT */
    if (error.status == THOLE_OK && chosen != NULL && chosen[0] != '\0')
        (void)snprintf(current, sizeof current, "%s", chosen);
    else if (error.status == THOLE_OK)
        error.status = read_current(current, &error);
    int const n = error.status == THOLE_OK ? scandir(path, &found, is_context, alphasort) : 0;
    if (n < 0 && errno != ENOENT)
        error.status = file_fault_read(path, errno, &error);
    for (int i = 0; i < n; i++) {
        context_command_list_row(&listing, found[i]->d_name, current);
        free(found[i]);
    }
    free(found);
    return listing_end(&listing, error.status, &error,
                       "there are no contexts; thole context save NAME makes one");
}

/* ---- the verb ---- */

static thole_status context_command_change(const struct cli *cli, const char *what, const char *name,
                                           thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(name), "context", reterr));
    if (strcmp(what, "use") == 0)
        return context_command_use(name, reterr);
    if (strcmp(name, "none") == 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "none is no context: thole context use none ends the use of one");
    if (strcmp(what, "save") == 0)
        return context_command_save(&cli->options, name, reterr);
    return strcmp(what, "delete") == 0 ? context_command_forget(name, reterr)
                                       : context_show(cli, name, reterr);
}

int command_context(struct cli *cli)
{
    static const char *const whats[] = {"list", "show", "use", "save", "delete"};
    const char *what = cli->words[0], *name = cli->words_len > 1 ? cli->words[1] : NULL;
    thole_error error = {.status = THOLE_OK};
    size_t i = 0;
    while (i < sizeof whats / sizeof whats[0] && strcmp(whats[i], what) != 0)
        i++;
    if (i == sizeof whats / sizeof whats[0])
        return cli_misused(cli, "\"%.60s\" is none of: list, show, use, save, delete", what);
    if (strcmp(what, "list") == 0)
        return name == NULL ? context_command_list(cli)
                            : cli_misused(cli, "\"%.60s\" is one word too many", name);
    if (name == NULL && strcmp(what, "show") != 0)
        return cli_misused(cli, "NAME is missing");
    error.status = name == NULL ? context_show(cli, cli->options.context, &error)
                                : context_command_change(cli, what, name, &error);
    return error.status == THOLE_OK ? EXIT_DONE : cli_complain(cli, name == NULL ? "" : name, &error);
}
