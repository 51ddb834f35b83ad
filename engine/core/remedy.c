#include "remedy.h"
#include <stdio.h>
#include <string.h>

static bool remedy_is_harmless(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("_.:@-", c) != NULL);
}

bool remedy_word(thole_slice id, char *to, size_t cap)
{
    bool plain = true;
    if (id.len == 0 || id.ptr[0] == '-' || id.len + 3 > cap)
        return false;
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] < ' ' || id.ptr[i] == 0x7f || id.ptr[i] == '\'')
            return false;
        plain = plain && remedy_is_harmless(id.ptr[i]);
    }
    const char *const quote = plain ? "" : "'";
    (void)snprintf(to, cap, "%s%.*s%s", quote, THOLE_FMT(id), quote);
    return true;
}

/* The next word ID; NULL: there is none. */
static const char *remedy_find(const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        if (strncmp(at, " ID", strlen(" ID")) == 0 &&
            (!remedy_is_harmless((uint8_t)at[3]) || at[3] == '.' || at[3] == ':'))
            return at + 1;
    return NULL;
}

void remedy_fill(const char *remedy, thole_slice id, char *to, size_t cap)
{
    enum { WORD_BYTES = 256 };
    char word[WORD_BYTES] = "ID";
    size_t len = 0;
    (void)remedy_word(id, word, sizeof word);
    to[0] = '\0';
    for (const char *at; len < cap && (at = remedy_find(remedy)) != NULL; remedy = at + strlen("ID")) {
        int const n = snprintf(to + len, cap - len, "%.*s%s", (int)(at - remedy), remedy, word);
        len += n > 0 ? (size_t)n : 0;
    }
    if (len < cap)
        (void)snprintf(to + len, cap - len, "%s", remedy);
}
