/* The NVLinks of a GPU, individually and in total.
 *
 * The values of a link come from fields, which are read for all links in one call, or from
 * functions if the driver or NVLink generation does not have the field. NVLink 5 counts bytes and
 * errors in other fields than earlier generations. */
#include "source/nvml/lists.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_AT_ONCE = 64, TX = 0, RX = 1 };

/* ---- fields ---- */

/* Reads all fields; each has its own return code. */
static nvmlReturn_t ask_fields(struct nvml_device *device, nvmlDevice_t handle,
                               nvmlFieldValue_t *fields, size_t count)
{
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetFieldValues, handle, (int)count, fields);
    for (size_t i = 0; i < count; i++)
        if (rc != NVML_SUCCESS)
            fields[i].nvmlReturn = rc;
    for (size_t i = 0; i < count; i++)
        if (nvml_return_ends_session(fields[i].nvmlReturn))
            return fields[i].nvmlReturn;
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

static nvmlReturn_t ask_field(struct nvml_device *device, nvmlDevice_t handle, unsigned id,
                              int link, uint64_t *ret)
{
    nvmlFieldValue_t field = {.fieldId = id, .scopeId = (unsigned)link};
    int64_t number = 0;
    nvmlReturn_t rc = ask_fields(device, handle, &field, 1);
    if (rc != NVML_SUCCESS || field.nvmlReturn != NVML_SUCCESS)
        return rc != NVML_SUCCESS ? rc : field.nvmlReturn;
    if (!nvml_field_number(&field, &number) || number < 0)
        return NVML_ERROR_UNKNOWN;
    *ret = (uint64_t)number;
    return NVML_SUCCESS;
}

static bool is_refused(nvmlReturn_t rc)
{
    return nvml_return_status(rc) == GP_STATUS_UNSUPPORTED;
}

/* The number of links; 0 for a GPU without. */
static nvmlReturn_t count_links(struct nvml_device *device, unsigned *ret)
{
    uint64_t count = 0;
    nvmlReturn_t rc = ask_field(device, device->handle, NVML_FI_DEV_NVLINK_LINK_COUNT, 0, &count);
    *ret = count < NVML_NVLINK_MAX_LINKS ? (unsigned)count : NVML_NVLINK_MAX_LINKS;
    return is_refused(rc) ? NVML_SUCCESS : rc;
}

/* In MIG mode, the driver refuses all link queries. */
static nvmlReturn_t check_mig(struct nvml_device *device)
{
    unsigned current = 0;
    unsigned pending = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetMigMode, device->handle, &current, &pending);
    if (nvml_return_ends_session(rc))
        return rc;
    return rc == NVML_SUCCESS && current == NVML_FEATURE_ENABLED ? NVML_ERROR_NOT_SUPPORTED
                                                                 : NVML_SUCCESS;
}

/* ---- values from functions ---- */

typedef nvmlReturn_t (*link_fn)(struct nvml_device *device, unsigned link, unsigned arg,
                                uint64_t *ret);

static nvmlReturn_t call_state(struct nvml_device *device, unsigned link, unsigned arg,
                               uint64_t *ret)
{
    (void)arg;
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetNvLinkState, device->handle, link, &state);
    *ret = state;
    return rc;
}

static nvmlReturn_t call_version(struct nvml_device *device, unsigned link, unsigned arg,
                                 uint64_t *ret)
{
    (void)arg;
    unsigned version = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetNvLinkVersion, device->handle, link, &version);
    *ret = version;
    return rc;
}

static nvmlReturn_t call_remote_type(struct nvml_device *device, unsigned link, unsigned arg,
                                     uint64_t *ret)
{
    (void)arg;
    nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetNvLinkRemoteDeviceType, device->handle, link, &type);
    *ret = type;
    return rc;
}

static nvmlReturn_t call_errors(struct nvml_device *device, unsigned link, unsigned arg,
                                uint64_t *ret)
{
    unsigned long long count = 0;
    nvmlReturn_t rc = NVML_CALL(device, nvmlDeviceGetNvLinkErrorCounter, device->handle, link,
                                (nvmlNvLinkErrorCounter_t)arg, &count);
    *ret = count;
    return rc;
}

nvmlReturn_t nvml_link_remote(struct nvml_device *device, unsigned link, nvmlPciInfo_t *ret)
{
    nvmlReturn_t rc =
        NVML_CALL(device, nvmlDeviceGetNvLinkRemotePciInfo_v2, device->handle, link, ret);
    ret->busId[sizeof(ret->busId) - 1] = '\0';
    return rc;
}

nvmlReturn_t nvml_link_count(struct nvml_device *device, unsigned *ret)
{
    nvmlReturn_t rc = check_mig(device);
    return rc == NVML_SUCCESS ? count_links(device, ret) : rc;
}

nvmlReturn_t nvml_switch_links(struct nvml_device *device, nvmlDevice_t handle, unsigned *ret)
{
    uint64_t count = 0;
    nvmlReturn_t rc =
        ask_field(device, handle, NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT, 0, &count);
    *ret = count < NVML_NVLINK_MAX_LINKS ? (unsigned)count : NVML_NVLINK_MAX_LINKS;
    return rc;
}

/* ---- columns ---- */

static const struct code_name states[] = {{0, "Inactive"}, {1, "Active"}, {2, "Sleep"}, {0, NULL}};
static const struct code_name power_states[] = {{0, "High Speed"}, {1, "Low Power"}, {0, NULL}};
static const struct code_name remote_types[] = {{NVML_NVLINK_DEVICE_TYPE_GPU, "GPU"},
                                                {NVML_NVLINK_DEVICE_TYPE_IBMNPU, "CPU"},
                                                {NVML_NVLINK_DEVICE_TYPE_SWITCH, "Switch"},
                                                {0, NULL}};
/* The driver's numbers differ from the generations: 6 is NVLink 4.0. */
static const struct code_name versions[] = {{1, "1.0"}, {2, "2.0"}, {3, "2.2"},
                                            {4, "3.0"}, {5, "3.1"}, {6, "4.0"},
                                            {7, "5.0"}, {8, "6.0"}, {0, NULL}};

/* The source of a link's value: the first of its fields that the driver supports, otherwise the
 * function. */
static const struct column {
    enum gp_metric metric;
    unsigned field[2]; /* 0: none */
    unsigned scale[2]; /* to the unit of the metric */
    link_fn call;
    unsigned arg;
    const struct code_name *names;
} columns[] = {
#define FIELD1(metric_, id, scale_)                                                                \
    {                                                                                              \
        .metric = metric_, .field = {id}, .scale = { scale_ }                                      \
    }
#define FIELD2(metric_, id, scale_, id2, scale2)                                                   \
    {                                                                                              \
        .metric = metric_, .field = {id, id2}, .scale = { scale_, scale2 }                         \
    }
#define NAMES(metric_, id, call_, names_)                                                          \
    {                                                                                              \
        .metric = metric_, .field = {id}, .scale = {1}, .call = call_, .names = names_             \
    }
#define ERRORS(metric_, id, counter)                                                               \
    {                                                                                              \
        .metric = metric_, .field = {id}, .scale = {1}, .call = call_errors, .arg = counter        \
    }
    NAMES(GP_LINK_STATE, NVML_FI_DEV_NVLINK_GET_STATE, call_state, states),
    NAMES(GP_LINK_VERSION, 0, call_version, versions),
    NAMES(GP_LINK_POWER, NVML_FI_DEV_NVLINK_GET_POWER_STATE, NULL, power_states),
    NAMES(GP_LINK_REMOTE_TYPE, 0, call_remote_type, remote_types),
    FIELD1(GP_LINK_REMOTE_LINK, NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID, 1),
    FIELD2(GP_LINK_SPEED, NVML_FI_DEV_NVLINK_GET_SPEED, 1000000,
           NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, 1000000),
    FIELD2(GP_LINK_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 1024,
           NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, 1),
    FIELD2(GP_LINK_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 1024,
           NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, 1),
    FIELD1(GP_LINK_TX_PACKETS, NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS, 1),
    FIELD1(GP_LINK_RX_PACKETS, NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS, 1),
    FIELD1(GP_LINK_RAW_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX, 1024),
    FIELD1(GP_LINK_RAW_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, 1024),
    ERRORS(GP_LINK_REPLAY, NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, NVML_NVLINK_ERROR_DL_REPLAY),
    ERRORS(GP_LINK_RECOVERY, NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, NVML_NVLINK_ERROR_DL_RECOVERY),
    ERRORS(GP_LINK_CRC_FLIT, NVML_FI_DEV_NVLINK_ERROR_DL_CRC, NVML_NVLINK_ERROR_DL_CRC_FLIT),
    ERRORS(GP_LINK_CRC_DATA, 0, NVML_NVLINK_ERROR_DL_CRC_DATA),
    ERRORS(GP_LINK_ECC, 0, NVML_NVLINK_ERROR_DL_ECC_DATA),
    FIELD1(GP_LINK_RX_ERRORS, NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, 1),
    FIELD1(GP_LINK_MALFORMED, NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS, 1),
    FIELD1(GP_LINK_OVERRUN, NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, 1),
    FIELD1(GP_LINK_RX_REMOTE, NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS, 1),
    FIELD1(GP_LINK_RX_GENERAL, NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS, 1),
    FIELD1(GP_LINK_INTEGRITY, NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, 1),
    FIELD1(GP_LINK_DISCARDS, NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, 1),
    FIELD1(GP_LINK_EFFECTIVE, NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, 1),
    FIELD1(GP_LINK_EFFECTIVE_BER, NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, 1),
    FIELD1(GP_LINK_SYMBOL, NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, 1),
    FIELD1(GP_LINK_SYMBOL_BER, NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER, 1),
    FIELD1(GP_LINK_RECOVERED, NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, 1),
    FIELD1(GP_LINK_UNRECOVERED, NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, 1),
    FIELD1(GP_LINK_RECOVERIES, NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, 1),
};

/* A rate needs its counter. */
static bool is_due(const struct nvml_rows *rows, unsigned link, enum gp_metric m)
{
    bool for_rate = (m == GP_LINK_TX && nvml_rows_want(rows, GP_LINK_RATE_TX)) ||
                    (m == GP_LINK_RX && nvml_rows_want(rows, GP_LINK_RATE_RX));
    return for_rate || nvml_cell_is_due(rows, link, m);
}

/* Decodes a bit error rate of mantissa and exponent: 0x10f is 1e-15. */
static void put_error_rate(const struct nvml_rows *rows, unsigned link, enum gp_metric m,
                           uint64_t raw)
{
    char text[32];
    uint64_t mantissa = raw >> 8 & 15;
    (void)snprintf(text, sizeof(text), mantissa ? "%ue-%u" : "0", (unsigned)mantissa,
                   (unsigned)(raw & 255));
    nvml_cell_text(rows, link, m, NVML_SUCCESS, text);
}

static void settle(const struct nvml_rows *rows, unsigned link, const struct column *column,
                   nvmlReturn_t rc, uint64_t number)
{
    enum gp_metric m = column->metric;
    if (column->names)
        nvml_cell_code(rows, link, m, rc, column->names, number);
    else if (rc == NVML_SUCCESS && gp_metric_table[m].type == GP_TYPE_TEXT)
        put_error_rate(rows, link, m, number);
    else if (rc == NVML_SUCCESS && gp_metric_table[m].unit == GP_UNIT_BYTES && number < INT64_MAX)
        /* A counter may exceed the limits for memory sizes. */
        gp_value_set_int(nvml_rows_cell(rows, link, m), (int64_t)number, rows->now_ns);
    else
        nvml_cell_number(rows, link, m, rc, number);
}

/* The cells that a pass reads. */
struct batch {
    size_t count;
    nvmlFieldValue_t fields[FIELDS_AT_ONCE];
    const struct column *columns[FIELDS_AT_ONCE];
    unsigned links[FIELDS_AT_ONCE];
};

/* A refused cell keeps its status in the row, for the next pass. */
static nvmlReturn_t flush(struct nvml_rows *rows, struct batch *batch, size_t pass)
{
    nvmlReturn_t rc =
        batch->count ? ask_fields(rows->device, rows->device->handle, batch->fields, batch->count)
                     : NVML_SUCCESS;
    rows->now_ns = gp_clock_mono_ns(); /* the time of the counters */
    for (size_t i = 0; i < batch->count && rc == NVML_SUCCESS; i++) {
        const nvmlFieldValue_t *field = &batch->fields[i];
        int64_t number = 0;
        nvmlReturn_t one = field->nvmlReturn;
        if (one == NVML_SUCCESS && (!nvml_field_number(field, &number) || number < 0))
            one = NVML_ERROR_UNKNOWN;
        unsigned scale = batch->columns[i]->scale[pass];
        if (one == NVML_SUCCESS && (uint64_t)number > INT64_MAX / scale)
            one = NVML_ERROR_UNKNOWN; /* all ones: not available */
        settle(rows, batch->links[i], batch->columns[i], one,
               one == NVML_SUCCESS ? (uint64_t)number * scale : 0);
        if (one == NVML_SUCCESS && pass == 1 && batch->columns[i]->metric == GP_LINK_TX)
            rows->device->nvlink5 = true;
    }
    batch->count = 0;
    return rc;
}

/* Whether cells of a column must be read in this way. `due` has a bit for each column. */
static bool is_open(const struct nvml_rows *rows, unsigned link, size_t c, const uint32_t *due)
{
    const struct gp_value *v = nvml_rows_cell(rows, link, columns[c].metric);
    return due[link] >> c & 1 && v->status == GP_STATUS_UNSUPPORTED;
}

static nvmlReturn_t ask_pass(struct nvml_rows *rows, const uint32_t *due, size_t pass)
{
    struct batch batch = {0};
    nvmlReturn_t rc = NVML_SUCCESS;
    for (unsigned link = 0; link < rows->list.count; link++)
        for (size_t c = 0; c < GP_ARRAY_LEN(columns) && rc == NVML_SUCCESS; c++) {
            if (!columns[c].field[pass] || !is_open(rows, link, c, due))
                continue;
            batch.fields[batch.count] =
                (nvmlFieldValue_t){.fieldId = columns[c].field[pass], .scopeId = link};
            batch.links[batch.count] = link;
            batch.columns[batch.count++] = &columns[c];
            if (batch.count == FIELDS_AT_ONCE)
                rc = flush(rows, &batch, pass);
        }
    return rc == NVML_SUCCESS ? flush(rows, &batch, pass) : rc;
}

static nvmlReturn_t ask_functions(struct nvml_rows *rows, const uint32_t *due)
{
    for (unsigned link = 0; link < rows->list.count; link++)
        for (size_t c = 0; c < GP_ARRAY_LEN(columns); c++) {
            uint64_t number = 0;
            if (!columns[c].call || !is_open(rows, link, c, due))
                continue;
            nvmlReturn_t rc = columns[c].call(rows->device, link, columns[c].arg, &number);
            if (nvml_return_ends_session(rc))
                return rc;
            settle(rows, link, &columns[c], rc, number);
        }
    return NVML_SUCCESS;
}

static nvmlReturn_t ask_capabilities(struct nvml_rows *rows, unsigned link)
{
    static const char *const names[] = {"p2p", "sysmem", "p2p_atomics", "sysmem_atomics",
                                        "sli", "valid"};
    char text[96] = "";
    size_t n = 0;
    nvmlReturn_t rc = NVML_SUCCESS;
    if (!nvml_cell_is_due(rows, link, GP_LINK_CAPABILITIES))
        return rc;
    for (unsigned i = 0; i < GP_ARRAY_LEN(names) && rc == NVML_SUCCESS; i++) {
        unsigned has = 0;
        rc = NVML_CALL(rows->device, nvmlDeviceGetNvLinkCapability, rows->device->handle, link,
                       (nvmlNvLinkCapability_t)i, &has);
        if (rc == NVML_SUCCESS && has)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "", names[i]);
    }
    nvml_cell_text(rows, link, GP_LINK_CAPABILITIES, rc, n ? text : "none");
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

static nvmlReturn_t ask_fec(struct nvml_rows *rows, unsigned link)
{
    nvmlFieldValue_t fields[16];
    char text[16 * 21];
    size_t n = 0;
    if (!nvml_cell_is_due(rows, link, GP_LINK_FEC))
        return NVML_SUCCESS;
    for (unsigned i = 0; i < GP_ARRAY_LEN(fields); i++)
        fields[i] = (nvmlFieldValue_t){.fieldId = NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0 + i,
                                       .scopeId = link};
    nvmlReturn_t rc = ask_fields(rows->device, rows->device->handle, fields, GP_ARRAY_LEN(fields));
    nvmlReturn_t one = rc;
    for (size_t i = 0; i < GP_ARRAY_LEN(fields) && one == NVML_SUCCESS; i++) {
        int64_t number = 0;
        one = fields[i].nvmlReturn;
        if (one == NVML_SUCCESS && (!nvml_field_number(&fields[i], &number) || number < 0))
            one = NVML_ERROR_UNKNOWN;
        n +=
            (size_t)snprintf(text + n, sizeof(text) - n, "%s%lld", i ? " " : "", (long long)number);
    }
    nvml_cell_text(rows, link, GP_LINK_FEC, one, text);
    return rc;
}

static nvmlReturn_t ask_remote(struct nvml_rows *rows, unsigned link)
{
    nvmlPciInfo_t pci = {0};
    if (!nvml_cell_is_due(rows, link, GP_LINK_REMOTE_BUS_ID))
        return NVML_SUCCESS;
    nvmlReturn_t rc = nvml_link_remote(rows->device, link, &pci);
    nvml_cell_text(rows, link, GP_LINK_REMOTE_BUS_ID, rc, pci.busId);
    return nvml_return_ends_session(rc) ? rc : NVML_SUCCESS;
}

static void put_rate(const struct nvml_rows *rows, unsigned link, enum gp_metric counter,
                     enum gp_metric rate, struct nvml_counter *before)
{
    const struct gp_value *total = nvml_rows_cell(rows, link, counter);
    struct gp_value *v = nvml_rows_cell(rows, link, rate);
    if (total->status == GP_STATUS_OK)
        *v = *nvml_growth(before, (uint64_t)total->i, gp_value_time_ns(total));
    else
        *v = *total;
}

nvmlReturn_t nvml_list_links(struct nvml_rows *rows)
{
    _Static_assert(GP_ARRAY_LEN(columns) <= 32, "a bit per column");
    struct nvml_device *device = rows->device;
    struct nvml_past *past = device->past;
    if (!past->links)
        past->links = calloc(NVML_NVLINK_MAX_LINKS, sizeof(*past->links));
    if (!past->links)
        return NVML_ERROR_MEMORY;
    uint32_t due[NVML_NVLINK_MAX_LINKS] = {0};
    unsigned count = 0;
    nvmlReturn_t rc = nvml_link_count(device, &count);
    if (rc == NVML_ERROR_NOT_SUPPORTED)
        rows->list.words = "not reported in MIG mode";
    for (unsigned link = 0; link < count && rc == NVML_SUCCESS; link++) {
        rc = nvml_rows_add(rows);
        if (rc != NVML_SUCCESS)
            break;
        nvml_put_number(rows, GP_LINK_NUMBER, link);
        for (size_t c = 0; c < GP_ARRAY_LEN(columns); c++)
            due[link] |= is_due(rows, link, columns[c].metric) ? UINT32_C(1) << c : 0;
        rc = ask_capabilities(rows, link);
        if (rc == NVML_SUCCESS)
            rc = ask_remote(rows, link);
        if (rc == NVML_SUCCESS)
            rc = ask_fec(rows, link);
    }
    for (size_t pass = 0; pass < 2 && rc == NVML_SUCCESS; pass++)
        rc = ask_pass(rows, due, device->nvlink5 ? 1 - pass : pass);
    if (rc == NVML_SUCCESS)
        rc = ask_functions(rows, due);
    for (unsigned link = 0; link < count && rc == NVML_SUCCESS; link++) {
        put_rate(rows, link, GP_LINK_TX, GP_LINK_RATE_TX, &past->links[link][TX]);
        put_rate(rows, link, GP_LINK_RX, GP_LINK_RATE_RX, &past->links[link][RX]);
    }
    return rc;
}

/* ---- totals of a GPU ---- */

nvmlReturn_t nvml_read_active_links(struct nvml_device *device, const struct reader *reader,
                                    struct gp_value *out)
{
    (void)reader;
    unsigned count = 0;
    int64_t active = 0;
    nvmlReturn_t rc = nvml_link_count(device, &count);
    for (unsigned link = 0; link < count && rc == NVML_SUCCESS; link++) {
        uint64_t state = 0;
        rc = call_state(device, link, 0, &state);
        active += rc == NVML_SUCCESS && state == NVML_FEATURE_ENABLED;
    }
    gp_value_set_int(&out[0], active, 0);
    return rc == NVML_SUCCESS && count == 0 ? NVML_ERROR_NOT_SUPPORTED : rc;
}

nvmlReturn_t nvml_sum_links(struct nvml_device *device, unsigned field, uint64_t *ret)
{
    unsigned count = 0;
    nvmlReturn_t rc = count_links(device, &count);
    *ret = 0;
    for (unsigned link = 0; link < count && rc == NVML_SUCCESS; link++) {
        uint64_t number = 0;
        rc = ask_field(device, device->handle, field, (int)link, &number);
        *ret += number;
    }
    return rc == NVML_SUCCESS && count == 0 ? NVML_ERROR_NOT_SUPPORTED : rc;
}
