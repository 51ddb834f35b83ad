/* The checks of `thole doctor`. */
#ifndef THOLE_DOCTOR_CHECKS_H
#define THOLE_DOCTOR_CHECKS_H
#include "cluster.h"
#include "doctor_report.h"
#include "overview.h"
#include "postgres.h"
#include "topology.h"

/* Checks the server, the namespace, and the engines and workers. */
void doctor_nats(struct doctor_report *report);
/* How the engines are, and whether the streams and consumers are as they must be; with --fix puts right what
 * may be. */
void doctor_state(struct doctor_report *report, struct connection *connection,
                  const struct topology *topology, const struct cluster *cluster);
/* How much is stored, and for how long there is room. @p server: of the NATS server; zeroed: not known. */
void doctor_room(struct doctor_report *report, struct connection *connection, const struct topology *topology,
                 const struct cluster *cluster, const struct overview_room *server);
void doctor_postgres(struct doctor_report *report);
/* How the doctor connects to Postgres; borrows from @p options. */
struct postgres_options doctor_postgres_options(const struct cli_options *options);
/* Whether the rows are as new as the histories: looks at NATS and at Postgres. */
void doctor_rows(struct doctor_report *report);
/* Whether engines have different code, instances do not go on, and activities wait that nobody runs. */
void doctor_standing(struct doctor_report *report);
/* Are the two of one namespace, and has either lost anything? */
void doctor_identity(struct doctor_report *report);
#endif
