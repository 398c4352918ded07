/* Asks the processes of a user on a GPU to end: end GPU USER */
#include <gpulse/gpulse.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const struct gpulse_options options = {
        .size = sizeof(options), .fields = "pid,user", .gpus = argc > 1 ? argv[1] : NULL};
    gpulse_session *session;
    gpulse_sample *sample;
    struct gpulse_error error;
    int failures = 0;
    if (argc != 3)
        return fprintf(stderr, "usage: end GPU USER\n"), 2;
    if (gpulse_open(&options, &session, &error) < 0 || gpulse_take(session, &sample, &error) < 0)
        return fprintf(stderr, "end: %s\n", error.text), 1;
    for (size_t row = 0; row < gpulse_sample_rows(sample, GPULSE_PROCESS); row++) {
        const char *user = gpulse_sample_text(sample, gpulse_metric_find("user", NULL), row);
        if (!user || strcmp(user, argv[2]) != 0)
            continue;
        if (gpulse_sample_signal(sample, row, SIGTERM, &error) < 0) {
            fprintf(stderr, "end: %s\n", error.text);
            failures++;
        }
    }
    gpulse_sample_free(sample);
    gpulse_close(session);
    if (gpulse_is_stuck()) /* a thread hangs in the driver: do not unload its library */
        _exit(1);
    return failures > 0;
}
