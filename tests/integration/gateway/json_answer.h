/* Parts of an answer in JSON, as text that lasts a little while. */
#ifndef THOLE_JSON_ANSWER_H
#define THOLE_JSON_ANSWER_H
#include <stddef.h>

/* The value at the path, without quotes; "" when it is missing. Valid until the fourth later call. */
const char *answer_at(const char *json, const char *path);
/* The n-th item of a list, as its own text; "" when it is not there. Until the next call. */
const char *answer_item(const char *json, const char *list, size_t n);
#endif
