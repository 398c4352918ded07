/* Everything that can be read, with its unit: metrics [ROWS], for example metrics links */
#include <gpulse/gpulse.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    const int rows = gpulse_scope_find(argc > 1 ? argv[1] : "gpus");
    if (rows < 0)
        return fprintf(stderr, "metrics: there are no rows '%s'\n", argv[1]), 2;
    printf("gpulse %s\n", gpulse_version());
    for (int metric = 0; metric < gpulse_metric_count(); metric++) {
        struct gpulse_metric_info info;
        if (gpulse_metric_describe(metric, &info) == 0 && info.scope == rows)
            printf("%-40s %-10s %s\n", info.name, info.unit, info.help);
    }
    return 0;
}
