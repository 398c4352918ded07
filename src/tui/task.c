#include "tui/task.h"

#include "sample/thread.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct gp_task {
    pthread_t thread;
    void (*work)(void *ctx);
    void *ctx;
    int fd;
    atomic_bool is_done;
};

static void *thread_main(void *arg)
{
    struct gp_task *task = arg;
    task->work(task->ctx);
    atomic_store(&task->is_done, true);
    (void)eventfd_write(task->fd, 1);
    return NULL;
}

struct gp_task *gp_task_start(void (*work)(void *ctx), void *ctx)
{
    struct gp_task *task = calloc(1, sizeof(*task));
    if (!task)
        return NULL;
    task->work = work;
    task->ctx = ctx;
    task->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (task->fd >= 0 && gp_thread_start(&task->thread, thread_main, task) == 0)
        return task;
    if (task->fd >= 0)
        (void)close(task->fd);
    free(task);
    return NULL;
}

int gp_task_fd(const struct gp_task *task)
{
    return task->fd;
}

bool gp_task_end(struct gp_task *task, int patience_ms)
{
    struct pollfd fd = {.fd = task->fd, .events = POLLIN};
    if (!atomic_load(&task->is_done) && patience_ms > 0)
        (void)poll(&fd, 1, patience_ms);
    if (!atomic_load(&task->is_done))
        return false;
    (void)pthread_join(task->thread, NULL);
    (void)close(task->fd);
    free(task);
    return true;
}
