/* Histories from a file, of either form. */
#include "event.h"
#include "history_file.h"
#include "jscan.h"
#include "json_check.h"
#include "line_read.h"
#include "message.h"
#include "subject.h"
#include "values.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    LINE_BYTES = SUBJECT_BYTES_MAX + 256,
    DOCUMENT_BYTES_MAX = 16 * RECORD_BYTES_MAX, /* a record in base64, and its events for people */
    SCHEMA_BYTES_MAX = 64,
    NAME_BYTES = 32, /* of a section */
};

struct reading {
    FILE *from;
    const struct history_file_reader *reader;
    uint64_t offset; /* of the line */
    char line[LINE_BYTES];
    struct buf body, instance, document;
    struct history_totals totals; /* since the last manifest */
    uint64_t records;             /* of the history */
    bool within;                  /* a history */
    bool open;                    /* an export that lacks its manifest */
    bool with, without;           /* there were records with events for people, and records that lack them */
    uint64_t line_number;         /* of the document */
    thole_error *reterr;
};

static thole_status history_file_read_corrupt(const struct reading *reading, const char *text)
{
    return thole_fail(reading->reterr, THOLE_CORRUPT, "%s, at byte %" PRIu64, text, reading->offset);
}

static thole_status read_failed(const struct reading *reading)
{
    return thole_fail(reading->reterr, THOLE_UNAVAILABLE, "the file cannot be read: %s", strerror(errno));
}

static void note_offset(struct reading *reading)
{
    long const at = ftell(reading->from); /* -1 on a pipe: then texts have no offset */
    reading->offset = at < 0 ? 0 : (uint64_t)at;
}

/* ---- common to both forms ---- */

static void digest_line(struct reading *reading, struct buf *line)
{
    history_digest_add(&reading->totals.digest, buf_bytes(line));
    buf_release(line);
}

static thole_status take_begin(struct reading *reading, const char *ns, uint32_t partition)
{
    struct buf line;
    buf_init(&line, LINE_BYTES);
    history_line_head(&line, ns, partition, buf_bytes(&reading->instance));
    digest_line(reading, &line);
    reading->within = true;
    reading->records = 0;
    const struct history_file_reader *reader = reading->reader;
    if (reader->place != NULL)
        THOLE_TRY(reader->place(reader->arg, ns, partition));
    return reader->begin == NULL ? THOLE_OK : reader->begin(reader->arg, buf_bytes(&reading->instance));
}

static thole_status history_file_read_take_body(struct reading *reading, uint64_t sequence)
{
    struct buf line;
    buf_init(&line, LINE_BYTES);
    history_line_record(&line, sequence, reading->body.len);
    digest_line(reading, &line);
    history_digest_add(&reading->totals.digest, buf_bytes(&reading->body));
    history_digest_add(&reading->totals.digest, THOLE_STR("\n"));
    reading->records++;
    const struct history_file_reader *const reader = reading->reader;
    return reader->record == NULL ? THOLE_OK
                                  : reader->record(reader->arg, sequence, buf_bytes(&reading->body));
}

static thole_status take_end(struct reading *reading)
{
    struct buf line;
    buf_init(&line, LINE_BYTES);
    history_line_end(&line, reading->records);
    digest_line(reading, &line);
    reading->within = false;
    reading->totals.instances++;
    reading->totals.records += reading->records;
    return reading->reader->end == NULL ? THOLE_OK : reading->reader->end(reading->reader->arg);
}

static bool says_number(thole_slice json, const char *key, uint64_t number)
{
    thole_slice value;
    uint64_t said;
    return json_find(json, key, &value) && json_uint(value, &said) && said == number;
}

static thole_status check_manifest(struct reading *reading, thole_slice json)
{
    char digest[HISTORY_DIGEST_TEXT_LEN + 1];
    thole_slice value;
    history_digest_text(&reading->totals.digest, digest);
    if (!says_number(json, "instances", reading->totals.instances))
        return history_file_read_corrupt(reading, "the manifest tells of another number of histories");
    if (!says_number(json, "records", reading->totals.records))
        return history_file_read_corrupt(reading, "the manifest tells of another number of records");
    if (!json_find(json, "sha256", &value) || !json_text_is(value, digest))
        return history_file_read_corrupt(reading,
                                         "the manifest has another SHA-256 than the histories before it");
    history_digest_clear(&reading->totals.digest);
    reading->totals.instances = reading->totals.records = 0;
    reading->open = false;
    return THOLE_OK;
}

/* Other programs read the last of two, which nobody has checked. */
static thole_status check_members(struct reading *reading, thole_slice json)
{
    char where[96] = "";
    thole_error error = {.status = THOLE_OK};
    if (reading->line_number > 0)
        (void)snprintf(where, sizeof where,
                       "line %" PRIu64 " is not as thole export writes it: ", reading->line_number);
    return json_members_once(json, where, &error) == THOLE_OK
               ? THOLE_OK
               : history_file_read_corrupt(reading, error.text);
}

static thole_status take_section(struct reading *reading, thole_slice name, thole_slice json)
{
    bool const begins = thole_slice_equal(name, THOLE_STR("export"));
    if (begins && reading->open && !reading->reader->unfinished)
        return history_file_read_corrupt(reading, "an export begins, and the one before it has no manifest");
    reading->open |= begins;
    if (thole_slice_equal(name, THOLE_STR("manifest")))
        THOLE_TRY(check_manifest(reading, json));
    return reading->reader->section == NULL ? THOLE_OK
                                            : reading->reader->section(reading->reader->arg, name, json);
}

/* ---- the binary form ---- */

/* The next line without its end; *ret_more false at the end of the file. */
static thole_status history_file_read_read_line(struct reading *reading, bool *ret_more)
{
    note_offset(reading);
    *ret_more = fgets(reading->line, sizeof reading->line, reading->from) != NULL;
    if (!*ret_more)
        return ferror(reading->from) ? read_failed(reading) : THOLE_OK;
    size_t const len = strlen(reading->line);
    if (len == 0 || reading->line[len - 1] != '\n')
        return history_file_read_corrupt(reading, "a line without an end");
    reading->line[len - 1] = '\0';
    return THOLE_OK;
}

/* Cuts the word at *at off and moves past it. */
static char *take_word(char **at)
{
    char *word = *at, *space = strchr(word, ' ');
    *at = space == NULL ? word + strlen(word) : space + 1;
    if (space != NULL)
        *space = '\0';
    return word;
}

/* Reads the bytes that a line announces, and their line end. */
static thole_status read_body(struct reading *reading, uint64_t len, const char *cut)
{
    buf_clear(&reading->body);
    uint8_t *room = buf_extend(&reading->body, (size_t)len);
    if (room == NULL && len > 0)
        return thole_fail(reading->reterr, THOLE_NOMEM, "out of memory for a record");
    bool const whole = fread(room, 1, (size_t)len, reading->from) == len && fgetc(reading->from) == '\n';
    if (!whole && ferror(reading->from))
        return read_failed(reading);
    return whole ? THOLE_OK : history_file_read_corrupt(reading, cut);
}

static thole_status history_file_read_take_record(struct reading *reading)
{
    char *at = reading->line;
    uint64_t sequence, len;
    if (number_parse(take_word(&at), &sequence, NULL) != THOLE_OK ||
        number_parse(take_word(&at), &len, NULL) != THOLE_OK || *at != '\0')
        return history_file_read_corrupt(reading, "neither a record nor an end");
    if (len > RECORD_BYTES_MAX)
        return history_file_read_corrupt(reading, "a record that is larger than one can be");
    THOLE_TRY(read_body(reading, len, "a record that is cut off"));
    return history_file_read_take_body(reading, sequence);
}

static thole_status take_history(struct reading *reading, char *at)
{
    uint64_t partition, told;
    bool more;
    const char *ns = take_word(&at);
    buf_clear(&reading->instance);
    if (number_parse(take_word(&at), &partition, NULL) != THOLE_OK || partition > UINT32_MAX ||
        subject_token_decode(thole_slice_from(take_word(&at)), &reading->instance, NULL) != THOLE_OK)
        return history_file_read_corrupt(reading, "a history without an instance");
    THOLE_TRY(take_begin(reading, ns, (uint32_t)partition));
    for (;;) {
        THOLE_TRY(history_file_read_read_line(reading, &more));
        if (!more)
            return history_file_read_corrupt(reading, "a history without its end");
        if (strncmp(reading->line, "end ", 4) == 0)
            break;
        THOLE_TRY(history_file_read_take_record(reading));
    }
    if (number_parse(reading->line + 4, &told, NULL) != THOLE_OK || told != reading->records)
        return history_file_read_corrupt(reading, "a history that lacks records");
    return take_end(reading);
}

static thole_status take_binary_section(struct reading *reading, const char *name, char *at)
{
    char kept[NAME_BYTES];
    uint64_t len;
    (void)snprintf(kept, sizeof kept, "%s", name);
    if (number_parse(take_word(&at), &len, NULL) != THOLE_OK || *at != '\0')
        return history_file_read_corrupt(reading, "a section without a length");
    if (len > DOCUMENT_BYTES_MAX)
        return history_file_read_corrupt(reading, "a section that is larger than one can be");
    THOLE_TRY(read_body(reading, len, "a section that is cut off"));
    THOLE_TRY(check_members(reading, buf_bytes(&reading->body)));
    return take_section(reading, thole_slice_from(kept), buf_bytes(&reading->body));
}

/* "thole history 1 ..." or "thole SECTION 1 LENGTH" */
static thole_status history_file_read_take_part(struct reading *reading)
{
    char *at = reading->line;
    uint64_t format;
    const char *first = take_word(&at), *name = take_word(&at);
    bool const history = strcmp(name, "history") == 0;
    if (strcmp(first, "thole") != 0 || name[0] == '\0')
        return history_file_read_corrupt(reading, "this is not what thole export or history --raw writes");
    if (number_parse(take_word(&at), &format, NULL) != THOLE_OK)
        return history_file_read_corrupt(reading, history ? "a history without a format"
                                                          : "a section without a format");
    if (format != 1)
        return thole_fail(reading->reterr, THOLE_UNSUPPORTED,
                          "a %.20s in form %" PRIu64 ", this program knows 1", name, format);
    return history ? take_history(reading, at) : take_binary_section(reading, name, at);
}

static thole_status history_file_read_read_binary(struct reading *reading)
{
    bool more = true;
    THOLE_TRY(history_file_read_read_line(reading, &more));
    if (!more)
        return history_file_read_corrupt(reading, "the file is empty");
    while (more) {
        THOLE_TRY(history_file_read_take_part(reading));
        THOLE_TRY(history_file_read_read_line(reading, &more));
    }
    return THOLE_OK;
}

/* ---- JSON lines ---- */

/* The next line, of any length up to the ceiling, in document. */
static thole_status history_file_read_read_document(struct reading *reading, bool *ret_more)
{
    thole_error error;
    note_offset(reading);
    enum line_read const read = line_read(reading->from, &reading->document);
    *ret_more = read == LINE_READ_WHOLE;
    reading->line_number++;
    if (ferror(reading->from))
        return read_failed(reading);
    if (read == LINE_READ_CUT)
        return history_file_read_corrupt(reading, "a line without an end");
    if (buf_status(&reading->document) != THOLE_OK)
        return history_file_read_corrupt(reading, "a line that is larger than one can be");
    if (read == LINE_READ_WHOLE && json_check(buf_bytes(&reading->document), &error) != THOLE_OK)
        return history_file_read_corrupt(reading, error.text);
    return THOLE_OK;
}

static bool history_file_read_member_text(thole_slice document, const char *key, struct buf *to)
{
    thole_slice value;
    buf_clear(to);
    return json_find(document, key, &value) && json_text(value, to) && buf_status(to) == THOLE_OK &&
           strlen(buf_cstr(to)) == to->len;
}

static bool history_file_read_member_number(thole_slice document, const char *key, uint64_t most,
                                            uint64_t *ret)
{
    thole_slice value;
    return json_find(document, key, &value) && json_uint(value, ret) && *ret <= most;
}

static thole_status document_history(struct reading *reading, thole_slice document)
{
    struct buf ns;
    uint64_t partition = 0;
    if (reading->within)
        return history_file_read_corrupt(reading, "a history without its end");
    buf_init(&ns, THOLE_NAME_BYTES_MAX);
    bool const good = history_file_read_member_text(document, "namespace", &ns) &&
                      history_file_read_member_number(document, "partition", UINT32_MAX, &partition) &&
                      history_file_read_member_text(document, "instance", &reading->instance) &&
                      id_check(buf_bytes(&reading->instance), NULL) == THOLE_OK;
    thole_status const status = good ? take_begin(reading, buf_cstr(&ns), (uint32_t)partition)
                                     : history_file_read_corrupt(reading, "a history without an instance");
    buf_release(&ns);
    return status;
}

/* All of them have their events, or none. */
static thole_status check_readable(struct reading *reading, thole_slice document, uint64_t sequence)
{
    const struct history_file_reader *const reader = reading->reader;
    char why[HISTORY_WHY_BYTES], text[HISTORY_WHY_BYTES + 160];
    thole_error error;
    thole_slice events;
    bool const there = json_find(document, "events", &events);
    if (reader->readable == NULL)
        return THOLE_OK;
    (void)snprintf(text, sizeof text,
                   "line %" PRIu64 " is not as thole export writes it: ", reading->line_number);
    if (json_members_check(document, text, "schema sequence record events", &error) != THOLE_OK)
        return history_file_read_corrupt(reading, error.text);
    bool const same =
        reader->readable(reader->arg, sequence, buf_bytes(&reading->body), there ? &events : NULL, why);
    reading->with |= there;
    reading->without |= !there && !same;
    if ((same || !there) && !(reading->with && reading->without))
        return THOLE_OK;
    (void)snprintf(text, sizeof text,
                   "the readable events in line %" PRIu64 " are not those of its record %" PRIu64 ": %s",
                   reading->line_number, sequence, same ? "other records have none" : why);
    return history_file_read_corrupt(reading, text);
}

static thole_status document_record(struct reading *reading, thole_slice document)
{
    thole_slice value;
    uint64_t sequence;
    buf_clear(&reading->body);
    if (!reading->within)
        return history_file_read_corrupt(reading, "a record outside of a history");
    if (!history_file_read_member_number(document, "sequence", UINT64_MAX, &sequence) ||
        !json_find(document, "record", &value) || value.len < 2 || value.ptr[0] != '"' ||
        !base64_decode((thole_slice){value.ptr + 1, value.len - 2}, &reading->body))
        return history_file_read_corrupt(reading, "a record without its bytes");
    THOLE_TRY(check_readable(reading, document, sequence));
    return history_file_read_take_body(reading, sequence);
}

static thole_status document_end(struct reading *reading, thole_slice document)
{
    if (!reading->within || !says_number(document, "records", reading->records))
        return history_file_read_corrupt(reading, "a history that lacks records");
    return take_end(reading);
}

/* "thole.export.manifest.v1": manifest; "thole.export.v1": export. False: something else. */
static bool schema_name(const char *schema, char ret[SCHEMA_BYTES_MAX + 1], uint64_t *ret_version)
{
    static const char prefix[] = "thole.export.";
    const char *last = strrchr(schema, '.');
    if (strncmp(schema, prefix, sizeof prefix - 1) != 0 || last == NULL || last[1] != 'v' ||
        number_parse(last + 2, ret_version, NULL) != THOLE_OK)
        return false;
    const char *name = schema + sizeof prefix - 1;
    bool const head = name == last + 1;
    (void)snprintf(ret, SCHEMA_BYTES_MAX + 1, "%.*s", head ? 6 : (int)(last - name), head ? "export" : name);
    return true;
}

static thole_status take_document(struct reading *reading)
{
    thole_slice const document = {reading->document.ptr, reading->document.len};
    char name[SCHEMA_BYTES_MAX + 1];
    struct buf schema;
    uint64_t version = 0;
    buf_init(&schema, SCHEMA_BYTES_MAX);
    bool const known = history_file_read_member_text(document, "schema", &schema) &&
                       schema_name(buf_cstr(&schema), name, &version);
    buf_release(&schema);
    if (!known)
        return history_file_read_corrupt(reading, "this is not what thole export --form jsonl writes");
    if (version != 1)
        return thole_fail(reading->reterr, THOLE_UNSUPPORTED,
                          "a %.20s in form %" PRIu64 ", this program knows 1", name, version);
    THOLE_TRY(check_members(reading, document));
    if (strcmp(name, "history") == 0)
        return document_history(reading, document);
    if (strcmp(name, "record") == 0)
        return document_record(reading, document);
    if (strcmp(name, "end") == 0)
        return document_end(reading, document);
    return reading->within ? history_file_read_corrupt(reading, "a history without its end")
                           : take_section(reading, thole_slice_from(name), document);
}

static thole_status read_documents(struct reading *reading)
{
    bool more;
    for (;;) {
        THOLE_TRY(history_file_read_read_document(reading, &more));
        if (!more)
            return reading->within ? history_file_read_corrupt(reading, "a history without its end")
                                   : THOLE_OK;
        THOLE_TRY(take_document(reading));
    }
}

/* ---- the whole ---- */

thole_status history_file_read(FILE *from, const struct history_file_reader *reader, thole_error *reterr)
{
    struct reading reading = {.from = from, .reader = reader, .reterr = reterr};
    buf_init(&reading.body, DOCUMENT_BYTES_MAX);
    buf_init(&reading.instance, THOLE_ID_BYTES_MAX);
    buf_init(&reading.document, DOCUMENT_BYTES_MAX);
    history_digest_init(&reading.totals.digest);
    int const first = fgetc(from);
    if (first != EOF)
        (void)ungetc(first, from);
    thole_status status = first == '{' ? read_documents(&reading) : history_file_read_read_binary(&reading);
    if (status == THOLE_OK && reading.open && !reader->unfinished) {
        note_offset(&reading);
        status = history_file_read_corrupt(&reading, "the export is cut off: its manifest is missing");
    }
    history_digest_release(&reading.totals.digest);
    buf_release(&reading.body);
    buf_release(&reading.instance);
    buf_release(&reading.document);
    return status;
}
