/* Histories to a file. */
#include "history_file.h"
#include "json_file.h"
#include "subject.h"
#include "text.h"
#include <assert.h>
#include <inttypes.h>

enum { LINE_BYTES = SUBJECT_BYTES_MAX + 256 };

void history_writer_init(struct history_writer *writer, FILE *to, enum history_form form, const char *ns)
{
    *writer = (struct history_writer){.to = to, .form = form, .ns = ns};
    history_digest_init(&writer->totals.digest);
}

void history_writer_release(struct history_writer *writer)
{
    history_digest_release(&writer->totals.digest);
}

/* A line of the binary form: it is digested in either one. */
static void put_line(struct history_writer *writer, struct buf *line)
{
    history_digest_add(&writer->totals.digest, buf_bytes(line));
    if (line->len > 0 && writer->form == HISTORY_BINARY && writer->to != NULL)
        (void)fwrite(line->ptr, 1, line->len, writer->to);
    buf_release(line);
}

void history_writer_begin(struct history_writer *writer, uint32_t partition, thole_slice instance)
{
    struct buf line;
    buf_init(&line, LINE_BYTES);
    history_line_head(&line, writer->ns, partition, instance);
    put_line(writer, &line);
    writer->records = 0;
    if (writer->form == HISTORY_BINARY || writer->to == NULL)
        return;
    struct json json;
    json_document(&json, writer->to, "thole.export.history.v1");
    json_member_text(&json, "namespace", writer->ns);
    json_member_number(&json, "partition", partition);
    json_member(&json, "instance", instance);
    json_end(&json);
}

static void record_document(struct history_writer *writer, uint64_t sequence, thole_slice bytes)
{
    struct json json;
    json_document(&json, writer->to, "thole.export.record.v1");
    json_member_number(&json, "sequence", sequence);
    json_member_base64(&json, "record", bytes);
    if (writer->decorate != NULL)
        writer->decorate(writer->arg, &json, sequence, bytes);
    json_end(&json);
}

void history_writer_record(struct history_writer *writer, uint64_t sequence, thole_slice bytes)
{
    struct buf line;
    buf_init(&line, LINE_BYTES);
    history_line_record(&line, sequence, bytes.len);
    put_line(writer, &line);
    history_digest_add(&writer->totals.digest, bytes);
    history_digest_add(&writer->totals.digest, THOLE_STR("\n"));
    writer->records++;
    if (writer->to == NULL)
        return;
    if (writer->form == HISTORY_JSONL) {
        record_document(writer, sequence, bytes);
        return;
    }
    if (bytes.len > 0)
        (void)fwrite(bytes.ptr, 1, bytes.len, writer->to);
    (void)fputc('\n', writer->to);
}

void history_writer_end(struct history_writer *writer)
{
    struct buf line;
    buf_init(&line, LINE_BYTES);
    history_line_end(&line, writer->records);
    put_line(writer, &line);
    writer->totals.instances++;
    writer->totals.records += writer->records;
    if (writer->form == HISTORY_BINARY || writer->to == NULL)
        return;
    struct json json;
    json_document(&json, writer->to, "thole.export.end.v1");
    json_member_number(&json, "records", writer->records);
    json_end(&json);
}

void history_writer_section(struct history_writer *writer, const char *name, thole_slice json)
{
    if (writer->form == HISTORY_BINARY)
        (void)fprintf(writer->to, "thole %s 1 %zu\n", name, json.len);
    (void)fwrite(json.ptr, 1, json.len, writer->to);
    (void)fputc('\n', writer->to);
}
