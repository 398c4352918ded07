/* The utilization of every GPU, once a second, with the time: watch [TIMES] */
#include <gpulse/gpulse.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const struct gpulse_options options = {
        .size = sizeof(options), .fields = "utilization.gpu", .timeout_ns = 1000000000};
    int times = argc > 1 ? atoi(argv[1]) : 10;
    gpulse_session *session;
    struct gpulse_error error;
    if (gpulse_open(&options, &session, &error) < 0) {
        fprintf(stderr, "watch: %s\n", error.text);
        return 1;
    }
    int utilization = gpulse_metric_find("utilization.gpu", NULL);
    for (int i = 0; i < times; i++) {
        gpulse_sample *sample;
        if (gpulse_take(session, &sample, &error) < 0) {
            fprintf(stderr, "watch: %s\n", error.text);
            break;
        }
        const time_t seconds = (time_t)(gpulse_sample_time(sample) / 1000000000);
        char clock[16];
        strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&seconds));
        printf("%s", clock);
        for (size_t row = 0; row < gpulse_sample_rows(sample, GPULSE_GPU); row++) {
            double percent;
            if (gpulse_sample_number(sample, utilization, row, &percent))
                printf("%4.0f%%", percent);
            else
                printf("    -");
        }
        printf("%s\n", gpulse_sample_is_partial(sample) ? "  (not all GPUs respond)" : "");
        gpulse_sample_free(sample);
        if (i + 1 < times)
            sleep(1);
    }
    return gpulse_close(session) ? 0 : 1;
}
