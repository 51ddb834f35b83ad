/*
 * Input and output in JSON, with cJSON (Debian: libcjson-dev): an invoice is read, charged, and answered.
 *
 *   thole dev -- build/release/examples/invoice run
 *   thole run invoice --input '{"customer":"c-7","items":[{"name":"book","cents":1250,"pieces":2}]}'
 *
 * Three rules make a library that allocates with malloc() safe in an orchestration (docs/json.md has more):
 * what it allocated is freed before the next await, since a stack that is parked may be dropped there; what
 * is kept is copied to thole_alloc() memory; and nesting is limited before it is parsed, because the parser
 * recurses and the stack has 64 KiB.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <thole/program.h>

enum { ITEMS_MAX = 1000, DEPTH_MAX = 16 };
#define BAD_INPUT THOLE_STR("bad_input")

struct invoice {
    const char *customer;
    uint64_t cents;
};

/* ---- JSON ---- */

/* How deep objects and arrays stand inside one another. */
static size_t depth_of(thole_slice text)
{
    size_t depth = 0, deepest = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t const c = text.ptr[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            deepest = ++depth > deepest ? depth : deepest;
        else if (!quoted && (c == '}' || c == ']') && depth > 0)
            depth--;
    }
    return deepest;
}

/* Exactly one value, followed by nothing but blanks. NULL: anything else. The caller deletes it before the
 * next await. */
static cJSON *parse(thole_slice text)
{
    const char *end = NULL;
    if (depth_of(text) > DEPTH_MAX)
        return NULL;
    cJSON *const json = cJSON_ParseWithLengthOpts((const char *)text.ptr, text.len, &end, false);
    size_t at = json == NULL ? 0 : (size_t)(end - (const char *)text.ptr);
    while (at < text.len && memchr(" \t\r\n", text.ptr[at], 4) != NULL)
        at++;
    if (json != NULL && at == text.len)
        return json;
    cJSON_Delete(json);
    return NULL;
}

/* A whole number from 0: numbers of cJSON are doubles, which are exact up to 2^53. */
static bool whole_number(const cJSON *object, const char *name, uint64_t *ret)
{
    const cJSON *const value = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(value) || !(value->valuedouble >= 0 && value->valuedouble < 9007199254740992.0) ||
        floor(value->valuedouble) != value->valuedouble)
        return false;
    *ret = (uint64_t)value->valuedouble;
    return true;
}

static thole_status take_items(thole_ctx *ctx, const cJSON *items, struct invoice *ret)
{
    size_t n = 0;
    if (!cJSON_IsArray(items))
        return thole_throw_as(ctx, BAD_INPUT, "\"items\" is no list");
    for (const cJSON *item = items->child; item != NULL; item = item->next, n++) {
        uint64_t cents, pieces;
        if (n == ITEMS_MAX)
            return thole_throw_as(ctx, BAD_INPUT, "more than %d items", ITEMS_MAX);
        if (!whole_number(item, "cents", &cents) || !whole_number(item, "pieces", &pieces) ||
            __builtin_mul_overflow(cents, pieces, &cents) ||
            __builtin_add_overflow(ret->cents, cents, &ret->cents))
            return thole_throw_as(ctx, BAD_INPUT, "item %zu has no \"cents\" and \"pieces\"", n + 1);
    }
    return THOLE_OK;
}

static thole_status take_invoice(thole_ctx *ctx, const cJSON *json, struct invoice *ret)
{
    const cJSON *const customer = cJSON_GetObjectItemCaseSensitive(json, "customer");
    if (!cJSON_IsString(customer))
        return thole_throw_as(ctx, BAD_INPUT, "\"customer\" is no text");
    ret->customer = thole_cstr(ctx, thole_slice_from(customer->valuestring));
    THOLE_TRY(take_items(ctx, cJSON_GetObjectItemCaseSensitive(json, "items"), ret));
    return ret->customer == NULL ? THOLE_LIMIT : THOLE_OK;
}

/* No await in here: what cJSON has allocated is freed in any case. */
static thole_status invoice_read(thole_ctx *ctx, thole_slice input, struct invoice *ret)
{
    *ret = (struct invoice){.cents = 0};
    cJSON *const json = parse(input);
    if (json == NULL)
        return thole_throw_as(ctx, BAD_INPUT, "the input is no JSON, or nested too deeply");
    thole_status const status = take_invoice(ctx, json, ret);
    cJSON_Delete(json);
    return status;
}

/* {"customer":…,"cents":…,"state":…} in thole_alloc() memory. */
static thole_status invoice_write(thole_ctx *ctx, const struct invoice *invoice, const char *state,
                                  thole_slice *ret)
{
    cJSON *const json = cJSON_CreateObject();
    const bool made = cJSON_AddStringToObject(json, "customer", invoice->customer) != NULL &&
                      cJSON_AddNumberToObject(json, "cents", (double)invoice->cents) != NULL &&
                      cJSON_AddStringToObject(json, "state", state) != NULL;
    char *const text = made ? cJSON_PrintUnformatted(json) : NULL;
    const char *const kept = text == NULL ? NULL : thole_cstr(ctx, thole_slice_from(text));
    free(text);
    cJSON_Delete(json);
    if (kept == NULL)
        return THOLE_LIMIT;
    *ret = thole_slice_from(kept);
    return THOLE_OK;
}

/* ---- the orchestration ---- */

static thole_status invoice(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    struct invoice invoice;
    thole_slice order;
    THOLE_TRY(invoice_read(ctx, input, &invoice));
    THOLE_TRY(invoice_write(ctx, &invoice, "charging", &order));
    thole_set_status(ctx, order);
    THOLE_TRY(thole_await_call(ctx, THOLE_STR("charge"), order, NULL, NULL));
    return invoice_write(ctx, &invoice, "paid", ret_output);
}

/* An activity runs once for each try, on a thread of its own: it may keep what it has parsed as long as it
 * runs. */
static thole_status charge(thole_activity *act, thole_slice order, thole_slice *ret_output)
{
    cJSON *const json = parse(order);
    uint64_t cents = 0;
    bool const good = json != NULL && whole_number(json, "cents", &cents);
    cJSON_Delete(json);
    if (!good)
        return thole_activity_fail_as(act, BAD_INPUT, "the order has no \"cents\"");
    *ret_output = thole_activity_format(act, "{\"charged\":%llu}", (unsigned long long)cents);
    return THOLE_OK;
}

static const thole_program program = {.size = sizeof program,
                                      .name = "invoice",
                                      THOLE_ORCHESTRATIONS({.name = "invoice", .run = invoice}),
                                      THOLE_ACTIVITIES({.name = "charge", .run = charge})};

int main(int argc, char **argv)
{
    return thole_main(argc, argv, &program);
}
