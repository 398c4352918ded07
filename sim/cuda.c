/* The simulated libcuda.so.1: the calls that suspend the jobs of `gpulse sim load`, as in a driver
 * of branch 580. */
#include "abi/cuda.h"

#include "sim/live.h"
#include "sim/machine.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"

enum { STEP_MS = 10 };

#define X(name, args) __attribute__((visibility("default"))) CUresult name args;
CUDA_FUNCTIONS(X)
#undef X

static struct sim_live live;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_machine(void)
{
    Dl_info info;
    char home[GP_PATH_SIZE];
    struct sim_machine *machine;
    struct sim_state *state;
    struct gp_err err;
    const char *spec = getenv("GPULSE_SIM");
    if (!spec || !dladdr(&live, &info) || !info.dli_fname || !realpath(info.dli_fname, home))
        return;
    *strrchr(home, '/') = '\0';
    if (sim_machine_open(spec, home, &machine, &err) == 0 &&
        sim_state_open(spec, &state, &err) == 0)
        live = (struct sim_live){.machine = machine, .state = state};
}

CUresult cuInit(unsigned int flags)
{
    (void)pthread_once(&once, open_machine);
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : live.state ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* Whether the process is stopped: it then answers no calls, and a real driver waits for it. */
static bool stands_still(int pid)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    const char *end = gp_io_read(path, text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
    return end && end[1] && (end[2] == 'T' || end[2] == 't');
}

static bool is_hung(const struct sim_job *job)
{
    struct sim_fault fault;
    for (size_t i = 0; sim_state_has_faults(live.state) && i < SIM_MAX_FAULTS; i++)
        if (sim_state_fault(live.state, i, &fault) && fault.kind == SIM_FAULT_HANG &&
            (fault.gpu == job->device || fault.gpu == SIM_ALL_GPUS))
            return true;
    return false;
}

static void pause_a_step(void)
{
    const struct timespec step = gp_clock_timespec((uint64_t)STEP_MS * GP_NS_PER_MS);
    (void)nanosleep(&step, NULL);
}

static bool find_job(int pid, size_t *ret_slot, struct sim_job *ret)
{
    for (size_t i = 0; live.state && i < SIM_MAX_JOBS; i++)
        if (sim_state_job(live.state, i, ret) && ret->pid == (uint32_t)pid && !ret->hidden) {
            *ret_slot = i;
            return true;
        }
    return false;
}

/* Finds the job of a process, and waits until the process responds. */
static CUresult reach(int pid, size_t *ret_slot, struct sim_job *ret)
{
    if (!live.state)
        return CUDA_ERROR_NOT_INITIALIZED;
    while (find_job(pid, ret_slot, ret)) {
        if (!stands_still(pid) && !is_hung(ret))
            return CUDA_SUCCESS;
        pause_a_step();
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/* What a step requires, and the resulting state of the process. */
struct step {
    CUprocessState from, to;
    CUresult (*check)(const struct sim_job *job); /* NULL: it always succeeds */
};

static CUresult take(int pid, const struct step *step)
{
    size_t slot;
    struct sim_job job;
    struct gp_err err;
    CUresult result = reach(pid, &slot, &job);
    if (result != CUDA_SUCCESS)
        return result;
    if (sim_state_lock(live.state, &err) < 0)
        return CUDA_ERROR_UNKNOWN;
    if (!sim_state_job(live.state, slot, &job) || job.pid != (uint32_t)pid)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (job.cuda_state != (uint32_t)step->from)
        result = CUDA_ERROR_ILLEGAL_STATE;
    else if (step->check)
        result = step->check(&job);
    if (result == CUDA_SUCCESS)
        job.cuda_state = (uint32_t)step->to;
    else if (result == CUDA_ERROR_OUT_OF_MEMORY)
        job.spoilt = 1;
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY)
        sim_state_update_job(live.state, slot, &job);
    sim_state_unlock(live.state);
    return result;
}

CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
    size_t slot;
    struct sim_job job;
    CUresult result = reach(pid, &slot, &job);
    if (result == CUDA_SUCCESS)
        *state = (CUprocessState)job.cuda_state;
    return result;
}

static CUresult check_lock(const struct sim_job *job)
{
    return job->busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    static const struct step lock = {CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED, check_lock};
    uint64_t until_ns = gp_clock_mono_ns() + (args ? args->timeoutMs : 0) * GP_NS_PER_MS;
    CUresult result = take(pid, &lock);
    while (result == CUDA_ERROR_NOT_READY &&
           (!args || !args->timeoutMs || gp_clock_mono_ns() < until_ns)) {
        pause_a_step();
        result = take(pid, &lock);
    }
    return result;
}

/* Managed memory cannot be moved. */
static CUresult check_save(const struct sim_job *job)
{
    return job->managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
    static const struct step save = {CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED,
                                     check_save};
    return args ? CUDA_ERROR_INVALID_VALUE : take(pid, &save);
}

/* A process that once found no room can never be restored, regardless of free memory. */
static CUresult check_restore(const struct sim_job *job)
{
    struct sim_memory memory;
    if (job->spoilt)
        return CUDA_ERROR_OPERATING_SYSTEM;
    for (size_t i = 0; i < live.machine->device_count; i++)
        if ((int32_t)live.machine->devices[i].index == job->device &&
            sim_live_memory(&live, &live.machine->devices[i], &memory) == NVML_SUCCESS)
            return memory.free < job->bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
    static const struct step restore = {CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED,
                                        check_restore};
    return args ? CUDA_ERROR_INVALID_VALUE : take(pid, &restore);
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
    static const struct step unlock = {CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING, NULL};
    return args ? CUDA_ERROR_INVALID_VALUE : take(pid, &unlock);
}
