/* context: which there are, and which is in use. */
#include "context.h"
#include "inbox_prefix.h"
#include "listing.h"
#include "message.h"
#include "servers.h"
#include "text.h"
#include "values.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 * 1024, NAMES_MAX = 1000 };

/* ---- files ---- */

/* A path below the folder of contexts; @p parts: what stands behind it. */
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

static thole_status file_of(const char *name, char ret[CONTEXT_PATH_BYTES], thole_error *reterr)
{
    return path_below("/contexts/", name, ".yaml", ret, reterr);
}

/* "" when none is in use. */
static thole_status read_current(char ret[THOLE_NAME_BYTES_MAX + 1], thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES], line[THOLE_NAME_BYTES_MAX + 2] = "";
    ret[0] = '\0';
    if (path_below("/current", "", "", path, NULL) != THOLE_OK)
        return THOLE_OK; /* no home, no contexts */
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return errno == ENOENT
                   ? THOLE_OK
                   : thole_fail(reterr, THOLE_INVALID, "cannot read %s: %s", path, strerror(errno));
    bool const read = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    line[strcspn(line, "\n")] = '\0';
    if (!read || line[0] == '\0')
        return THOLE_OK;
    if (name_check(thole_slice_from(line), "context", reterr) != THOLE_OK)
        return thole_fail(reterr, THOLE_INVALID, "%s has no name of a context; thole context use NAME", path);
    (void)snprintf(ret, THOLE_NAME_BYTES_MAX + 1, "%.*s", THOLE_NAME_BYTES_MAX, line);
    return THOLE_OK;
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
    if (access(ret, R_OK) == 0)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "there is no context %s (%s: %s); thole context list", name, ret,
                      strerror(errno));
}

/* Those folders of the path that are missing. */
static thole_status make_folders(char *path, thole_error *reterr)
{
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        int const made = mkdir(path, 0700);
        int const why = errno;
        if (made != 0 && why != EEXIST)
            return thole_fail(reterr, THOLE_INVALID, "cannot make the folder %s: %s", path, strerror(why));
        *at = '/';
    }
    return THOLE_OK;
}

static thole_status write_file(char *path, const char *text, thole_error *reterr)
{
    THOLE_TRY(make_folders(path, reterr));
    return server_write_private(path, text, reterr);
}

/* ---- save ---- */

static void add_member(struct buf *to, const char *key, const char *value)
{
    struct json json;
    if (value == NULL || value[0] == '\0')
        return;
    buf_printf(to, "%s: ", key);
    json_to_buf(&json, to);
    json.lines = false;
    json_string(&json, thole_slice_from(value)); /* a string of JSON is one of YAML */
    buf_text(to, "\n");
}

static thole_status save(const struct cli_options *options, const char *name, thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES];
    struct buf text;
    THOLE_TRY(file_of(name, path, reterr));
    buf_init(&text, FILE_BYTES_MAX);
    add_member(&text, "nats", options->nats_url);
    add_member(&text, "nats-creds", options->nats_creds);
    add_member(&text, "nats-ca", options->nats_ca);
    add_member(&text, "nats-cert", options->nats_cert);
    add_member(&text, "nats-key", options->nats_key);
    add_member(&text, "nats-server-name", options->nats_server_name);
    if (strcmp(options->nats_inbox, INBOX_PREFIX_DEFAULT) != 0)
        add_member(&text, "nats-inbox", options->nats_inbox);
    add_member(&text, "postgres", options->postgres);
    add_member(&text, "namespace", options->ns);
    add_member(&text, "actor", options->actor);
    add_member(&text, "vouched-actor", options->vouched_actor);
    thole_status status = buf_status(&text);
    status = status == THOLE_OK ? write_file(path, buf_cstr(&text), reterr)
                                : thole_fail(reterr, status, "the options are too long for a context");
    buf_release(&text);
    return status;
}

/* ---- use, delete, show ---- */

static thole_status use(const char *name, thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES], line[THOLE_NAME_BYTES_MAX + 2];
    THOLE_TRY(context_path(name, path, reterr));
    THOLE_TRY(path_below("/current", "", "", path, reterr));
    (void)snprintf(line, sizeof line, "%s\n", strcmp(name, "none") == 0 ? "" : name);
    return write_file(path, line, reterr);
}

static thole_status forget(const char *name, thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES], current[THOLE_NAME_BYTES_MAX + 1];
    THOLE_TRY(file_of(name, path, reterr));
    THOLE_TRY(read_current(current, reterr));
    if (unlink(path) != 0)
        return thole_fail(reterr, errno == ENOENT ? THOLE_NOT_FOUND : THOLE_INVALID, "cannot remove %s: %s",
                          path, strerror(errno));
    return strcmp(current, name) == 0 ? use("none", reterr) : THOLE_OK;
}

static thole_status show(const char *name, thole_error *reterr)
{
    char path[CONTEXT_PATH_BYTES], bytes[4096];
    size_t len;
    THOLE_TRY(context_path(name, path, reterr));
    if (path[0] == '\0')
        return thole_fail(reterr, THOLE_NOT_FOUND, "no context is in use; thole context use NAME");
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return thole_fail(reterr, THOLE_INVALID, "cannot read %s: %s", path, strerror(errno));
    while ((len = fread(bytes, 1, sizeof bytes, file)) > 0)
        (void)fwrite(bytes, 1, len, stdout);
    (void)fclose(file);
    return THOLE_OK;
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

static void list_row(struct listing *listing, const char *file, const char *current)
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

static int list(const struct cli *cli)
{
    char path[CONTEXT_PATH_BYTES], current[THOLE_NAME_BYTES_MAX + 1] = "";
    struct dirent **found = NULL;
    struct listing listing;
    thole_error error = {.status = THOLE_OK};
    listing_begin(&listing, cli, "thole.context_list.v1", "contexts", 0);
    error.status = path_below("/contexts", "", "", path, &error);
    if (error.status == THOLE_OK)
        error.status = read_current(current, &error);
    int const n = error.status == THOLE_OK ? scandir(path, &found, is_context, alphasort) : 0;
    if (n < 0 && errno != ENOENT)
        error.status = thole_fail(&error, THOLE_INVALID, "cannot read %s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        list_row(&listing, found[i]->d_name, current);
        free(found[i]);
    }
    free(found);
    return listing_end(&listing, error.status, &error,
                       "there are no contexts; thole context save NAME makes one");
}

/* ---- the verb ---- */

static thole_status change(const struct cli *cli, const char *what, const char *name, thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(name), "context", reterr));
    if (strcmp(what, "use") == 0)
        return use(name, reterr);
    if (strcmp(name, "none") == 0)
        return thole_fail(reterr, THOLE_INVALID,
                          "none is no context: thole context use none ends the use of one");
    if (strcmp(what, "save") == 0)
        return save(&cli->options, name, reterr);
    return strcmp(what, "delete") == 0 ? forget(name, reterr) : show(name, reterr);
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
        return name == NULL ? list(cli) : cli_misused(cli, "\"%.60s\" is one word too many", name);
    if (name == NULL && strcmp(what, "show") != 0)
        return cli_misused(cli, "NAME is missing");
    error.status = name == NULL ? show(cli->options.context, &error) : change(cli, what, name, &error);
    return error.status == THOLE_OK ? EXIT_DONE : cli_complain(cli, name == NULL ? "" : name, &error);
}
