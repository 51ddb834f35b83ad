#include "json_answer.h"
#include "jscan.h"
#include <stdio.h>

const char *answer_at(const char *json, const char *path)
{
    static char texts[4][1024];
    static unsigned turn;
    char *const text = texts[turn++ % 4];
    thole_slice value;
    text[0] = '\0';
    if (!json_path(thole_slice_from(json), path, &value))
        return text;
    if (value.len >= 2 && value.ptr[0] == '"')
        value = (thole_slice){value.ptr + 1, value.len - 2};
    (void)snprintf(text, sizeof texts[0], "%.*s", THOLE_FMT(value));
    return text;
}

const char *answer_item(const char *json, const char *list, size_t n)
{
    static char text[8192];
    thole_slice value, one;
    size_t place = 0;
    text[0] = '\0';
    if (!json_path(thole_slice_from(json), list, &value))
        return text;
    for (size_t i = 0; json_item(value, &place, &one); i++)
        if (i == n)
            (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(one));
    return text;
}
