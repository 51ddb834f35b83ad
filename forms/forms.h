/* What the command and the console show, as members of a JSON object: one form for each thing. */
#ifndef THOLE_FORMS_H
#define THOLE_FORMS_H
#include "cluster.h"
#include "json_file.h"
#include "roster.h"

/* A row of the projection. */
void form_instance(struct json *json, const thole_instance_info *info);
/* @p data_max: longer data is cut, and then its whole length is "data_bytes". SIZE_MAX: it never is. */
void form_event(struct json *json, const thole_history_event *event, size_t data_max);
/* An activity in quarantine. */
void form_poisoned(struct json *json, const thole_poisoned_info *info);
void form_queue(struct json *json, const struct roster *roster, const thole_queue_info *info);
void form_engine(struct json *json, const struct cluster *cluster, const struct cluster_engine *engine);
void form_worker(struct json *json, const struct roster_worker *worker);
void form_partition(struct json *json, uint32_t p, const struct cluster_partition *partition);
void form_rejected(struct json *json, const thole_rejected_info *info);
/* "input" and "input_bytes". */
void form_data(struct json *json, const char *key, thole_slice data, size_t data_max);
#endif
