#include "login.h"
#include "link.h"
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES_MAX = 4096 };
enum field { USER, PASSWORD, TOKEN, FIELDS };
static const char *const names[FIELDS] = {"user", "password", "token"};

/* The field that a line begins with; FIELDS: none. @p ret_value: the text after the colon and spaces. */
static enum field field_of(char *line, char **ret_value)
{
    size_t const len = strcspn(line, ":");
    if (line[len] == '\0')
        return FIELDS;
    *ret_value = line + len + 1 + strspn(line + len + 1, " \t");
    for (enum field field = USER; field < FIELDS; field++)
        if (len == strlen(names[field]) && strncmp(line, names[field], len) == 0)
            return field;
    return FIELDS;
}

/* Cuts @p text into lines. */
static thole_status read_lines(const char *path, char *text, char *values[FIELDS], thole_error *reterr)
{
    unsigned number = 0;
    for (char *line = text, *next; line != NULL; line = next) {
        char *value = NULL;
        number++;
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        enum field const field = field_of(line, &value);
        if (field == FIELDS)
            return thole_fail(reterr, THOLE_INVALID, "%s:%u: user:, password: or token: is expected", path,
                              number);
        if (values[field] != NULL || value[0] == '\0')
            return thole_fail(reterr, THOLE_INVALID, "%s:%u: %s %s", path, number, names[field],
                              value[0] == '\0' ? "is empty" : "stands there twice");
        values[field] = value;
    }
    return THOLE_OK;
}

static thole_status set_fields(const char *path, char *const values[FIELDS], natsOptions *options,
                               thole_error *reterr)
{
    bool const login = values[USER] != NULL && values[PASSWORD] != NULL;
    if (values[TOKEN] != NULL ? values[USER] != NULL || values[PASSWORD] != NULL : !login)
        return thole_fail(reterr, THOLE_INVALID,
                          "%s: user: and password: belong together, or token: stands alone", path);
    natsStatus status = natsOptions_SetUserInfo(options, values[USER], values[PASSWORD]);
    if (status == NATS_OK)
        status = natsOptions_SetToken(options, values[TOKEN]);
    return link_fail(status, "login file", path, reterr);
}

/* Whether it is such a file at all: the first line that says something. */
static bool is_login(const char *text)
{
    while (text[0] == '#' || (text[0] != '\0' && strchr("\r\n", text[0]) != NULL))
        text += text[0] == '#' ? strcspn(text, "\n") : 1;
    for (enum field field = USER; field < FIELDS; field++)
        if (strncmp(text, names[field], strlen(names[field])) == 0 && text[strlen(names[field])] == ':')
            return true;
    return false;
}

thole_status login_set(const char *path, natsOptions *options, thole_error *reterr)
{
    char text[FILE_BYTES_MAX + 1], *values[FIELDS] = {NULL};
    FILE *const file = fopen(path, "re");
    if (file == NULL)
        return THOLE_NOT_FOUND;
    (void)setvbuf(file, NULL, _IONBF, 0); /* the secret is in no buffer but ours */
    size_t const len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    thole_status status = THOLE_NOT_FOUND;
    if (is_login(text))
        status = len == FILE_BYTES_MAX
                     ? thole_fail(reterr, THOLE_INVALID, "%s has %d bytes or more", path, FILE_BYTES_MAX)
                     : read_lines(path, text, values, reterr);
    if (status == THOLE_OK)
        status = set_fields(path, values, options, reterr);
    OPENSSL_cleanse(text, sizeof text);
    return status;
}

thole_status login_again(const char *path, natsOptions *options, thole_error *reterr)
{
    thole_status const status = login_set(path, options, reterr);
    if (status != THOLE_NOT_FOUND)
        return status;
    return thole_fail(reterr, THOLE_INVALID,
                      "NATS credentials file %s has no user and password, and no token, any more", path);
}

thole_status login_alone(const char *path, char *const *urls, size_t n, thole_error *reterr)
{
    for (size_t i = 0; i < n; i++)
        if (strchr(urls[i], '@') != NULL)
            return thole_fail(reterr, THOLE_INVALID,
                              "a user is in the NATS URL, and another one in the file %s: give one", path);
    return THOLE_OK;
}
