#include "source/nvml/internal.h"

#include "base/clock.h"

const struct gp_value *nvml_growth(struct nvml_counter *counter, uint64_t count, uint64_t now_ns)
{
    uint64_t elapsed_ns = now_ns - counter->time_ns;
    struct gp_value *v = &counter->per_s;
    if (counter->time_ns && elapsed_ns < NVML_GAP_MS * GP_NS_PER_MS)
        return v;
    if (counter->time_ns == 0)
        gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, "rates need a second sample", now_ns);
    else if (count < counter->count)
        gp_value_set_absent(v, GP_STATUS_UNSUPPORTED, "the counter was reset", now_ns);
    else
        gp_value_set_real(v, (double)(count - counter->count) * 1e9 / (double)elapsed_ns, now_ns);
    counter->count = count;
    counter->time_ns = now_ns;
    return v;
}
