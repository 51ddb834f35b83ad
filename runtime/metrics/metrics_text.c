/* The text format of Prometheus. */
#include "metrics_state.h"
#include <inttypes.h>

/* In HELP only \ and line feeds are special, in a label's value " as well. */
static void metrics_text_escaped(struct buf *to, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\\')
            buf_text(to, "\\\\");
        else if (*c == '"')
            buf_text(to, "\\\"");
        else if (*c == '\n')
            buf_text(to, "\\n");
        else
            buf_append(to, c, 1);
    }
}

static void metrics_text_number(struct buf *to, enum metric_unit unit, uint64_t value)
{
    enum { MILLIS = 1000, MICROS = 1000 * 1000 };
    switch (unit) {
    case METRIC_ONES:
    case METRIC_BYTES: buf_printf(to, "%" PRIu64, value); break;
    case METRIC_MILLISECONDS: buf_printf(to, "%" PRIu64 ".%03" PRIu64, value / MILLIS, value % MILLIS); break;
    case METRIC_MICROSECONDS: buf_printf(to, "%" PRIu64 ".%06" PRIu64, value / MICROS, value % MICROS); break;
    }
}

static const char *label_value(const struct metrics *metrics, const struct metric_rule *rule, size_t label)
{
    return rule->values != NULL ? rule->values[label] : metrics->options.activities[label];
}

/* NAME SUFFIX {label="value"} and a space. */
static void metrics_text_series(struct buf *to, const struct metrics *metrics, enum metric metric,
                                size_t label, const char *suffix)
{
    const struct metric_rule *const rule = &metric_rules[metric];
    size_t const values = metric_values(metrics, metric);
    buf_printf(to, "%s%s", rule->name, suffix);
    if (rule->named != NULL) {
        buf_printf(to, "{%s=\"", rule->named);
        metrics_text_escaped(to, metric_name_shown(metrics, label / values));
        buf_printf(to, "\",%s=\"", rule->label);
        metrics_text_escaped(to, label_value(metrics, rule, label % values));
        buf_text(to, "\"} ");
    } else if (rule->label != NULL) {
        buf_printf(to, "{%s=\"", rule->label);
        metrics_text_escaped(to, label_value(metrics, rule, label));
        buf_text(to, "\"} ");
    } else {
        buf_text(to, " ");
    }
}

static void metrics_text_bucket(struct buf *to, const struct metrics *metrics, enum metric metric,
                                size_t label, uint64_t bound, uint64_t count)
{
    const struct metric_rule *const rule = &metric_rules[metric];
    buf_printf(to, "%s_bucket{", rule->name);
    if (rule->label != NULL) {
        buf_printf(to, "%s=\"", rule->label);
        metrics_text_escaped(to, label_value(metrics, rule, label));
        buf_text(to, "\",");
    }
    buf_text(to, "le=\"");
    if (bound != 0)
        metrics_text_number(to, rule->unit, bound);
    else
        buf_text(to, "+Inf");
    buf_printf(to, "\"} %" PRIu64 "\n", count);
}

/* The count is the sum of the buckets that were read, so that it always is the last bucket. */
static void metrics_text_histogram(struct buf *to, const struct metrics *metrics, enum metric metric,
                                   size_t label)
{
    size_t const n = metric_buckets(metric);
    uint64_t count = 0;
    for (size_t i = 0; i <= n; i++) {
        count += metrics_read(metrics, metric, label, i);
        metrics_text_bucket(to, metrics, metric, label, metric_rules[metric].bounds[i], count);
    }
    metrics_text_series(to, metrics, metric, label, "_sum");
    metrics_text_number(to, metric_rules[metric].unit, metrics_read(metrics, metric, label, n + 1));
    buf_text(to, "\n");
    metrics_text_series(to, metrics, metric, label, "_count");
    buf_printf(to, "%" PRIu64 "\n", count);
}

static void metrics_text_head(struct buf *to, const char *name, const char *kind, const char *help)
{
    buf_printf(to, "# HELP %s ", name);
    for (const char *c = help; *c != '\0'; c++)
        if (*c == '\\')
            buf_text(to, "\\\\");
        else
            buf_append(to, c, 1);
    buf_printf(to, "\n# TYPE %s %s\n", name, kind);
}

static void metric_text(struct buf *to, const struct metrics *metrics, enum metric metric, uint64_t now_ms)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    const struct metric_rule *const rule = &metric_rules[metric];
    metrics_text_head(to, rule->name, kinds[rule->kind], rule->help);
    size_t const labels = rule->named == NULL ? metric_labels(metrics, metric)
                                              : metric_names_shown(metrics) * metric_values(metrics, metric);
    for (size_t label = 0; label < labels; label++) {
        if (rule->kind == METRIC_HISTOGRAM) {
            metrics_text_histogram(to, metrics, metric, label);
            continue;
        }
        metrics_text_series(to, metrics, metric, label, "");
        metrics_text_number(to, rule->unit,
                            metric == METRIC_LOOP_BUSY ? metrics_busy_ms(metrics, now_ms)
                                                       : metrics_read(metrics, metric, label, 0));
        buf_text(to, "\n");
    }
}

void metrics_text(const struct metrics *metrics, uint64_t now_ms, struct buf *to)
{
    metrics_text_head(to, "thole_build_info", "gauge", "1; its labels say what runs");
    buf_text(to, "thole_build_info{");
    for (size_t i = 0; i < metrics->options.info_len; i++) {
        buf_printf(to, "%s%s=\"", i > 0 ? "," : "", metrics->options.info[i].label);
        metrics_text_escaped(to, metrics->options.info[i].value);
        buf_text(to, "\"");
    }
    buf_text(to, "} 1\n");
    for (int m = 0; m < METRICS; m++)
        if (metrics->offsets[m] != METRIC_HIDDEN)
            metric_text(to, metrics, (enum metric)m, now_ms);
}
