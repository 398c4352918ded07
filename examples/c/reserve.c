/* Runs a command on a GPU that nobody else gets as long as this program runs: reserve COMMAND…
 * gpulse run also ends the command, whatever happens to itself. */
#include <gpulse/gpulse.h>

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void say_wait(void *context, const char *why)
{
    (void)context;
    fprintf(stderr, "reserve: waiting: %s\n", why);
}

int main(int argc, char **argv)
{
    const struct gpulse_request request = {.size = sizeof(request),
                                           .memory = (uint64_t)8 << 30,
                                           .wait_ns = (uint64_t)3600 * 1000000000,
                                           .on_wait = say_wait};
    gpulse_grant *gpu;
    struct gpulse_error error;
    int status = 0;
    pid_t pid;
    if (argc < 2)
        return fprintf(stderr, "usage: reserve COMMAND…\n"), 2;
    if (gpulse_reserve(NULL, &request, &gpu, &error) < 0)
        return fprintf(stderr, "reserve: %s\n", error.text), 1;
    setenv("CUDA_VISIBLE_DEVICES", gpulse_grant_mask(gpu), 1);
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    int problem = posix_spawnp(&pid, argv[1], NULL, NULL, argv + 1, environ);
    if (problem != 0)
        return fprintf(stderr, "reserve: %s: %s\n", argv[1], strerror(problem)), 127;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (gpulse_grant_keep(gpu, &error) < 0)
            fprintf(stderr, "reserve: %s\n", error.text);
        sleep(1);
    }
    gpulse_release(gpu);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
