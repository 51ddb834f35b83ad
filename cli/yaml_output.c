#include "yaml_output.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

/* JSON is YAML in flow style: what the parser reads is written in block style. */

static int write_bytes(void *arg, unsigned char *bytes, size_t len)
{
    return fwrite(bytes, 1, len, arg) == len;
}

/* Text that needs no quotes: a word that YAML takes for no number, date, boolean or null. */
static bool yaml_output_is_plain(const char *text)
{
    static const char *const others[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
    if (!isalpha((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcasecmp(others[i], text) == 0)
            return false;
    return true;
}

static void yaml_output_restyle(yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT: event->data.sequence_start.style = YAML_BLOCK_SEQUENCE_STYLE; break;
    case YAML_MAPPING_START_EVENT: event->data.mapping_start.style = YAML_BLOCK_MAPPING_STYLE; break;
    case YAML_SCALAR_EVENT: {
        const char *text = (const char *)event->data.scalar.value;
        bool const quoted = event->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
        if (!quoted)
            break; /* a number, a boolean, null */
        event->data.scalar.plain_implicit = yaml_output_is_plain(text);
        event->data.scalar.style =
            strchr(text, '\n') != NULL ? YAML_LITERAL_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE;
        break;
    }
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_ALIAS_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: break;
    }
}

static bool yaml_output_convert(yaml_emitter_t *emitter, const char *json, size_t len, bool first)
{
    yaml_parser_t parser;
    yaml_event_t event;
    bool good = yaml_parser_initialize(&parser) != 0, ended = false;
    yaml_parser_set_input_string(&parser, (const unsigned char *)json, len);
    while (good && !ended) {
        good = yaml_parser_parse(&parser, &event) != 0;
        if (!good)
            break;
        ended = event.type == YAML_STREAM_END_EVENT;
        if (ended || event.type == YAML_STREAM_START_EVENT) {
            yaml_event_delete(&event);
            continue; /* the emitter has one stream for all documents */
        }
        if (event.type == YAML_DOCUMENT_START_EVENT)
            event.data.document_start.implicit = first;
        yaml_output_restyle(&event);
        good = yaml_emitter_emit(emitter, &event) != 0; /* takes the event, also when it fails */
    }
    yaml_parser_delete(&parser);
    return good;
}

bool yaml_write(FILE *out, const char *json, size_t len)
{
    yaml_emitter_t emitter;
    yaml_event_t event;
    if (yaml_emitter_initialize(&emitter) == 0)
        return false;
    yaml_emitter_set_output(&emitter, write_bytes, out);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    bool good = yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) != 0 &&
                yaml_emitter_emit(&emitter, &event) != 0;
    for (size_t at = 0; at < len && good;) {
        const char *end = memchr(json + at, '\n', len - at);
        size_t const line = (end == NULL ? len : (size_t)(end - json)) - at;
        good = line == 0 || yaml_output_convert(&emitter, json + at, line, at == 0);
        at += line + 1;
    }
    good = good && yaml_stream_end_event_initialize(&event) != 0 && yaml_emitter_emit(&emitter, &event) != 0;
    yaml_emitter_delete(&emitter);
    return good;
}
