#include "process_stage.h"
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

struct process_notes *process_notes;
struct process_pool *process_stage_pool;
struct forkserver *process_stage_forkserver;
char process_stage_argument[] = "--postgres=secret";
atomic_uint process_stage_lost;
const char *process_stage_env = "STAGE";
static const thole_program *stage_program;

void process_note(pid_t pid)
{
    unsigned const at = atomic_fetch_add(&process_notes->pids_len, 1);
    if (at < STAGE_PIDS_MAX)
        atomic_store(&process_notes->pids[at], (int)pid);
}

unsigned process_alive(void)
{
    unsigned alive = 0;
    for (unsigned i = 0; i < atomic_load(&process_notes->pids_len) && i < STAGE_PIDS_MAX; i++)
        alive += kill(atomic_load(&process_notes->pids[i]), 0) == 0;
    return alive;
}

static void on_lost(void)
{
    atomic_fetch_add(&process_stage_lost, 1);
}

void process_stage_open(const thole_program *program, uint32_t max)
{
    static char *argv[] = {"test", process_stage_argument, NULL};
    struct forkserver_options const options = {.program = program,
                                               .argv = argv,
                                               .payload_max = 100000,
                                               .env = process_stage_env,
                                               .lost = on_lost,
                                               .secrets = {NULL, process_stage_argument + 11}};
    thole_error error = {.status = THOLE_OK};
    stage_program = program;
    process_notes =
        mmap(NULL, sizeof *process_notes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (process_notes == MAP_FAILED ||
        forkserver_start(&options, &process_stage_forkserver, &error) != THOLE_OK) {
        fprintf(stderr, "no stage: %s\n", error.text);
        exit(1);
    }
    process_stage_pool = process_pool_create(process_stage_forkserver, program, max);
}

void process_stage_close(void)
{
    process_pool_destroy(process_stage_pool);
    process_stage_pool = NULL; /* so that what it has not released is found to be leaked */
    forkserver_stop(process_stage_forkserver);
    munmap(process_notes, sizeof *process_notes);
}

static const struct activity_parties parties = {
    {(const uint8_t *)"ship", 4}, 8, {(const uint8_t *)"node-1", 6}};

struct thole_activity *process_stage_activity(const char *name, const char *input, bool in_process)
{
    struct work_message *const message = calloc(1, sizeof *message);
    size_t entry = 0;
    while (strcmp(stage_program->activities[entry].name, name) != 0)
        entry++;
    message->item = (struct work_item){.queue = THOLE_STR("slow"),
                                       .instance = THOLE_STR("order 7"),
                                       .activity = thole_slice_from(name),
                                       .input = thole_slice_from(input),
                                       .execution = 3,
                                       .activity_id = 4,
                                       .try_number = 2};
    struct thole_activity *const act = activity_create(message, 0);
    act->run = in_process ? process_pool_run : stage_program->activities[entry].run;
    act->pool = process_stage_pool;
    act->entry = entry;
    act->partition = 5;
    CU_ASSERT_EQUAL(activity_begin(act, 6, UINT64_MAX, THOLE_STR("page 1"), &parties), THOLE_OK);
    return act;
}

const char *process_stage_run(struct thole_activity *act)
{
    static char text[4096];
    char room[ACTIVITY_RESULT_TEXT_BYTES];
    struct message message = {0};
    activity_run(act);
    if (act->status == THOLE_LATER)
        return "later";
    activity_result(act, 100000, room, &message);
    if (message.status == THOLE_OK)
        snprintf(text, sizeof text, "ok: %.*s", THOLE_FMT(message.data));
    else
        snprintf(text, sizeof text, "%s [%.*s]%s: %.*s | %.*s",
                 thole_status_name((thole_status)message.status), THOLE_FMT(message.error_type),
                 message.final ? " final" : "", THOLE_FMT(message.data), THOLE_FMT(message.details));
    return text;
}

const char *process_stage_once(const char *name, const char *input)
{
    struct thole_activity *const act = process_stage_activity(name, input, true);
    const char *const text = process_stage_run(act);
    activity_destroy(act);
    return text;
}

void process_stage_check(const char *row, const char *got, const char *want)
{
    CHECK_STR(row, got, want);
}

static void *run_thread(void *act)
{
    activity_run(act);
    return NULL;
}

void process_stage_begin(struct process_running *running, const char *name, const char *input)
{
    struct timespec const pause = {.tv_nsec = 1000000};
    unsigned const before = atomic_load(&process_notes->started);
    running->act = process_stage_activity(name, input, true);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&running->thread, NULL, run_thread, running->act), 0);
    for (int i = 0; i < 20000 && atomic_load(&process_notes->started) == before; i++)
        nanosleep(&pause, NULL);
    CU_ASSERT_TRUE(atomic_load(&process_notes->started) > before);
}

void process_stage_end(struct process_running *running)
{
    CU_ASSERT_EQUAL(pthread_join(running->thread, NULL), 0);
}

void process_stage_fire(struct thole_activity *act, thole_cancel_kind kind, const char *reason,
                        uint64_t grace_ms)
{
    activity_fire(act, &(struct activity_cancel){.kind = kind,
                                                 .reason = thole_slice_from(reason),
                                                 .grace_end_ms = clock_monotonic_ms() + grace_ms});
}
