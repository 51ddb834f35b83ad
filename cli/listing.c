#include "listing.h"
#include "text.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void listing_name(thole_slice name)
{
    struct buf text;
    buf_init(&text, 4 * name.len + 16);
    text_lines(&text, name);
    (void)printf("%s\n", buf_cstr(&text));
    buf_release(&text);
}

void listing_begin(struct listing *listing, const struct cli *cli, const char *schema, const char *name,
                   uint64_t limit)
{
    *listing = (struct listing){.cli = cli, .schema = schema, .name = name, .limit = limit};
}

uint64_t listing_wish(const struct listing *listing)
{
    return listing->limit + 1;
}

/* Called with the first row, or at the end, so that a reading that fails at once prints nothing. */
static void listing_begin_document(struct listing *listing)
{
    if (listing->begun || listing->cli->options.output != OUTPUT_JSON)
        return;
    listing->begun = true;
    json_document(&listing->json, stdout, listing->schema);
    json_key(&listing->json, listing->name);
    json_array(&listing->json);
}

/* The last line of a page is held back until it is known whether there is another page. */
static void end_line(struct listing *listing)
{
    if (!listing->open)
        return;
    listing->open = false;
    if (listing->more)
        json_member_text(&listing->json, "next", listing->next);
    json_end(&listing->json);
}

enum listing_step listing_row(struct listing *listing, const char *schema)
{
    if (listing->limit > 0 && listing->rows == listing->limit) {
        listing->more = true;
        end_line(listing);
        return LISTING_STOP;
    }
    listing_begin_document(listing);
    switch ((enum output)listing->cli->options.output) {
    case OUTPUT_NAME: return LISTING_NAME;
    case OUTPUT_TABLE:
    case OUTPUT_WIDE:
    case OUTPUT_YAML: return LISTING_TABLE;
    case OUTPUT_JSON: json_object(&listing->json); break;
    case OUTPUT_JSONL: json_document(&listing->json, stdout, schema); break;
    }
    return LISTING_JSON;
}

thole_status listing_row_end(struct listing *listing)
{
    listing->rows++;
    listing->open = listing->cli->options.output == OUTPUT_JSONL && listing->rows == listing->limit;
    if (cli_is_json(listing->cli) && !listing->open)
        json_end(&listing->json);
    return ferror(stdout) ? THOLE_CANCELLED : THOLE_OK;
}

static void listing_end_document(struct listing *listing, bool complete)
{
    if (listing->cli->options.output != OUTPUT_JSON)
        return;
    json_end(&listing->json);
    json_member_bool(&listing->json, "complete", complete);
    if (listing->more)
        json_member_text(&listing->json, "next", listing->next);
    json_end(&listing->json);
}

thole_status listing_skip(struct listing *listing, const char *table, thole_slice instance)
{
    if (listing->skipped++ > 0)
        return THOLE_OK;
    struct buf name;
    buf_init(&name, sizeof listing->skipped_name - 1);
    text_safe(&name, instance, THOLE_NAME_BYTES_MAX);
    (void)snprintf(listing->skipped_name, sizeof listing->skipped_name, "%s", buf_cstr(&name));
    listing->skipped_table = table;
    buf_release(&name);
    return THOLE_OK;
}

static void say_skipped(const struct listing *listing)
{
    if (listing->skipped > 0)
        cli_note(listing->cli,
                 "%" PRIu64
                 " rows of the table %s are skipped: no instance can be called \"%s\"; thole has not "
                 "written them",
                 listing->skipped, listing->skipped_table, listing->skipped_name);
}

int listing_end(struct listing *listing, thole_status status, thole_error *error, const char *empty)
{
    if (status == THOLE_CANCELLED && (listing->more || ferror(stdout)))
        status = THOLE_OK; /* cli_finish() reports an error of stdout */
    if (status == THOLE_OK)
        listing_begin_document(listing);
    end_line(listing);
    if (listing->begun)
        listing_end_document(listing, status == THOLE_OK && !listing->more);
    say_skipped(listing);
    error->status = status;
    if (status != THOLE_OK)
        return cli_complain(listing->cli, "", error);
    if (listing->rows == 0 && !cli_is_json(listing->cli))
        cli_note(listing->cli, "%s", empty);
    if (listing->more && listing->cli->options.output != OUTPUT_JSON)
        cli_note(listing->cli, "there are more: --next %s, or a higher --limit", listing->next);
    return EXIT_DONE;
}

/* ---- places ---- */

void listing_place(struct listing *listing, const uint64_t *numbers, size_t numbers_len, thole_slice instance)
{
    page_token(listing->next, numbers, numbers_len, instance);
}

bool listing_place_read(const struct cli *cli, uint64_t *numbers, size_t numbers_len, struct buf *instance)
{
    thole_error error;
    buf_init(instance, THOLE_ID_BYTES_MAX);
    bool const empty = cli->options.next != NULL && cli->options.next[0] == '\0';
    (void)thole_fail(&error, THOLE_INVALID,
                     "next:  is no token: give the one that the page before ended with");
    if (!empty &&
        page_read(thole_slice_from(cli->options.next), numbers, numbers_len, instance, &error) == THOLE_OK)
        return true;
    (void)cli_misused(cli, "--%s", error.text);
    return false;
}
