#include "sim/import.h"

#include "abi/nvml.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "sim/machine.h"

#include <errno.h>
#include <expat.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ceilings: the largest real capture (8 GPUs with all their clocks) has 12000 elements in 350 kB.
 */
enum { MAX_DEPTH = 24, MAX_NODES = 200000, MAX_TEXT = 4096, MAX_FILE = 64 << 20 };

/* ------------------------------------------------------------------------- reading XML */

struct node {
    const char *name;
    const char *id;   /* attribute "id", or NULL */
    const char *text; /* trimmed, "" if none */
    long line;
    struct node *first, *last, *next;
};

struct reader {
    struct gp_arena arena;
    XML_Parser parser;
    struct node *stack[MAX_DEPTH];
    size_t depth, count;
    struct node root;
    struct gp_strbuf text;
    const char *problem; /* what stopped it */
};

static void stop(struct reader *r, const char *problem)
{
    if (!r->problem)
        r->problem = problem;
    (void)XML_StopParser(r->parser, XML_FALSE);
}

static void XMLCALL on_start(void *ctx, const char *name, const char **attributes)
{
    struct reader *r = ctx;
    struct node *node = gp_arena_alloc(&r->arena, 1, sizeof(*node));
    char *copy = gp_arena_strdup(&r->arena, name);
    if (!node || !copy) {
        stop(r, "out of memory");
        return;
    }
    if (r->depth == MAX_DEPTH || r->count++ == MAX_NODES) {
        stop(r, r->depth == MAX_DEPTH ? "nested too deeply" : "too many elements");
        return;
    }
    node->name = copy;
    node->text = "";
    node->line = (long)XML_GetCurrentLineNumber(r->parser);
    for (const char **a = attributes; a[0]; a += 2)
        if (strcmp(a[0], "id") == 0 && !(node->id = gp_arena_strdup(&r->arena, a[1])))
            stop(r, "out of memory");
    struct node *parent = r->depth ? r->stack[r->depth - 1] : &r->root;
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
    r->stack[r->depth++] = node;
    gp_strbuf_reset(&r->text);
}

static void XMLCALL on_end(void *ctx, const char *name)
{
    struct reader *r = ctx;
    (void)name;
    char *text = r->text.buf;
    size_t start = strspn(text, " \t\r\n");
    size_t len = r->text.len;
    while (len > start && strchr(" \t\r\n", text[len - 1]))
        len--;
    if (len > start) {
        text[len] = '\0';
        const char *copy = gp_arena_strdup(&r->arena, text + start);
        if (copy)
            r->stack[r->depth - 1]->text = copy;
        else
            stop(r, "out of memory");
    }
    r->depth--;
    gp_strbuf_reset(&r->text);
}

static void XMLCALL on_text(void *ctx, const char *text, int len)
{
    struct reader *r = ctx;
    gp_strbuf_add(&r->text, text, (size_t)len);
    if (r->text.error)
        stop(r, "a text is too long");
}

/* A capture declares no entities; a file that does is refused, so that it cannot grow by them. */
static void XMLCALL on_entity(void *ctx, const char *name, int is_parameter, const char *value,
                              int length, const char *base, const char *system_id,
                              const char *public_id, const char *notation)
{
    (void)name, (void)is_parameter, (void)value, (void)length;
    (void)base, (void)system_id, (void)public_id, (void)notation;
    stop(ctx, "declares an entity, which nvidia-smi never does");
}

static int parse_failed(const struct reader *r, const char *path, struct gp_err *err)
{
    return gp_err_set(err, GP_EFORMAT, "%s:%lu: %s", path, XML_GetCurrentLineNumber(r->parser),
                      r->problem ? r->problem : XML_ErrorString(XML_GetErrorCode(r->parser)));
}

static int parse_file(struct reader *r, const char *path, struct gp_err *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return gp_err_set(err, GP_EIO, "cannot open '%s': %s", path, strerror(errno));
    char chunk[16384];
    size_t total = 0;
    int result = GP_OK;
    bool last = false;
    while (result == GP_OK && !last) {
        size_t n = fread(chunk, 1, sizeof(chunk), file);
        total += n;
        last = n < sizeof(chunk);
        if (ferror(file))
            result = gp_err_set(err, GP_EIO, "cannot read '%s': %s", path, strerror(errno));
        else if (total > MAX_FILE)
            result = gp_err_set(err, GP_EFORMAT, "%s: larger than %d MiB", path, MAX_FILE >> 20);
        else if (XML_Parse(r->parser, chunk, (int)n, last) != XML_STATUS_OK)
            result = parse_failed(r, path, err);
    }
    (void)fclose(file);
    return result;
}

static int read_xml(struct reader *r, const char *path, struct gp_err *err)
{
    gp_strbuf_init(&r->text, MAX_TEXT);
    r->parser = XML_ParserCreate(NULL);
    if (!r->parser)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, on_start, on_end);
    XML_SetCharacterDataHandler(r->parser, on_text);
    XML_SetEntityDeclHandler(r->parser, on_entity);
    int result = parse_file(r, path, err);
    XML_ParserFree(r->parser);
    gp_strbuf_fini(&r->text);
    return result;
}

/* The first descendant at "a/b/c", or NULL. */
static const struct node *find(const struct node *node, const char *path)
{
    while (node && *path) {
        size_t len = strcspn(path, "/");
        const struct node *child = node->first;
        while (child && (strlen(child->name) != len || memcmp(child->name, path, len) != 0))
            child = child->next;
        node = child;
        path += len + (path[len] == '/');
    }
    return node;
}

static const char *find_text(const struct node *node, const char *path)
{
    const struct node *found = find(node, path);
    return found ? found->text : NULL;
}

/* ------------------------------------------------------------------------- values */

enum convert {
    AS_IS,  /* text, or a name of the answer's kind */
    COUNT,  /* "53", "51 %", "16x", "345 MHz", "500 KB/s": the leading whole number */
    MIB,    /* "81559 MiB" in bytes */
    MILLI,  /* "68.57 W" in mW */
    US_NS,  /* "770461242 us" in ns */
    HEX,    /* "0x5300" */
    YES_NO, /* 1 or 0 */
};

/* What nvidia-smi prints in place of a value, as return code; NULL if it is a value. */
static const char *return_code_of(const char *text)
{
    static const struct {
        const char *words, *code;
    } special[] = {{"N/A", "NOT_SUPPORTED"},
                   {"[N/A]", "NOT_SUPPORTED"},
                   {"[Not Supported]", "NOT_SUPPORTED"},
                   {"", "NOT_SUPPORTED"},
                   {"Requested functionality has been deprecated", "DEPRECATED"},
                   {"[Requested functionality has been deprecated]", "DEPRECATED"},
                   {"[Insufficient Permissions]", "NO_PERMISSION"},
                   {"[GPU is lost]", "GPU_IS_LOST"},
                   {"ERR!", "UNKNOWN"},
                   {"[Unknown Error]", "UNKNOWN"},
                   {"[GPU requires reset]", "RESET_REQUIRED"},
#define X(name, code, words) {words, #name},
                   NVML_RETURN_CODES(X)
#undef X
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(special); i++) {
        if (strcmp(special[i].words, text) != 0)
            continue;
        const char *code = special[i].code;
        return strncmp(code, "NVML_ERROR_", 11) == 0 ? code + 11 : code;
    }
    return NULL;
}

/* The ceiling leaves room for sums of a few numbers. */
static bool parse_scaled(const char *text, double factor, json_int_t *ret)
{
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || errno || !isfinite(number) || fabs(number * factor) > 0x1p60)
        return false;
    *ret = (json_int_t)llround(number * factor);
    return true;
}

/* The JSON for a text of the capture, NULL if it is not understood. A capture is read in the C
 * locale: the tool never calls setlocale(). */
static json_t *convert(const char *text, enum convert as)
{
    static const double factors[] = {[COUNT] = 1, [MIB] = 0x1p20, [MILLI] = 1e3, [US_NS] = 1e3};
    const char *code = return_code_of(text);
    json_int_t number;
    char *end;
    if (code)
        return json_string(code);
    switch (as) {
    case AS_IS:
        return json_string(text);
    case YES_NO:
        return strcmp(text, "Yes") == 0 || strcmp(text, "No") == 0 ? json_integer(text[0] == 'Y')
                                                                   : NULL;
    case HEX:
        number = (json_int_t)strtoull(text, &end, 16);
        return end == text ? NULL : json_integer(number);
    case COUNT:
    case MIB:
    case MILLI:
    case US_NS:
        break;
    }
    return parse_scaled(text, factors[as], &number) ? json_integer(number) : NULL;
}

/* Sets object[key], or object[key][member], unless something is there already: of several rows for
 * one answer the first that the capture has wins. Takes over `value`. */
static bool put(json_t *object, const char *key, const char *member, json_t *value)
{
    if (!value)
        return true;
    if (member) {
        json_t *inner = json_object_get(object, key);
        if (!inner && json_object_set_new(object, key, inner = json_object()) < 0) {
            json_decref(value);
            return false;
        }
        object = inner;
        key = member;
    }
    if (json_object_get(object, key)) {
        json_decref(value);
        return true;
    }
    return json_object_set_new(object, key, value) == 0;
}

/* ------------------------------------------------------------------------- the tables */

struct row {
    const char *path;
    const char *key, *member;
    enum convert as;
};

static const struct row answer_rows[] = {
    {"product_name", "Name", NULL, AS_IS},
    {"product_brand", "Brand", NULL, AS_IS},
    {"product_architecture", "Architecture", NULL, AS_IS},
    {"serial", "Serial", NULL, AS_IS},
    {"minor_number", "MinorNumber", NULL, COUNT},
    {"board_id", "BoardId", NULL, HEX},
    {"board_part_number", "BoardPartNumber", NULL, AS_IS},
    {"vbios_version", "VbiosVersion", NULL, AS_IS},
    {"inforom_version/img_version", "InforomImageVersion", NULL, AS_IS},
    {"gsp_firmware_version", "GspFirmwareVersion", NULL, AS_IS},
    {"display_mode", "DisplayMode", NULL, AS_IS},
    {"display_active", "DisplayActive", NULL, AS_IS},
    {"persistence_mode", "PersistenceMode", NULL, AS_IS},
    {"addressing_mode", "AddressingMode", NULL, AS_IS},
    {"accounting_mode", "AccountingMode", NULL, AS_IS},
    {"accounting_mode_buffer_size", "AccountingBufferSize", NULL, COUNT},
    {"gpu_virtualization_mode/virtualization_mode", "VirtualizationMode", NULL, AS_IS},
    {"mig_mode/current_mig", "MigMode", "current", AS_IS},
    {"mig_mode/pending_mig", "MigMode", "pending", AS_IS},
    {"compute_mode", "ComputeMode", NULL, AS_IS},
    {"pci/pci_gpu_link_info/pcie_gen/max_link_gen", "MaxPcieLinkGeneration", NULL, COUNT},
    {"pci/pci_gpu_link_info/pcie_gen/max_device_link_gen", "GpuMaxPcieLinkGeneration", NULL, COUNT},
    {"pci/pci_gpu_link_info/pcie_gen/current_link_gen", "CurrPcieLinkGeneration", NULL, COUNT},
    {"pci/pci_gpu_link_info/link_widths/max_link_width", "MaxPcieLinkWidth", NULL, COUNT},
    {"pci/pci_gpu_link_info/link_widths/current_link_width", "CurrPcieLinkWidth", NULL, COUNT},
    {"pci/tx_util", "PcieThroughput", "TX", COUNT},
    {"pci/rx_util", "PcieThroughput", "RX", COUNT},
    {"pci/replay_counter", "PcieReplayCounter", NULL, COUNT},
    {"fan_speed", "FanSpeed", NULL, COUNT},
    {"performance_state", "PerformanceState", NULL, AS_IS},
    {"bar1_memory_usage/total", "BAR1MemoryInfo", "total", MIB},
    {"bar1_memory_usage/used", "BAR1MemoryInfo", "used", MIB},
    {"bar1_memory_usage/free", "BAR1MemoryInfo", "free", MIB},
    {"utilization/gpu_util", "UtilizationRates", "gpu", COUNT},
    {"utilization/memory_util", "UtilizationRates", "memory", COUNT},
    {"utilization/encoder_util", "EncoderUtilization", NULL, COUNT},
    {"utilization/decoder_util", "DecoderUtilization", NULL, COUNT},
    {"utilization/jpeg_util", "JpgUtilization", NULL, COUNT},
    {"utilization/ofa_util", "OfaUtilization", NULL, COUNT},
    {"encoder_stats/session_count", "EncoderStats", "sessions", COUNT},
    {"encoder_stats/average_fps", "EncoderStats", "fps", COUNT},
    {"encoder_stats/average_latency", "EncoderStats", "latency_us", COUNT},
    {"clocks/graphics_clock", "ClockInfo", "GRAPHICS", COUNT},
    {"clocks/sm_clock", "ClockInfo", "SM", COUNT},
    {"clocks/mem_clock", "ClockInfo", "MEM", COUNT},
    {"clocks/video_clock", "ClockInfo", "VIDEO", COUNT},
    {"max_clocks/graphics_clock", "MaxClockInfo", "GRAPHICS", COUNT},
    {"max_clocks/sm_clock", "MaxClockInfo", "SM", COUNT},
    {"max_clocks/mem_clock", "MaxClockInfo", "MEM", COUNT},
    {"max_clocks/video_clock", "MaxClockInfo", "VIDEO", COUNT},
    {"temperature/gpu_temp", "Temperature", NULL, COUNT},
    {"temperature/gpu_temp_tlimit", "MarginTemperature", NULL, COUNT},
    {"temperature/gpu_temp_max_threshold", "TemperatureThreshold", "SHUTDOWN", COUNT},
    {"temperature/gpu_temp_slow_threshold", "TemperatureThreshold", "SLOWDOWN", COUNT},
    {"temperature/gpu_temp_max_gpu_threshold", "TemperatureThreshold", "GPU_MAX", COUNT},
    {"temperature/gpu_temp_max_mem_threshold", "TemperatureThreshold", "MEM_MAX", COUNT},
    {"supported_gpu_target_temp/gpu_target_temp_min", "TemperatureThreshold", "ACOUSTIC_MIN",
     COUNT},
    {"supported_gpu_target_temp/gpu_target_temp_max", "TemperatureThreshold", "ACOUSTIC_MAX",
     COUNT},
    {"temperature/gpu_target_temperature", "TemperatureThreshold", "ACOUSTIC_CURR", COUNT},
    {"power_readings/power_management", "PowerManagementMode", NULL, AS_IS},
    {"power_readings/power_limit", "PowerManagementLimit", NULL, MILLI},
    {"power_readings/enforced_power_limit", "EnforcedPowerLimit", NULL, MILLI},
    {"power_readings/default_power_limit", "PowerManagementDefaultLimit", NULL, MILLI},
    {"power_readings/min_power_limit", "PowerManagementLimitConstraints", "min", MILLI},
    {"power_readings/max_power_limit", "PowerManagementLimitConstraints", "max", MILLI},
    {"gpu_power_readings/requested_power_limit", "PowerManagementLimit", NULL, MILLI},
    {"gpu_power_readings/current_power_limit", "EnforcedPowerLimit", NULL, MILLI},
    {"gpu_power_readings/default_power_limit", "PowerManagementDefaultLimit", NULL, MILLI},
    {"gpu_power_readings/min_power_limit", "PowerManagementLimitConstraints", "min", MILLI},
    {"gpu_power_readings/max_power_limit", "PowerManagementLimitConstraints", "max", MILLI},
    {"ecc_mode/current_ecc", "EccMode", "current", AS_IS},
    {"ecc_mode/pending_ecc", "EccMode", "pending", AS_IS},
#define SRAM_DRAM(counter)                                                                         \
    {"ecc_errors/" counter "/sram_correctable", "MemoryErrorCounter",                              \
     "corrected." counter ".SRAM", COUNT},                                                         \
        {"ecc_errors/" counter "/dram_correctable", "MemoryErrorCounter",                          \
         "corrected." counter ".DRAM", COUNT},                                                     \
        {"ecc_errors/" counter "/dram_uncorrectable", "MemoryErrorCounter",                        \
         "uncorrected." counter ".DRAM", COUNT},                                                   \
    {                                                                                              \
        "ecc_errors/" counter "/sram_uncorrectable", "MemoryErrorCounter",                         \
            "uncorrected." counter ".SRAM", COUNT                                                  \
    }
    SRAM_DRAM("volatile"),
    SRAM_DRAM("aggregate"),
#undef SRAM_DRAM
#define OLD_LOCATIONS(counter, bits, type)                                                         \
    {"ecc_errors/" counter "/" bits "/total", "TotalEccErrors", type "." counter, COUNT},          \
        {"ecc_errors/" counter "/" bits "/l1_cache", "MemoryErrorCounter",                         \
         type "." counter ".L1_CACHE", COUNT},                                                     \
        {"ecc_errors/" counter "/" bits "/l2_cache", "MemoryErrorCounter",                         \
         type "." counter ".L2_CACHE", COUNT},                                                     \
        {"ecc_errors/" counter "/" bits "/device_memory", "MemoryErrorCounter",                    \
         type "." counter ".DRAM", COUNT},                                                         \
        {"ecc_errors/" counter "/" bits "/register_file", "MemoryErrorCounter",                    \
         type "." counter ".REGISTER_FILE", COUNT},                                                \
        {"ecc_errors/" counter "/" bits "/texture_memory", "MemoryErrorCounter",                   \
         type "." counter ".TEXTURE_MEMORY", COUNT},                                               \
        {"ecc_errors/" counter "/" bits "/texture_shm", "MemoryErrorCounter",                      \
         type "." counter ".TEXTURE_SHM", COUNT},                                                  \
    {                                                                                              \
        "ecc_errors/" counter "/" bits "/cbu", "MemoryErrorCounter", type "." counter ".CBU",      \
            COUNT                                                                                  \
    }
    OLD_LOCATIONS("volatile", "single_bit", "corrected"),
    OLD_LOCATIONS("volatile", "double_bit", "uncorrected"),
    OLD_LOCATIONS("aggregate", "single_bit", "corrected"),
    OLD_LOCATIONS("aggregate", "double_bit", "uncorrected"),
#undef OLD_LOCATIONS
    /* The driver's one power reading is the average where there is one. */
    {"power_readings/power_draw", "PowerUsage", NULL, MILLI},
    {"gpu_power_readings/power_draw", "PowerUsage", NULL, MILLI},
};

#define POWER_FIELDS(group, scope)                                                                 \
    {group "/average_power_draw", "185" scope, NULL, MILLI},                                       \
        {group "/instant_power_draw", "186" scope, NULL, MILLI},                                   \
        {group "/min_power_limit", "187" scope, NULL, MILLI},                                      \
        {group "/max_power_limit", "188" scope, NULL, MILLI},                                      \
        {group "/default_power_limit", "189" scope, NULL, MILLI},                                  \
        {group "/current_power_limit", "190" scope, NULL, MILLI},                                  \
    {                                                                                              \
        group "/requested_power_limit", "192" scope, NULL, MILLI                                   \
    }

static const struct row field_rows[] = {
    {"temperature/memory_temp", "82", NULL, COUNT},
    {"temperature/gpu_temp_max_tlimit_threshold", "193", NULL, COUNT},
    {"temperature/gpu_temp_slow_tlimit_threshold", "194", NULL, COUNT},
    {"temperature/gpu_temp_max_mem_tlimit_threshold", "195", NULL, COUNT},
    {"temperature/gpu_temp_max_gpu_tlimit_threshold", "196", NULL, COUNT},
    {"pci/replay_counter", "94", NULL, COUNT},
    {"pci/replay_rollover_counter", "95", NULL, COUNT},
    {"retired_pages/multiple_single_bit_retirement/retired_count", "29", NULL, COUNT},
    {"retired_pages/double_bit_retirement/retired_count", "30", NULL, COUNT},
    {"retired_pages/pending_retirement", "31", NULL, YES_NO},
    {"remapped_rows/remapped_row_corr", "142", NULL, COUNT},
    {"remapped_rows/remapped_row_unc", "143", NULL, COUNT},
    {"remapped_rows/remapped_row_pending", "144", NULL, YES_NO},
    {"remapped_rows/remapped_row_failure", "145", NULL, YES_NO},
    POWER_FIELDS("gpu_power_readings", ""),
    POWER_FIELDS("module_power_readings", "/1"),
    POWER_FIELDS("gpu_memory_power_readings", "/2"),
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_sw_power_cap", "74", NULL, US_NS},
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_sync_boost", "76", NULL, US_NS},
};

/* These counters have two ids each; the driver's version decides which is asked. */
static const struct {
    const char *path;
    unsigned int id, id_r575;
} counter_rows[] = {
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_sw_therm_slowdown",
     NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
     NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_R575},
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_hw_therm_slowdown",
     NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
     NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_R575},
    {"clocks_event_reasons_counters/clocks_event_reasons_counters_hw_power_brake",
     NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
     NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_R575},
};

/* Named like "clocks_event_reason_gpu_idle", before R535 "clocks_throttle_reason_gpu_idle". */
static const struct {
    const char *ending;
    uint64_t bit;
} reason_rows[] = {
    {"gpu_idle", NVML_CLOCKS_EVENT_GPU_IDLE},
    {"applications_clocks_setting", NVML_CLOCKS_EVENT_APPLICATIONS_CLOCKS},
    {"sw_power_cap", NVML_CLOCKS_EVENT_SW_POWER_CAP},
    {"hw_slowdown", NVML_CLOCKS_EVENT_HW_SLOWDOWN},
    {"hw_thermal_slowdown", NVML_CLOCKS_EVENT_HW_THERMAL},
    {"hw_power_brake_slowdown", NVML_CLOCKS_EVENT_HW_POWER_BRAKE},
    {"sync_boost", NVML_CLOCKS_EVENT_SYNC_BOOST},
    {"sw_thermal_slowdown", NVML_CLOCKS_EVENT_SW_THERMAL},
    {"display_clocks_setting", NVML_CLOCKS_EVENT_DISPLAY_CLOCKS},
};

/* What captures do not say and the PCI device id settles: the compute capability. */
static const struct {
    unsigned int first, last; /* of the device id */
    int major, minor;
} capability_rows[] = {
    {0x15f0, 0x15ff, 6, 0},  /* P100 */
    {0x1b00, 0x1d7f, 6, 1},  /* GP102 to GP108 */
    {0x1db0, 0x1dff, 7, 0},  /* V100 */
    {0x1e00, 0x1fff, 7, 5},  /* TU102 to TU106, T4 */
    {0x2180, 0x21ff, 7, 5},  /* TU116 */
    {0x20b0, 0x20ff, 8, 0},  /* A100, A30 */
    {0x2200, 0x22ff, 8, 6},  /* GA102 */
    {0x2300, 0x233f, 9, 0},  /* H100, H200 */
    {0x2400, 0x25ff, 8, 6},  /* GA103 to GA107 */
    {0x2680, 0x28ff, 8, 9},  /* AD102 to AD107 */
    {0x2900, 0x29ff, 10, 0}, /* B200, GB200 */
};

/* ------------------------------------------------------------------------- devices */

static json_t *reasons_mask(const struct node *gpu)
{
    const struct node *group = find(gpu, "clocks_event_reasons");
    const char *beginning = "clocks_event_reason_";
    if (!group) {
        group = find(gpu, "clocks_throttle_reasons");
        beginning = "clocks_throttle_reason_";
    }
    if (!group)
        return NULL;
    if (!group->first)
        return convert(group->text, AS_IS);
    uint64_t mask = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(reason_rows); i++) {
        char name[80];
        (void)snprintf(name, sizeof(name), "%s%s", beginning, reason_rows[i].ending);
        const char *text = find_text(group, name);
        const char *code = text ? return_code_of(text) : NULL;
        if (code && i == 0)
            return json_string(code);
        if (text && strcmp(text, "Active") == 0)
            mask |= reason_rows[i].bit;
    }
    return json_integer((json_int_t)mask);
}

/* The memory in bytes. The total is whole MiB; the parts nvidia-smi rounds, before R570 down and
 * since then up, so that they miss the total by one or two. Spreading the difference over the parts
 * that are not 0 gives numbers that add up and are printed as they were. */
static json_t *memory_info(const struct node *group)
{
    enum { TOTAL, RESERVED, USED, FREE, PARTS };
    static const char *const names[PARTS] = {"total", "reserved", "used", "free"};
    json_int_t mib[PARTS] = {0}, bytes[PARTS];
    bool given[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
        const char *text = find_text(group, names[i]);
        const char *code = text ? return_code_of(text) : NULL;
        given[i] = text && !code && parse_scaled(text, 1, &mib[i]);
        if (mib[i] < 0 || mib[i] > INT32_MAX)
            return NULL;
        if (i == TOTAL && !given[i])
            return text && code ? json_string(code) : NULL;
    }
    json_int_t over = mib[RESERVED] + mib[USED] + mib[FREE] - mib[TOTAL];
    json_int_t parts = (mib[RESERVED] > 0) + (mib[USED] > 0) + (mib[FREE] > 0);
    json_int_t shift = parts && over > -parts && over < parts ? over * (1 << 20) / parts : 0;
    for (size_t i = 0; i < PARTS; i++)
        bytes[i] = mib[i] * (1 << 20) - (i != TOTAL && mib[i] > 0 ? shift : 0);
    bytes[FREE] = bytes[TOTAL] - bytes[RESERVED] - bytes[USED];

    json_t *memory = json_object();
    for (size_t i = 0; memory && i < PARTS; i++)
        if (given[i] || i == FREE)
            (void)json_object_set_new(memory, names[i], json_integer(bytes[i]));
    return memory;
}

static bool put_rows(json_t *object, const struct node *node, const struct row *rows, size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        const char *text = find_text(node, rows[i].path);
        if (text)
            ok &= put(object, rows[i].key, rows[i].member, convert(text, rows[i].as));
    }
    return ok;
}

/* A name that our list of the kind lacks (a newer architecture) is unknown to the driver played. */
static void drop_unknown_names(json_t *answers)
{
    for (size_t slot = 0; slot < SIM_SLOT_COUNT; slot++) {
        const struct sim_answer *row = &sim_answers[slot];
        const struct sim_name *name = sim_kind_names(row->kind);
        json_t *object = row->member ? json_object_get(answers, row->key) : answers;
        const char *key = row->member ? row->member : row->key;
        const char *text = json_string_value(json_object_get(object, key));
        nvmlReturn_t code;
        if (!name || !text || sim_return_code(text, &code))
            continue;
        while (name->name && strcmp(name->name, text) != 0)
            name++;
        if (!name->name)
            (void)json_object_set_new(object, key, json_string("UNKNOWN"));
    }
}

/* The sum of what the newer captures split into parity and SEC-DED. */
static json_t *sram_uncorrected(const struct node *gpu, const char *counter)
{
    char path[80];
    json_int_t parity, secded;
    (void)snprintf(path, sizeof(path), "ecc_errors/%s/sram_uncorrectable_parity", counter);
    const char *a = find_text(gpu, path);
    (void)snprintf(path, sizeof(path), "ecc_errors/%s/sram_uncorrectable_secded", counter);
    const char *b = find_text(gpu, path);
    if (!a || !b)
        return NULL;
    if (return_code_of(a) || !parse_scaled(a, 1, &parity) || !parse_scaled(b, 1, &secded))
        return convert(a, AS_IS);
    return json_integer(parity + secded);
}

/* Newer captures have no totals: the driver's total is the sum over the places it counts at. */
static bool put_totals(json_t *answers)
{
    static const char *const totals[] = {"corrected.volatile", "corrected.aggregate",
                                         "uncorrected.volatile", "uncorrected.aggregate"};
    json_t *places = json_object_get(answers, "MemoryErrorCounter");
    bool ok = true;
    for (size_t i = 0; i < GP_ARRAY_LEN(totals); i++) {
        char name[48];
        (void)snprintf(name, sizeof(name), "%s.SRAM", totals[i]);
        json_t *sram = json_object_get(places, name);
        (void)snprintf(name, sizeof(name), "%s.DRAM", totals[i]);
        json_t *dram = json_object_get(places, name);
        if (json_is_integer(sram) && json_is_integer(dram))
            ok &= put(answers, "TotalEccErrors", totals[i],
                      json_integer(json_integer_value(sram) + json_integer_value(dram)));
    }
    return ok;
}

static bool is_number(json_t *object, const char *key)
{
    return json_is_integer(json_object_get(object, key));
}

/* GPUs that can be partitioned, all with up to seven instances. */
static bool can_mig(json_t *answers)
{
    json_t *mode = json_object_get(json_object_get(answers, "MigMode"), "current");
    return json_is_string(mode) && strcmp(json_string_value(mode), "NOT_SUPPORTED") != 0;
}

static bool put_capability(json_t *answers, unsigned int pci_device_id)
{
    unsigned int id = pci_device_id >> 16;
    for (size_t i = 0; i < GP_ARRAY_LEN(capability_rows); i++) {
        if (id < capability_rows[i].first || id > capability_rows[i].last)
            continue;
        return put(answers, "CudaComputeCapability", "major",
                   json_integer(capability_rows[i].major)) &&
               put(answers, "CudaComputeCapability", "minor",
                   json_integer(capability_rows[i].minor));
    }
    return true;
}

static bool put_answers(json_t *answers, const struct node *gpu, unsigned int pci_device_id)
{
    const struct node *memory = find(gpu, "fb_memory_usage");
    bool ok = put_rows(answers, gpu, answer_rows, GP_ARRAY_LEN(answer_rows));
    const char *average = find_text(gpu, "gpu_power_readings/average_power_draw");
    const char *instant = find_text(gpu, "gpu_power_readings/instant_power_draw");
    if (average && !return_code_of(average))
        ok &= put(answers, "PowerUsage", NULL, convert(average, MILLI));
    else if (instant)
        ok &= put(answers, "PowerUsage", NULL, convert(instant, MILLI));
    ok &= put(answers, "MemoryInfo", NULL, memory ? memory_info(memory) : NULL);
    ok &= put(answers, "CurrentClocksEventReasons", NULL, reasons_mask(gpu));
    ok &= put(answers, "MemoryErrorCounter", "uncorrected.volatile.SRAM",
              sram_uncorrected(gpu, "volatile"));
    ok &= put(answers, "MemoryErrorCounter", "uncorrected.aggregate.SRAM",
              sram_uncorrected(gpu, "aggregate"));
    ok &= put_totals(answers);

    /* Answers that follow from the others on every GPU seen so far. */
    if (is_number(answers, "CurrentClocksEventReasons"))
        ok &= put(answers, "SupportedClocksEventReasons", NULL, json_integer(0x1ff));
    if (json_object_get(answers, "FanSpeed"))
        ok &= put(answers, "NumFans", NULL, json_integer(is_number(answers, "FanSpeed")));
    ok &= put(answers, "MaxMigDeviceCount", NULL, json_integer(can_mig(answers) ? 7 : 0));
    ok &= put_capability(answers, pci_device_id);
    drop_unknown_names(answers);
    return ok;
}

static bool put_fields(json_t *fields, const struct node *gpu, const unsigned int driver[2])
{
    static const char *const actions[] = {"None", "Reset", "Reboot", "Drain P2P",
                                          "Drain and Reset"};
    bool ok = put_rows(fields, gpu, field_rows, GP_ARRAY_LEN(field_rows));
    bool r575 = (driver[0] >= 575 && driver[0] < 580) || (driver[0] == 580 && driver[1] < 82);
    for (size_t i = 0; i < GP_ARRAY_LEN(counter_rows); i++) {
        char id[16];
        const char *text = find_text(gpu, counter_rows[i].path);
        (void)snprintf(id, sizeof(id), "%u", r575 ? counter_rows[i].id_r575 : counter_rows[i].id);
        if (text)
            ok &= put(fields, id, NULL, convert(text, US_NS));
    }
    const char *action = find_text(gpu, "gpu_recovery_action");
    for (size_t i = 0; action && i < GP_ARRAY_LEN(actions); i++)
        if (strcmp(actions[i], action) == 0)
            ok &= put(fields, "230", NULL, json_integer((json_int_t)i));
    return ok;
}

/* ------------------------------------------------------------------------- lists */

/* The id of a GPU or compute instance: small, or not an id. */
static bool instance_id(const struct node *node, const char *path, json_int_t *ret)
{
    const char *text = find_text(node, path);
    return text && parse_scaled(text, 1, ret) && *ret >= 0 && *ret < 256;
}

static bool put_instance(json_t *object, const struct node *node, const char *path, const char *key)
{
    json_int_t id;
    return !instance_id(node, path, &id) || put(object, key, NULL, json_integer(id));
}

static json_t *import_processes(const struct node *gpu)
{
    json_t *list = json_array();
    const struct node *group = find(gpu, "processes");
    for (const struct node *p = group ? group->first : NULL; p && list; p = p->next) {
        const char *pid = find_text(p, "pid");
        const char *memory = find_text(p, "used_memory");
        const char *type = find_text(p, "type");
        const char *name = find_text(p, "process_name");
        json_int_t number;
        if (strcmp(p->name, "process_info") != 0 || !pid || !parse_scaled(pid, 1, &number))
            continue;
        json_t *entry = json_object();
        bool known = memory && !return_code_of(memory);
        bool ok = entry && json_object_set_new(entry, "pid", json_integer(number)) == 0 &&
                  put(entry, "type", NULL, json_string(type && *type ? type : "C")) &&
                  put(entry, "memory_bytes", NULL, known ? convert(memory, MIB) : json_null()) &&
                  put(entry, "name", NULL, json_string(name ? name : "")) &&
                  put_instance(entry, p, "gpu_instance_id", "gpu_instance") &&
                  put_instance(entry, p, "compute_instance_id", "compute_instance");
        if (!ok || json_array_append_new(list, entry) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static const struct row mig_rows[] = {
    {"device_attributes/shared/multiprocessor_count", "Attributes", "multiprocessors", COUNT},
    {"device_attributes/shared/copy_engine_count", "Attributes", "copy_engines", COUNT},
    {"device_attributes/shared/decoder_count", "Attributes", "decoders", COUNT},
    {"device_attributes/shared/encoder_count", "Attributes", "encoders", COUNT},
    {"device_attributes/shared/jpg_count", "Attributes", "jpeg_engines", COUNT},
    {"device_attributes/shared/ofa_count", "Attributes", "ofa_engines", COUNT},
    {"bar1_memory_usage/total", "BAR1MemoryInfo", "total", MIB},
    {"bar1_memory_usage/used", "BAR1MemoryInfo", "used", MIB},
    {"bar1_memory_usage/free", "BAR1MemoryInfo", "free", MIB},
    {"ecc_error_count/volatile_count/sram_uncorrectable", "MemoryErrorCounter",
     "uncorrected.volatile.SRAM", COUNT},
};

/* A MIG device is called by its slices and memory, as in "MIG 1g.20gb". An A100 or A30 (0x20xx) has
 * 14 multiprocessors to the slice; elsewhere the capture does not tell. */
static bool put_mig_name(json_t *answers, const char *gpu_name, const struct node *mig,
                         unsigned int pci_device_id)
{
    json_int_t mib, sm;
    const char *memory = find_text(mig, "fb_memory_usage/total");
    const char *count = find_text(mig, "device_attributes/shared/multiprocessor_count");
    if (!memory || !count || !parse_scaled(memory, 1, &mib) || !parse_scaled(count, 1, &sm))
        return true;
    bool ok = put(answers, "Attributes", "memory_mib", json_integer(mib));
    json_int_t slices = pci_device_id >> 24 == 0x20 ? sm / 14 : 0;
    ok &= put(answers, "Attributes", "gpu_instance_slices", json_integer(slices));
    ok &= put(answers, "Attributes", "compute_instance_slices", json_integer(slices));
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
    if (slices)
        (void)snprintf(name, sizeof(name),
                       "%s MIG %" JSON_INTEGER_FORMAT "g.%" JSON_INTEGER_FORMAT "gb", gpu_name,
                       slices, (mib + 512) / 1024);
    else
        (void)snprintf(name, sizeof(name), "%s MIG", gpu_name);
    return ok && put(answers, "Name", NULL, json_string(name));
}

/* Captures before R535 name no UUID of a MIG device: make one of the GPU's and the instance. */
static json_t *mig_uuid(const char *gpu_uuid, const char *given, json_int_t gi, json_int_t ci)
{
    char uuid[96];
    if (given && strncmp(given, "MIG-", 4) == 0)
        return json_string(given);
    (void)snprintf(uuid, sizeof(uuid), "MIG-%08x-%s", (unsigned int)(gi << 8 | ci),
                   strlen(gpu_uuid) == 40 ? gpu_uuid + 13 : "0000-0000-0000-000000000000");
    return json_string(uuid);
}

static json_t *import_migs(const struct node *gpu, const char *gpu_uuid, unsigned int pci_device_id)
{
    const char *gpu_name = find_text(gpu, "product_name");
    const struct node *group = find(gpu, "mig_devices");
    json_t *list = json_array();
    for (const struct node *m = group ? group->first : NULL; m && list; m = m->next) {
        json_int_t gi, ci;
        if (!instance_id(m, "gpu_instance_id", &gi) || !instance_id(m, "compute_instance_id", &ci))
            continue;
        json_t *answers = json_object();
        json_t *entry =
            json_pack("{s:I, s:I, s:o, s:o}", "gpu_instance", gi, "compute_instance", ci, "uuid",
                      mig_uuid(gpu_uuid, find_text(m, "uuid"), gi, ci), "answers", answers);
        const struct node *memory = find(m, "fb_memory_usage");
        bool ok = entry && put_rows(answers, m, mig_rows, GP_ARRAY_LEN(mig_rows)) &&
                  put(answers, "MemoryInfo", NULL, memory ? memory_info(memory) : NULL) &&
                  put_mig_name(answers, gpu_name ? gpu_name : "", m, pci_device_id) &&
                  put(answers, "ComputeMode", NULL, json_string("Default"));
        if (!ok || json_array_append_new(list, entry) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* ------------------------------------------------------------------------- the machine */

struct importer {
    const char *path;
    struct gp_err *err;
    unsigned int driver[2];
};

static int import_gpu(const struct importer *im, const struct node *gpu, json_t **ret)
{
    const char *bus_id = find_text(gpu, "pci/pci_bus_id");
    const char *uuid = find_text(gpu, "uuid");
    const char *device = find_text(gpu, "pci/pci_device_id");
    const char *subsystem = find_text(gpu, "pci/pci_sub_system_id");
    if (!bus_id || !*bus_id)
        bus_id = gpu->id;
    if (!bus_id || !uuid || strncmp(uuid, "GPU-", 4) != 0)
        return gp_err_set(im->err, GP_EFORMAT, "%s:%ld: this GPU has no %s", im->path, gpu->line,
                          bus_id ? "uuid" : "PCI bus id");
    unsigned int device_id = device ? (unsigned int)strtoul(device, NULL, 16) : 0;
    unsigned int subsystem_id = subsystem ? (unsigned int)strtoul(subsystem, NULL, 16) : 0;
    char hex[2][16];
    (void)snprintf(hex[0], sizeof(hex[0]), "0x%08X", device_id);
    (void)snprintf(hex[1], sizeof(hex[1]), "0x%08X", subsystem_id);

    json_t *answers = json_object(), *fields = json_object();
    json_t *json = json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:o, s:o, s:o}", "uuid", uuid, "pci",
                             "bus_id", bus_id, "device_id", hex[0], "subsystem_id", hex[1],
                             "answers", answers, "fields", fields, "processes",
                             import_processes(gpu), "mig", import_migs(gpu, uuid, device_id));
    if (!json || !put_answers(answers, gpu, device_id) || !put_fields(fields, gpu, im->driver)) {
        json_decref(json);
        return gp_err_set(im->err, GP_EFORMAT, "%s:%ld: this GPU cannot be converted", im->path,
                          gpu->line);
    }
    *ret = json;
    return GP_OK;
}

static json_t *import_driver(const struct node *log, struct importer *im)
{
    json_t *driver = json_object();
    const char *version = find_text(log, "driver_version");
    const char *cuda = find_text(log, "cuda_version");
    unsigned int major = 0, minor = 0;
    if (version && sscanf(version, "%u.%u", &im->driver[0], &im->driver[1]) == 2)
        (void)json_object_set_new(driver, "version", json_string(version));
    if (cuda && sscanf(cuda, "%u.%u", &major, &minor) == 2 && major < 100 && minor < 100) {
        (void)json_object_set_new(driver, "cuda",
                                  json_integer((json_int_t)(major * 1000 + minor * 10)));
        if (version)
            (void)json_object_set_new(driver, "nvml", json_sprintf("%u.%s", major, version));
    }
    return driver;
}

static int import_log(struct importer *im, const struct node *log, json_t **ret)
{
    const char *file = strrchr(im->path, '/');
    json_t *devices = json_array();
    json_t *machine = json_pack("{s:i, s:o, s:o, s:o}", "gpulse_machine", 1, "source",
                                json_sprintf("nvidia-smi -q -x, %s", file ? file + 1 : im->path),
                                "driver", import_driver(log, im), "devices", devices);
    int result = machine ? GP_OK : gp_err_set(im->err, GP_ENOMEM, "out of memory");
    for (const struct node *n = log->first; n && result == GP_OK; n = n->next) {
        json_t *device = NULL;
        if (strcmp(n->name, "gpu") != 0)
            continue;
        result = import_gpu(im, n, &device);
        if (result == GP_OK && json_array_append_new(devices, device) < 0)
            result = gp_err_set(im->err, GP_ENOMEM, "out of memory");
    }
    if (result == GP_OK && json_array_size(devices) == 0)
        result = gp_err_set(im->err, GP_EFORMAT, "%s:%ld: the capture has no <gpu>", im->path,
                            log->line);
    if (result < 0)
        json_decref(machine);
    else
        *ret = machine;
    return result;
}

int sim_import(const char *path, json_t **ret_machine, struct gp_err *err)
{
    struct importer im = {.path = path, .err = err};
    struct reader reader = {0};
    int result = read_xml(&reader, path, err);
    const struct node *log = find(&reader.root, "nvidia_smi_log");
    if (result == GP_OK && !log)
        result = gp_err_set(err, GP_EFORMAT,
                            "%s:1: not the output of nvidia-smi -q -x: the outermost "
                            "element is not <nvidia_smi_log>",
                            path);
    if (result == GP_OK)
        result = import_log(&im, log, ret_machine);
    gp_arena_fini(&reader.arena);
    return result;
}

int sim_import_overlay(json_t *machine, const char *path, struct gp_err *err)
{
    json_error_t why;
    json_t *overlay = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!overlay)
        return gp_err_set(err, GP_EFORMAT, "%s:%d: %s", path, why.line, why.text);
    static const char *const of_devices[] = {"answers", "fields"};
    for (size_t k = 0; k < GP_ARRAY_LEN(of_devices); k++) {
        json_t *more = json_object_get(overlay, of_devices[k]);
        size_t i;
        json_t *device;
        json_array_foreach(json_object_get(machine, "devices"), i, device) if (more)(void)
            json_object_update(json_object_get(device, of_devices[k]), more);
        (void)json_object_del(overlay, of_devices[k]);
    }
    int result = json_object_update(machine, overlay) == 0
                     ? GP_OK
                     : gp_err_set(err, GP_EFORMAT, "%s: expected an object", path);
    json_decref(overlay);
    return result;
}
