/* The jobs in the live state, and their accounts. */
#include "sim/state_internal.h"

#include "base/clock.h"
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECHECK_MS = 100 };

/* ------------------------------------------------------------------------- accounts */

bool sim_state_account(struct sim_state *state, size_t slot, struct sim_account *ret)
{
    return sim_slot_read(&state->map->accounts[slot], ret, sizeof(*ret));
}

static void write_account(struct sim_state *state, size_t slot, const struct sim_account *account)
{
    sim_slot_write(&state->map->accounts[slot], account, sizeof(*account));
}

static void drop_account(struct sim_state *state, size_t slot)
{
    atomic_store(&state->map->accounts[slot].used, 0);
}

/* The record of a running job; false if there is none. */
static bool find_account(struct sim_state *state, const struct sim_job *job, size_t *ret_slot,
                         struct sim_account *ret)
{
    if (!atomic_load(&state->map->account_count))
        return false;
    for (*ret_slot = 0; *ret_slot < SIM_MAX_ACCOUNTS; ++*ret_slot)
        if (sim_state_account(state, *ret_slot, ret) && !ret->end_us && ret->pid == job->pid &&
            ret->start_ticks == job->start_ticks && ret->gpu == (uint32_t)job->device)
            return true;
    return false;
}

void sim_state_begin_account(struct sim_state *state, const struct sim_job *job)
{
    struct sim_account account;
    size_t slot;
    size_t tries = 0;
    do { /* records of running jobs stay; there are always fewer than slots */
        slot = atomic_fetch_add(&state->map->account_count, 1) % SIM_MAX_ACCOUNTS;
    } while (sim_state_account(state, slot, &account) && !account.end_us &&
             ++tries < SIM_MAX_ACCOUNTS);
    account = (struct sim_account){
        .pid = job->pid,
        .gpu = (uint32_t)job->device,
        .start_ticks = job->start_ticks,
        .begin_us = gp_clock_wall_ns() / 1000,
        .most_bytes = job->bytes,
        .util_pct = job->util_pct,
    };
    write_account(state, slot, &account);
}

static void update_account(struct sim_state *state, const struct sim_job *job)
{
    struct sim_account account;
    size_t slot;
    if (!find_account(state, job, &slot, &account) || job->bytes <= account.most_bytes)
        return;
    account.most_bytes = job->bytes;
    write_account(state, slot, &account);
}

/* Like a driver, forgets an earlier process with the same pid. */
static void end_account(struct sim_state *state, size_t slot, struct sim_account *account)
{
    struct sim_account other;
    account->end_us = gp_clock_wall_ns() / 1000;
    for (size_t i = 0; i < SIM_MAX_ACCOUNTS; i++)
        if (sim_state_account(state, i, &other) && other.end_us && other.pid == account->pid &&
            other.gpu == account->gpu)
            drop_account(state, i);
    write_account(state, slot, account);
}

void sim_state_settle_accounts(struct sim_state *state)
{
    struct sim_account account;
    for (size_t i = 0; atomic_load(&state->map->account_count) && i < SIM_MAX_ACCOUNTS; i++)
        if (sim_state_account(state, i, &account) && !account.end_us &&
            sim_process_start(account.pid) != account.start_ticks)
            end_account(state, i, &account);
}

void sim_state_forget_accounts(struct sim_state *state, unsigned int gpu, bool running_too)
{
    struct sim_account account;
    for (size_t i = 0; i < SIM_MAX_ACCOUNTS; i++)
        if (sim_state_account(state, i, &account) && account.gpu == gpu &&
            (running_too || account.end_us))
            drop_account(state, i);
}

/* ------------------------------------------------------------------------- jobs */

uint64_t sim_process_start(unsigned int pid)
{
    char path[32], text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    if (gp_io_read(path, text, sizeof(text)) <= 0)
        return 0;
    /* The command name may contain anything; fields are counted from its closing parenthesis. After
     * it, state is field 3 and the start time field 22. */
    const char *p = strrchr(text, ')');
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

bool sim_state_has_jobs(struct sim_state *state)
{
    return atomic_load_explicit(&state->map->job_count, memory_order_acquire) > 0;
}

static bool job_lives(struct sim_state *state, size_t slot, const struct sim_job *job)
{
    unsigned long long now = gp_clock_mono_ns() / GP_NS_PER_MS;
    /* One word, because another thread may still be checking the previous job of this slot. */
    uint64_t which = job->start_ticks << 23 | (uint64_t)job->pid << 1;
    uint64_t verdict = atomic_load(&state->jobs[slot].verdict);
    if (now - atomic_load(&state->jobs[slot].checked_ms) < RECHECK_MS &&
        (verdict & ~UINT64_C(1)) == which)
        return verdict & 1;
    bool alive = sim_process_start(job->pid) == job->start_ticks;
    atomic_store(&state->jobs[slot].verdict, which | alive);
    atomic_store(&state->jobs[slot].checked_ms, now);
    return alive;
}

/* Both are based on the same check of the parent job, so that the memory is neither free in between
 * nor counted twice. */
static bool has_inherited(struct sim_state *state, const struct sim_job *job)
{
    struct sim_job other;
    return !job->heir_of || job->heir_slot >= SIM_MAX_JOBS ||
           !sim_slot_read(&state->map->jobs[job->heir_slot], &other, sizeof(other)) ||
           other.pid != job->heir_of || !job_lives(state, job->heir_slot, &other);
}

bool sim_state_job_or_heir(struct sim_state *state, size_t slot, struct sim_job *ret)
{
    if (!sim_slot_read(&state->map->jobs[slot], ret, sizeof(*ret)) || !job_lives(state, slot, ret))
        return false;
    ret->name[SIM_JOB_NAME_SIZE - 1] = '\0';
    return true;
}

bool sim_state_job(struct sim_state *state, size_t slot, struct sim_job *ret)
{
    return sim_state_job_or_heir(state, slot, ret) && has_inherited(state, ret);
}

static void reclaim_jobs(struct sim_state *state)
{
    for (size_t i = 0; i < SIM_MAX_JOBS; i++) {
        struct sim_job job;
        if (sim_slot_read(&state->map->jobs[i], &job, sizeof(job)) &&
            sim_process_start(job.pid) != job.start_ticks)
            sim_state_remove_job(state, i);
    }
}

int sim_state_add_job(struct sim_state *state, const struct sim_job *job, size_t *ret_slot,
                      struct gp_err *err)
{
    reclaim_jobs(state);
    for (size_t i = 0; i < SIM_MAX_JOBS; i++) {
        if (atomic_load(&state->map->jobs[i].used))
            continue;
        sim_slot_write(&state->map->jobs[i], job, sizeof(*job));
        atomic_fetch_add(&state->map->job_count, 1);
        *ret_slot = i;
        return GP_OK;
    }
    return gp_err_set(err, GP_ETOOBIG, "all %d job slots of the simulator are in use",
                      SIM_MAX_JOBS);
}

void sim_state_update_job(struct sim_state *state, size_t slot, const struct sim_job *job)
{
    sim_slot_write(&state->map->jobs[slot], job, sizeof(*job));
    update_account(state, job);
}

void sim_state_remove_job(struct sim_state *state, size_t slot)
{
    struct sim_job job;
    struct sim_account account;
    size_t of_it;
    if (sim_slot_read(&state->map->jobs[slot], &job, sizeof(job)) &&
        find_account(state, &job, &of_it, &account))
        end_account(state, of_it, &account);
    if (atomic_exchange(&state->map->jobs[slot].used, 0))
        atomic_fetch_sub(&state->map->job_count, 1);
}

void sim_state_remove_heirs(struct sim_state *state, uint32_t pid)
{
    for (size_t i = 0; i < SIM_MAX_JOBS; i++) {
        struct sim_job job;
        if (sim_slot_read(&state->map->jobs[i], &job, sizeof(job)) && job.heir_of == pid)
            sim_state_remove_job(state, i);
    }
}
