/* Histories in a file. */
#include "history_file.h"
#include "event.h"
#include "subject.h"
#include "values.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { LINE_BYTES = SUBJECT_BYTES_MAX + 256 };

/* ---- writing ---- */

void history_file_begin(FILE *to, const char *ns, uint32_t partition, thole_slice instance)
{
    struct buf token;
    buf_init(&token, SUBJECT_BYTES_MAX);
    if (subject_token(&token, instance, NULL) == THOLE_OK)
        (void)fprintf(to, "thole history 1 %s %" PRIu32 " %s\n", ns, partition, buf_cstr(&token));
    buf_release(&token);
}

void history_file_record(FILE *to, uint64_t sequence, thole_slice bytes)
{
    (void)fprintf(to, "%" PRIu64 " %zu\n", sequence, bytes.len);
    if (bytes.len > 0)
        (void)fwrite(bytes.ptr, 1, bytes.len, to);
    (void)fputc('\n', to);
}

void history_file_end(FILE *to, uint64_t records)
{
    (void)fprintf(to, "end %" PRIu64 "\n", records);
}

/* ---- reading ---- */

struct reading {
    FILE *from;
    const struct history_file_reader *reader;
    uint64_t offset; /* of the line */
    char line[LINE_BYTES];
    struct buf body, instance;
    thole_error *reterr;
};

static thole_status corrupt(const struct reading *reading, const char *text)
{
    return thole_fail(reading->reterr, THOLE_CORRUPT, "%s, at byte %" PRIu64, text, reading->offset);
}

static thole_status read_failed(const struct reading *reading)
{
    return thole_fail(reading->reterr, THOLE_UNAVAILABLE, "the file cannot be read: %s", strerror(errno));
}

/* The next line without its end; *ret_more false at the end of the file. */
static thole_status read_line(struct reading *reading, bool *ret_more)
{
    long const at = ftell(reading->from); /* -1 on a pipe: then texts have no offset */
    reading->offset = at < 0 ? 0 : (uint64_t)at;
    *ret_more = fgets(reading->line, sizeof reading->line, reading->from) != NULL;
    if (!*ret_more)
        return ferror(reading->from) ? read_failed(reading) : THOLE_OK;
    size_t const len = strlen(reading->line);
    if (len == 0 || reading->line[len - 1] != '\n')
        return corrupt(reading, "a line without an end");
    reading->line[len - 1] = '\0';
    return THOLE_OK;
}

/* Cuts the word at *at off and moves behind it. */
static char *take_word(char **at)
{
    char *word = *at, *space = strchr(word, ' ');
    *at = space == NULL ? word + strlen(word) : space + 1;
    if (space != NULL)
        *space = '\0';
    return word;
}

static thole_status take_head(struct reading *reading)
{
    char *at = reading->line;
    uint64_t format, partition;
    const char *first = take_word(&at), *second = take_word(&at);
    if (strcmp(first, "thole") != 0 || strcmp(second, "history") != 0)
        return corrupt(reading, "this is not what thole history --raw writes");
    if (number_parse(take_word(&at), &format, NULL) != THOLE_OK)
        return corrupt(reading, "a history without a format");
    if (format != 1)
        return thole_fail(reading->reterr, THOLE_UNSUPPORTED,
                          "a history in form %" PRIu64 ", this program knows 1", format);
    (void)take_word(&at); /* the namespace, for people */
    if (number_parse(take_word(&at), &partition, NULL) != THOLE_OK ||
        subject_token_decode(thole_slice_from(take_word(&at)), &reading->instance, NULL) != THOLE_OK)
        return corrupt(reading, "a history without an instance");
    return reading->reader->begin(reading->reader->arg, buf_bytes(&reading->instance));
}

static thole_status take_record(struct reading *reading)
{
    char *at = reading->line;
    uint64_t sequence, len;
    if (number_parse(take_word(&at), &sequence, NULL) != THOLE_OK ||
        number_parse(take_word(&at), &len, NULL) != THOLE_OK || *at != '\0')
        return corrupt(reading, "neither a record nor an end");
    if (len > RECORD_BYTES_MAX)
        return corrupt(reading, "a record that is larger than one can be");
    buf_clear(&reading->body);
    uint8_t *room = buf_extend(&reading->body, (size_t)len);
    if (room == NULL && len > 0)
        return thole_fail(reading->reterr, THOLE_NOMEM, "out of memory for a record");
    bool const whole = fread(room, 1, (size_t)len, reading->from) == len && fgetc(reading->from) == '\n';
    if (!whole && ferror(reading->from))
        return read_failed(reading);
    if (!whole)
        return corrupt(reading, "a record that is cut off");
    return reading->reader->record(reading->reader->arg, sequence, buf_bytes(&reading->body));
}

static thole_status take_history(struct reading *reading)
{
    uint64_t records = 0, told;
    bool more;
    THOLE_TRY(take_head(reading));
    for (;; records++) {
        THOLE_TRY(read_line(reading, &more));
        if (!more)
            return corrupt(reading, "a history without its end");
        if (strncmp(reading->line, "end ", 4) == 0)
            break;
        THOLE_TRY(take_record(reading));
    }
    if (number_parse(reading->line + 4, &told, NULL) != THOLE_OK || told != records)
        return corrupt(reading, "a history that lacks records");
    return reading->reader->end(reading->reader->arg);
}

thole_status history_file_read(FILE *from, const struct history_file_reader *reader, thole_error *reterr)
{
    struct reading reading = {.from = from, .reader = reader, .reterr = reterr};
    bool more;
    buf_init(&reading.body, RECORD_BYTES_MAX);
    buf_init(&reading.instance, THOLE_ID_BYTES_MAX);
    thole_status status = read_line(&reading, &more);
    if (status == THOLE_OK && !more)
        status = corrupt(&reading, "the file is empty");
    while (status == THOLE_OK && more) {
        status = take_history(&reading);
        if (status == THOLE_OK)
            status = read_line(&reading, &more);
    }
    buf_release(&reading.body);
    buf_release(&reading.instance);
    return status;
}
