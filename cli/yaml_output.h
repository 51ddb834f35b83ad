/* JSON as YAML, for people. */
#ifndef THOLE_YAML_OUTPUT_H
#define THOLE_YAML_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes each of the JSON documents in @p json, one a line, as a YAML document. False: out of memory, or @p
 * out takes no more (ferror). */
bool yaml_write(FILE *out, const char *json, size_t len);
#endif
