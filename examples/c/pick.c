/* Which free GPUs a model can be trained on: pick PARAMETERS [GPUS], for example pick 1.3B 2 */
#include <gpulse/gpulse.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const struct gpulse_model model = {
        .size = sizeof(model), .params = argc > 1 ? argv[1] : "1.3B", .dtype = "bf16"};
    struct gpulse_estimate estimate = {.size = sizeof(estimate)};
    struct gpulse_error error;
    gpulse_grant *gpus;
    if (gpulse_estimate_model(&model, &estimate, &error) < 0)
        return fprintf(stderr, "pick: %s\n", error.text), 2;
    for (unsigned i = 0; i < estimate.count; i++)
        printf("%6.1f GiB  %s\n", estimate.terms[i].bytes / (1 << 30), estimate.terms[i].name);

    const struct gpulse_request request = {.size = sizeof(request),
                                           .count = argc > 2 ? (unsigned)atoi(argv[2]) : 1,
                                           .memory = (uint64_t)estimate.total};
    if (gpulse_pick(NULL, &request, &gpus, &error) < 0)
        return fprintf(stderr, "pick: %s\n", error.text), 1;
    printf("CUDA_VISIBLE_DEVICES=%s selects GPU %s\n", gpulse_grant_mask(gpus),
           gpulse_grant_gpus(gpus));
    for (size_t i = 0; i < gpulse_grant_count(gpus); i++)
        printf("%s\n", gpulse_grant_uuid(gpus, i));
    gpulse_release(gpus);
    return 0;
}
