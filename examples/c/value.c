/* The used memory of every GPU. */
#include <gpulse/gpulse.h>

#include <stdio.h>

int main(void)
{
    const struct gpulse_options options = {.size = sizeof(options), .fields = "name,memory.used"};
    gpulse_session *session;
    gpulse_sample *sample;
    struct gpulse_error error;
    if (gpulse_open(&options, &session, &error) < 0 || gpulse_take(session, &sample, &error) < 0) {
        fprintf(stderr, "value: %s\n", error.text);
        return 1;
    }
    int name = gpulse_metric_find("name", NULL);
    int used = gpulse_metric_find("memory.used", NULL);
    for (size_t row = 0; row < gpulse_sample_rows(sample, GPULSE_GPU); row++) {
        struct gpulse_value value;
        const char *text = gpulse_sample_text(sample, name, row);
        gpulse_sample_get(sample, used, row, &value);
        printf("%zu %s: ", row, text ? text : "?");
        if (value.status == GPULSE_OK)
            printf("%.1f GiB\n", (double)value.u.i / (1 << 30));
        else
            printf("%s\n", value.reason);
    }
    gpulse_sample_free(sample);
    return gpulse_close(session) ? 0 : 1;
}
