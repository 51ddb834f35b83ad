/* Objects that the command and the console show, as members of a JSON object: one form for each. */
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
void form_defect(struct json *json, const struct cluster_defect *defect);
void form_mended(struct json *json, const struct cluster_mended *mended);
void form_room(struct json *json, const struct cluster_room *room);
void form_rejected(struct json *json, const thole_rejected_info *info);
/* The member "set_aside": rows of the instance that Postgres refuses; none when there is no such row. */
void form_set_aside(struct json *json, thole_client *client, thole_slice instance);
/* Whether an instance of that status does not go on by itself. */
bool status_stands(thole_instance_status status);
/* The member "hindrances": why the instance does not go on, and what would let it. Those that are known on
 * failure. */
THOLE_NODISCARD thole_status form_hindrances(struct json *json, thole_client *client, thole_slice instance,
                                             thole_error *reterr);
/* "input" and "input_bytes". */
void form_data(struct json *json, const char *key, thole_slice data, size_t data_max);
#endif
