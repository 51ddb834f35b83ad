/* Inside of the engine node: its seats and what it asks of the servers. */
#ifndef THOLE_ENGINE_REQUEST_H
#define THOLE_ENGINE_REQUEST_H
#include "engine_node.h"
#include "log_fake.h"
#include "store_fake.h"

enum { SEAT_QUEUE_MAX = 256 };

struct seat { /* one partition as this node sees it */
    struct engine *engine;
    uint32_t partition;
    struct partition *machine;
    uint64_t machine_life; /* answers to an earlier machine are thrown away */
    bool wanted, open_due, drive_due, deliver_due;
    bool rows_wait;           /* until the engine writes no others */
    struct record_forms read; /* as the machine was told */
    /* of the inbox when the partition was opened: what stood there by then was to be heard of */
    uint64_t opened_last, opened_inbox_life;
    uint64_t wake_ms;
    uint64_t asked, asked_generation; /* outputs of that generation whose answers the machine waits for */
    struct world *world;
    struct code_watch watch;
    uint64_t crashes_read; /* writes of the list of crashes when the machine has read it */
    struct {
        bool active;
        uint64_t generation, next;
        uint64_t inbox_life, link_life; /* reads nothing more when either has changed */
    } reader;
    /* Statements go one after the other over the seat's connection: of the life in which it was opened. */
    uint64_t opened_life;
    struct engine_request *statements[SEAT_QUEUE_MAX];
    size_t statements_len;
    bool statement_out;
};

struct engine {
    struct node node;
    struct seat seats[WORLD_PARTITIONS_MAX];
    struct partition_options options; /* of this seed */
    bool knows_late;
    bool clock_wrong;               /* by years, and it knows: clock_fake.h */
    bool dying;                     /* code has crashed it: nothing that its machines say now is heard */
    struct engine_request *batches; /* requests that own a batch */
};

struct engine_request {
    struct request request;
    struct seat *seat;
    uint64_t machine_life;
    struct partition_out out; /* slices and arrays are the world's copies */
    const void *lent_bytes;   /* APPEND: the machine's own bytes, which must stay what they are */
    size_t instance;
    struct engine_request *next_batch;
    bool executed;
    /* the answer */
    thole_status status;
    uint64_t epoch_asked; /* of a statement: its owner's */
    uint64_t sequence, epoch_sequence, last_sequence, inbox_life, epoch;
    struct rows_state rows; /* asked: what its owner knows */
    struct log_records records;
    struct partition_result *results;
    size_t results_len;
    struct in_ids ids;
    struct in_dispensable dispensable;
    struct log_record folded; /* READ_TAIL */
    struct store_timers timers;
    struct store_live live;
    unsigned step; /* READ_TAIL */
};

/* engine_request.c: copies the output and sends it. */
void engine_ask(struct world *w, struct seat *seat, const struct partition_out *out);
void engine_forget_statements(struct seat *seat);
/* A seat with work to do waits for an answer, for a time, or for the database. */
void seat_check_goes_on(struct world *w, const struct seat *seat);
bool engine_is_writing(const struct engine *engine); /* the rows of one of its partitions */
void engine_free_batches(struct engine *engine);

/* engine_node.c */
void seat_input(struct world *w, struct seat *seat, const struct partition_in *in);
/* Code has crashed it: at once. */
void engine_dies(struct world *w, struct engine *engine);
void seat_drive_soon(struct world *w, struct seat *seat);
void seat_open_soon(struct world *w, struct seat *seat, uint64_t delay_ms);
/* The seat's place in the inbox was taken in that life, over the request's connection. */
void seat_reads(struct world *w, struct seat *seat, const struct engine_request *r);
#endif
