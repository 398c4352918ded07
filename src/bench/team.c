#include "bench/team.h"

#include "base/err.h"

#include <pthread.h>
#include <stdlib.h>

struct gp_bench_team {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    size_t members, arrived, over;
};

struct member {
    pthread_t thread;
    struct gp_bench_team *team;
    size_t device;
    gp_bench_member *run;
    void *context;
    struct gp_err err;
    int result;
};

static void *run_member(void *argument)
{
    struct member *m = argument;
    m->result = m->run(m->team, m->device, m->context, &m->err);
    return NULL;
}

/* A member that could not be started is not waited for. */
static void leave_out(struct gp_bench_team *team, size_t missing)
{
    (void)pthread_mutex_lock(&team->lock);
    team->members -= missing;
    (void)pthread_cond_broadcast(&team->wake);
    (void)pthread_mutex_unlock(&team->lock);
}

int gp_bench_team_run(const size_t *devices, size_t count, gp_bench_member *member, void *context,
                      struct gp_err *err)
{
    struct gp_bench_team team = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .members = count};
    struct member *members = calloc(count, sizeof(*members));
    size_t started = 0;
    int r = 0;
    if (!members)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    while (started < count) {
        members[started] = (struct member){
            .team = &team, .device = devices[started], .run = member, .context = context};
        if (pthread_create(&members[started].thread, NULL, run_member, &members[started]) != 0)
            break;
        started++;
    }
    if (started < count) {
        leave_out(&team, count - started);
        r = gp_err_set(err, GP_EFAIL, "cannot start a thread");
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(members[i].thread, NULL);
        if (r == 0 && members[i].result < 0)
            r = gp_err_copy(err, &members[i].err);
    }
    free(members);
    return r;
}

void gp_bench_team_begin(struct gp_bench_team *team)
{
    (void)pthread_mutex_lock(&team->lock);
    team->arrived++;
    (void)pthread_cond_broadcast(&team->wake);
    while (team->arrived < team->members)
        (void)pthread_cond_wait(&team->wake, &team->lock);
    (void)pthread_mutex_unlock(&team->lock);
}

void gp_bench_team_end(struct gp_bench_team *team)
{
    (void)pthread_mutex_lock(&team->lock);
    team->over++;
    (void)pthread_mutex_unlock(&team->lock);
}

bool gp_bench_team_is_over(struct gp_bench_team *team)
{
    (void)pthread_mutex_lock(&team->lock);
    bool is_over = team->over >= team->members;
    (void)pthread_mutex_unlock(&team->lock);
    return is_over;
}
