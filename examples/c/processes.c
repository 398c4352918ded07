/* Who uses which GPU. */
#include <gpulse/gpulse.h>

#include <stdio.h>

int main(void)
{
    const struct gpulse_options options = {.size = sizeof(options),
                                           .fields = "index,pid,user,used_memory,process.command"};
    gpulse_session *session;
    gpulse_sample *sample;
    struct gpulse_error error;
    if (gpulse_open(&options, &session, &error) < 0 || gpulse_take(session, &sample, &error) < 0) {
        fprintf(stderr, "processes: %s\n", error.text);
        return 1;
    }
    int index = gpulse_metric_find("index", NULL);
    int pid = gpulse_metric_find("pid", NULL);
    int user = gpulse_metric_find("user", NULL);
    int memory = gpulse_metric_find("used_memory", NULL);
    int command = gpulse_metric_find("process.command", NULL);
    for (size_t row = 0; row < gpulse_sample_rows(sample, GPULSE_PROCESS); row++) {
        int gpu = gpulse_sample_gpu_of(sample, GPULSE_PROCESS, row);
        const char *name = gpulse_sample_text(sample, user, row);
        const char *words = gpulse_sample_text(sample, command, row);
        double number = -1, id = 0, bytes = 0;
        gpulse_sample_number(sample, index, (size_t)gpu, &number);
        gpulse_sample_number(sample, pid, row, &id);
        gpulse_sample_number(sample, memory, row, &bytes);
        printf("GPU %.0f: %.0f %s %.0f MiB %s\n", number, id, name ? name : "?", bytes / (1 << 20),
               words ? words : "?");
    }
    gpulse_sample_free(sample);
    return gpulse_close(session) ? 0 : 1;
}
