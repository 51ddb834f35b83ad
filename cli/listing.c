#include "listing.h"
#include <stdio.h>

void listing_begin(struct listing *listing, const struct cli *cli, const char *schema, const char *name)
{
    *listing = (struct listing){.cli = cli};
    if (cli->options.output != OUTPUT_JSON)
        return;
    json_init(&listing->json, stdout);
    cli_json_begin(&listing->json, schema);
    json_key(&listing->json, name);
    json_array(&listing->json);
}

bool listing_row(struct listing *listing, const char *schema)
{
    switch ((enum output)listing->cli->options.output) {
    case OUTPUT_TABLE: return false;
    case OUTPUT_JSON: json_object(&listing->json); break;
    case OUTPUT_JSONL:
        json_init(&listing->json, stdout);
        cli_json_begin(&listing->json, schema);
        break;
    }
    return true;
}

thole_status listing_row_end(struct listing *listing)
{
    if (listing->cli->options.output != OUTPUT_TABLE)
        json_end(&listing->json);
    listing->rows++;
    return ferror(stdout) ? THOLE_CANCELLED : THOLE_OK;
}

void listing_end(struct listing *listing, bool complete)
{
    if (listing->cli->options.output != OUTPUT_JSON)
        return;
    json_end(&listing->json);
    json_key(&listing->json, "complete");
    json_true(&listing->json, complete);
    json_end(&listing->json);
}
