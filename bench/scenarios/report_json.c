/* One document with all figures, the machine, versions and settings. */
#include "json_file.h"
#include "scenarios.h"
#include "thole/program.h"
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

void report_cpu(char *ret, size_t cap)
{
    char line[256];
    FILE *const in = fopen("/proc/cpuinfo", "re");
    (void)snprintf(ret, cap, "unknown");
    while (in != NULL && fgets(line, sizeof line, in) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            (void)snprintf(ret, cap, "%s", strchr(line, ':') + 2);
            ret[strcspn(ret, "\n")] = '\0';
            break;
        }
    if (in != NULL)
        (void)fclose(in);
}

long report_cores(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN);
}

static void machine_json(struct json *json)
{
    struct utsname system;
    char cpu[128];
    report_cpu(cpu, sizeof cpu);
    json_key(json, "machine");
    json_object(json);
    json_member(json, "cpu", thole_slice_from(cpu));
    json_member_number(json, "cores", (uint64_t)report_cores());
    json_member_number(json, "memory_mb",
                       (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 1000000);
    if (uname(&system) == 0)
        json_member(json, "kernel", thole_slice_from(system.release));
    json_end(json);
}

static void settings_json(struct json *json, const struct bench *bench)
{
    const struct options *const options = &bench->options;
    json_key(json, "settings");
    json_object(json);
    json_member_number(json, "runs", options->runs);
    json_member_number(json, "milliseconds", options->milliseconds);
    json_member_number(json, "slots", options->slots);
    json_member_number(json, "idle_instances", options->instances);
    json_member_bool(json, "short", options->short_run);
    json_end(json);
    json_key(json, "versions");
    json_object(json);
    json_member(json, "thole", thole_slice_from(thole_version()));
    json_member(json, "nats_server", thole_slice_from(bench->versions.nats));
    json_member(json, "postgres", thole_slice_from(bench->versions.postgres));
    json_end(json);
}

static void figure_json(struct json *json, const struct figure *figure)
{
    char text[32];
    json_object(json);
    json_member(json, "durability", thole_slice_from(durability_names[figure->durability]));
    json_member(json, "scenario", thole_slice_from(figure->scenario));
    json_member(json, "case", thole_slice_from(figure->at));
    json_member(json, "figure", thole_slice_from(figure->name));
    json_key(json, "runs");
    json_array(json);
    for (size_t i = 0; i < figure->runs; i++) {
        int const len = snprintf(text, sizeof text, "%.6g", figure->values[i]);
        json_value(json); /* the writer itself knows whole numbers only */
        json->put(json->to, text, (size_t)len);
    }
    json_end(json);
    json_end(json);
}

bool report_json(const struct bench *bench, const char *path)
{
    struct json json;
    FILE *const out = fopen(path, "we");
    if (out == NULL)
        return bench_fail(path, "cannot be written");
    json_document(&json, out, "thole.bench.v1");
    json_member_time(&json, "time", (uint64_t)time(NULL) * 1000);
    machine_json(&json);
    settings_json(&json, bench);
    json_key(&json, "figures");
    json_array(&json);
    for (size_t i = 0; i < bench->figures.len; i++)
        figure_json(&json, &bench->figures.list[i]);
    json_end(&json);
    json_end(&json);
    bool const good = ferror(out) == 0;
    return fclose(out) == 0 && good ? true : bench_fail(path, "cannot be written");
}
