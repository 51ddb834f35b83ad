#include "option_file.h"
#include "file_fault.h"
#include "memory.h"
#include "values.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

/* One pass over a file. */
struct pass {
    const struct option_set *sets;
    size_t n;
    const char *path;
    const struct option_given *given;
    struct option_given seen; /* in the file */
    struct option_file *file;
    bool open; /* all may read the file */
    yaml_parser_t parser;
    yaml_event_t event;
    bool holds_event;
    thole_error *reterr;
};

static thole_status fail_at(const struct pass *pass, size_t line, const char *what)
{
    return thole_fail(pass->reterr, THOLE_INVALID, "%s:%zu: %s", pass->path, line + 1, what);
}

/* Replaces the event at hand by the next one. */
static thole_status option_file_next_event(struct pass *pass)
{
    if (pass->holds_event)
        yaml_event_delete(&pass->event);
    pass->holds_event = yaml_parser_parse(&pass->parser, &pass->event) != 0;
    if (pass->holds_event)
        return THOLE_OK;
    return fail_at(pass, pass->parser.problem_mark.line,
                   pass->parser.problem == NULL ? "is no YAML" : pass->parser.problem);
}

static thole_status option_file_expect(struct pass *pass, yaml_event_type_t type, const char *otherwise)
{
    THOLE_TRY(option_file_next_event(pass));
    return pass->event.type == type ? THOLE_OK : fail_at(pass, pass->event.start_mark.line, otherwise);
}

static const char *option_file_suggestion(const struct pass *pass, const char *name)
{
    const char *flags[OPTION_ROWS_MAX];
    size_t len = 0;
    for (size_t i = 0; i < pass->n; i++)
        for (size_t k = 0; k < pass->sets[i].len && len < OPTION_ROWS_MAX; k++)
            if (option_in_file(&pass->sets[i].rows[k]))
                flags[len++] = pass->sets[i].rows[k].flag;
    return word_suggest(name, flags, len);
}

static thole_status fail_unknown(const struct pass *pass, const char *name, size_t line)
{
    char what[200];
    const char *const near = option_file_suggestion(pass, name);
    (void)snprintf(what, sizeof what, "there is no option %.60s%s%s%s", name,
                   near == NULL ? "" : "; did you mean ", near == NULL ? "" : near, near == NULL ? "" : "?");
    return fail_at(pass, line, what);
}

/* The row of a name, and its place in the order of all rows; NULL: there is none. */
static const struct option_row *find_row(const struct pass *pass, const char *name, size_t *ret_at,
                                         void **ret_target)
{
    size_t at = 0;
    for (size_t i = 0; i < pass->n; i++)
        for (size_t k = 0; k < pass->sets[i].len; k++, at++)
            if (option_in_file(&pass->sets[i].rows[k]) && strcmp(pass->sets[i].rows[k].flag, name) == 0) {
                *ret_at = at;
                *ret_target = pass->sets[i].target;
                return &pass->sets[i].rows[k];
            }
    return NULL;
}

/* The name is the event at hand; its value is the next one. */
static thole_status read_pair(struct pass *pass)
{
    char name[64], origin[320];
    size_t at = 0;
    void *target = NULL;
    size_t const line = pass->event.start_mark.line;
    if (pass->event.type != YAML_SCALAR_EVENT)
        return fail_at(pass, line, "the name of an option is expected");
    (void)snprintf(name, sizeof name, "%s", (const char *)pass->event.data.scalar.value);
    const struct option_row *const row = find_row(pass, name, &at, &target);
    if (row == NULL)
        return fail_unknown(pass, name, line);
    (void)snprintf(origin, sizeof origin, "%.200s:%zu: %s", pass->path, line + 1, name);
    if (pass->seen.row[at])
        return thole_fail(pass->reterr, THOLE_INVALID, "%s stands there twice", origin);
    pass->seen.row[at] = true;
    THOLE_TRY(option_file_next_event(pass));
    if (pass->event.type != YAML_SCALAR_EVENT)
        return thole_fail(pass->reterr, THOLE_INVALID, "%s: a list, a mapping or an alias is no value",
                          origin);
    if (strlen((const char *)pass->event.data.scalar.value) != pass->event.data.scalar.length)
        return thole_fail(pass->reterr, THOLE_INVALID, "%s: the value has a zero byte", origin);
    pass->file->open_secret |=
        pass->open && row->is_secret != NULL && row->is_secret((const char *)pass->event.data.scalar.value);
    const char *const env = getenv(row->env);
    if (pass->given->row[at] || (env != NULL && env[0] != '\0'))
        return THOLE_OK;
    assert(pass->file->len < OPTION_ROWS_MAX);
    char *const text = memory_text((const char *)pass->event.data.scalar.value);
    pass->file->texts[pass->file->len++] = text;
    return option_set_from(row, target, origin, text, pass->reterr);
}

static thole_status option_file_read_document(struct pass *pass)
{
    THOLE_TRY(option_file_expect(pass, YAML_STREAM_START_EVENT, "is no YAML"));
    THOLE_TRY(option_file_next_event(pass));
    if (pass->event.type == YAML_STREAM_END_EVENT) /* nothing but comments */
        return THOLE_OK;
    THOLE_TRY(option_file_expect(pass, YAML_MAPPING_START_EVENT, "NAME: VALUE is expected"));
    for (;;) {
        THOLE_TRY(option_file_next_event(pass));
        if (pass->event.type == YAML_MAPPING_END_EVENT)
            break;
        THOLE_TRY(read_pair(pass));
    }
    THOLE_TRY(option_file_expect(pass, YAML_DOCUMENT_END_EVENT, "is no YAML"));
    return option_file_expect(pass, YAML_STREAM_END_EVENT, "has a second document");
}

/* The whole file in @p room. */
static thole_status option_file_read_bytes(const char *path, char *room, size_t cap, size_t *ret_len,
                                           bool *ret_open, thole_error *reterr)
{
    struct stat info;
    FILE *const from = fopen(path, "re");
    if (from == NULL)
        return file_fault_read(path, errno, reterr);
    *ret_open = fstat(fileno(from), &info) == 0 && (info.st_mode & S_IROTH) != 0;
    *ret_len = fread(room, 1, cap, from);
    int const error = ferror(from) ? errno : 0;
    (void)fclose(from);
    if (error != 0)
        return file_fault_read(path, error, reterr);
    if (*ret_len == cap)
        return thole_fail(reterr, THOLE_INVALID, "--config: %s has more than %d bytes", path,
                          OPTION_FILE_BYTES_MAX);
    return THOLE_OK;
}

thole_status option_file_read(const struct option_set *sets, size_t n, const char *path,
                              const struct option_given *given, struct option_file *file, thole_error *reterr)
{
    struct pass pass = {.sets = sets, .n = n, .path = path, .given = given, .file = file, .reterr = reterr};
    char *const bytes = memory_new(OPTION_FILE_BYTES_MAX + 1);
    size_t len = 0;
    thole_status status =
        option_file_read_bytes(path, bytes, OPTION_FILE_BYTES_MAX + 1, &len, &pass.open, reterr);
    if (status == THOLE_OK && yaml_parser_initialize(&pass.parser) == 0)
        status = thole_fail(reterr, THOLE_NOMEM, "--config: no memory to read %s", path);
    else if (status == THOLE_OK) {
        yaml_parser_set_input_string(&pass.parser, (const unsigned char *)bytes, len);
        status = option_file_read_document(&pass);
        if (pass.holds_event)
            yaml_event_delete(&pass.event);
        yaml_parser_delete(&pass.parser);
    }
    explicit_bzero(bytes, len); /* a connection string may have a password */
    free(bytes);
    return status;
}

void option_file_free(struct option_file *file)
{
    for (size_t i = 0; i < file->len; i++) {
        explicit_bzero(file->texts[i], strlen(file->texts[i]));
        free(file->texts[i]);
    }
    file->len = 0;
}
