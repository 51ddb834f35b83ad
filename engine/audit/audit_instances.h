/* Inside of the audit room: the instances of a partition, by id. */
#ifndef THOLE_AUDIT_INSTANCES_H
#define THOLE_AUDIT_INSTANCES_H
#include "record_hash.h"
#include "thole/types.h"

struct audit_instance {
    struct record_hash newest; /* of its last record; none: none was seen */
    uint64_t sequence;         /* of that */
    uint64_t gap;              /* a record at this sequence names one that is not there; 0: none does */
    uint64_t gap_execution;
    bool gap_begins; /* the record begins an execution: what it names may be the deletion before it */
    uint32_t id_len;
    uint64_t hash;
    struct audit_instance *next;
    uint8_t id[];
};
struct audit_instances {
    struct audit_instance **buckets;
    size_t len, cap;
};
/* Adds it, if it is not there. */
struct audit_instance *audit_instances_at(struct audit_instances *instances, thole_slice id);
void audit_instances_release(struct audit_instances *instances);
#endif
