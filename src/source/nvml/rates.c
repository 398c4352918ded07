/* Counters that the driver returns as fields, and their growth per second.
 *
 * A counter is read in every tick. Two reads less than NVML_GAP_MS apart are useless: the older
 * values stay. A counter that has decreased was reset (the driver was reloaded, or 32 bits
 * overflowed): that tick has no value. */
#include "source/nvml/lists.h"

#include "base/clock.h"

struct rate {
    enum gp_metric metric;
    unsigned field;
    double scale;   /* of one count per second, in the metric's unit */
    unsigned scope; /* of the field */
    /* What to do if the driver lacks the field; NULL: nothing. */
    nvmlReturn_t (*instead)(struct nvml_device *device, const struct rate *rate, uint64_t now_ns);
};

static nvmlReturn_t add_links(struct nvml_device *device, const struct rate *rate, uint64_t now_ns);
static nvmlReturn_t measure_pcie(struct nvml_device *device, const struct rate *rate,
                                 uint64_t now_ns);

#define ALL_LINKS UINT32_MAX

/* One nanosecond per second, as a percentage. */
static const double percent_of_ns = 1e-7;

static const struct rate rates[NVML_RATES] = {
    {GP_NVLINK_RATE_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 1024, ALL_LINKS, add_links},
    {GP_NVLINK_RATE_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 1024, ALL_LINKS, add_links},
    {GP_PCIE_TX, NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 1, 0, measure_pcie},
    {GP_PCIE_RX, NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 1, 0, measure_pcie},
    {GP_THROTTLE_SW_POWER_CAP, NVML_FI_DEV_PERF_POLICY_POWER, percent_of_ns},
    {GP_THROTTLE_THERMAL, NVML_FI_DEV_PERF_POLICY_THERMAL, percent_of_ns},
    {GP_THROTTLE_SYNC_BOOST, NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, percent_of_ns},
    {GP_THROTTLE_BOARD_LIMIT, NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, percent_of_ns},
    {GP_THROTTLE_LOW_UTILIZATION, NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, percent_of_ns},
    {GP_THROTTLE_RELIABILITY, NVML_FI_DEV_PERF_POLICY_RELIABILITY, percent_of_ns},
    {GP_THROTTLE_SW_THERMAL, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, percent_of_ns},
    {GP_THROTTLE_HW_THERMAL, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, percent_of_ns},
    {GP_THROTTLE_HW_POWER_BRAKE, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
     percent_of_ns},
};

static void grow(struct nvml_device *device, const struct rate *rate, uint64_t count,
                 uint64_t now_ns)
{
    struct gp_value *v = nvml_cached(device, rate->metric);
    *v = *nvml_growth(&device->past->counters[rate - rates], count, now_ns);
    if (v->status == GP_STATUS_OK)
        v->f = nvml_limit_share(rate->metric, v->f * rate->scale);
}

static void refuse(struct nvml_device *device, const struct rate *rate, nvmlReturn_t rc,
                   uint64_t now_ns)
{
    nvml_set_refused(nvml_cached(device, rate->metric), rc, now_ns);
    device->past->counters[rate - rates] =
        (struct nvml_counter){.next_ns = nvml_refused_until(rc, now_ns)};
}

/* Each call measures one direction for 20 ms, so this is only used without a counter. */
static nvmlReturn_t measure_pcie(struct nvml_device *device, const struct rate *rate,
                                 uint64_t now_ns)
{
    unsigned kb_per_s = 0;
    nvmlReturn_t rc = NVML_CALL(
        device, nvmlDeviceGetPcieThroughput, device->handle,
        rate->metric == GP_PCIE_TX ? NVML_PCIE_UTIL_TX_BYTES : NVML_PCIE_UTIL_RX_BYTES, &kb_per_s);
    if (rc == NVML_SUCCESS && kb_per_s == NVML_NOT_AVAILABLE_U32)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        gp_value_set_real(nvml_cached(device, rate->metric), 1000.0 * kb_per_s, now_ns);
    else
        refuse(device, rate, rc, now_ns);
    return rc;
}

/* NVLink 5 has no total, but counts the bytes of each link. */
static nvmlReturn_t add_links(struct nvml_device *device, const struct rate *rate, uint64_t now_ns)
{
    uint64_t bytes = 0;
    unsigned of_link = rate->metric == GP_NVLINK_RATE_TX ? NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES
                                                         : NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES;
    nvmlReturn_t rc = nvml_sum_links(device, of_link, &bytes);
    if (rc == NVML_SUCCESS)
        *nvml_cached(device, rate->metric) =
            *nvml_growth(&device->past->counters[rate - rates], bytes, gp_clock_mono_ns());
    else
        refuse(device, rate, rc, now_ns);
    return rc;
}

static nvmlReturn_t settle_rate(struct nvml_device *device, const struct rate *rate,
                                const nvmlFieldValue_t *field, uint64_t now_ns)
{
    int64_t count;
    nvmlReturn_t rc = field->nvmlReturn;
    if (rc == NVML_SUCCESS && nvml_field_number(field, &count) && count >= 0)
        grow(device, rate, (uint64_t)count, now_ns);
    else if (rate->instead && nvml_return_status(rc) == GP_STATUS_UNSUPPORTED)
        rc = rate->instead(device, rate, now_ns);
    else
        refuse(device, rate, rc == NVML_SUCCESS ? NVML_ERROR_UNKNOWN : rc, now_ns);
    return rc;
}

size_t nvml_ask_rates(const struct nvml_device *device, const struct gp_metric_set *want,
                      uint64_t now_ns, nvmlFieldValue_t fields[NVML_RATES],
                      uint8_t asked[NVML_RATES])
{
    size_t count = 0;
    for (size_t i = 0; i < NVML_RATES && !device->is_mig; i++)
        if (gp_metric_set_has(want, rates[i].metric) &&
            now_ns >= device->past->counters[i].next_ns) {
            fields[count].fieldId = nvml_field_id(device->source, rates[i].field);
            fields[count].scopeId = rates[i].scope;
            asked[count++] = (uint8_t)i;
        }
    return count;
}

nvmlReturn_t nvml_settle_rates(struct nvml_device *device, const nvmlFieldValue_t *fields,
                               const uint8_t *asked, size_t count)
{
    uint64_t now_ns = gp_clock_mono_ns();
    nvmlReturn_t rc = NVML_SUCCESS;
    for (size_t i = 0; i < count && !nvml_return_ends_session(rc); i++)
        rc = settle_rate(device, &rates[asked[i]], &fields[i], now_ns);
    return rc;
}
