#include "doctor/stall.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void gp_stall_init(struct gp_stall *stall)
{
    *stall = (struct gp_stall){.since = 0};
    (void)pthread_mutex_init(&stall->lock, NULL);
}

unsigned gp_stall_enter(struct gp_stall *stall, const char *path)
{
    if (!stall)
        return 0;
    (void)pthread_mutex_lock(&stall->lock);
    stall->since = gp_clock_mono_ns();
    if (path)
        (void)snprintf(stall->path, sizeof(stall->path), "%s", path);
    unsigned turn = stall->turn;
    (void)pthread_mutex_unlock(&stall->lock);
    return turn;
}

void gp_stall_leave(struct gp_stall *stall, unsigned turn)
{
    if (!stall)
        return;
    (void)pthread_mutex_lock(&stall->lock);
    bool is_given_up = turn != stall->turn;
    if (!is_given_up)
        stall->since = 0;
    (void)pthread_mutex_unlock(&stall->lock);
    if (is_given_up)
        for (;;)
            (void)pause();
}

bool gp_stall_give_up(struct gp_stall *stall, uint64_t patience_ns, char path[GP_PATH_SIZE])
{
    (void)pthread_mutex_lock(&stall->lock);
    bool is_over = stall->since > 0 && gp_clock_mono_ns() - stall->since > patience_ns;
    if (is_over) {
        stall->turn++;
        stall->since = 0;
        (void)snprintf(path, GP_PATH_SIZE, "%s", stall->path);
    }
    (void)pthread_mutex_unlock(&stall->lock);
    return is_over;
}

void gp_stall_refuse(struct gp_stall *stall, const char *path)
{
    (void)pthread_mutex_lock(&stall->lock);
    bool is_last = stall->refused_count + 1 >= GP_STALL_REFUSED;
    if (stall->refused_count < GP_STALL_REFUSED)
        (void)snprintf(stall->refused[stall->refused_count++], GP_PATH_SIZE, "%s",
                       is_last ? "" : path);
    (void)pthread_mutex_unlock(&stall->lock);
}

bool gp_stall_refuses(struct gp_stall *stall, const char *path)
{
    bool refuses = false;
    if (!stall)
        return false;
    (void)pthread_mutex_lock(&stall->lock);
    for (size_t i = 0; i < stall->refused_count && !refuses; i++)
        refuses = gp_mount_is_below(path, stall->refused[i]);
    (void)pthread_mutex_unlock(&stall->lock);
    return refuses;
}
