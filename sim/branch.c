#include "sim/branch.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

/* If an interface changed within a branch, there is one release for each side of the change. */
static const struct sim_release releases[] = {
    {"418.43", 10010},     {"440.33.01", 10020},  {"450.80.02", 11000},  {"455.45.01", 11010},
    {"460.32.03", 11020},  {"465.19.01", 11030},  {"470.57.02", 11040},  {"495.29.05", 11050},
    {"510.47.03", 11060},  {"515.65.01", 11070},  {"520.61.05", 11080},  {"525.60.13", 12000},
    {"530.30.02", 12010},  {"535.183.01", 12020}, {"535.43.02", 12020},  {"535.54.03", 12020},
    {"535.86.10", 12020},  {"535.98", 12020},     {"535.104.05", 12020}, {"545.23.08", 12030},
    {"550.54.15", 12040},  {"555.42.06", 12050},  {"560.35.03", 12060},  {"565.57.01", 12070},
    {"570.124.06", 12080}, {"575.51.03", 12090},  {"580.105.08", 13000}, {"580.65.06", 13000},
    {"590.48.01", 13010},  {"595.80", 13020},     {"610.57.04", 13030},
};

/* "535.43" is a prefix of "535.43.02"; "53" matches nothing. */
static bool begins(const char *driver, const char *wanted, size_t parts_len)
{
    return strncmp(driver, wanted, parts_len) == 0 &&
           (driver[parts_len] == '.' || driver[parts_len] == '\0');
}

static bool is_version(const char *text, unsigned int numbers[3], int *ret_parts)
{
    int used = 0;
    *ret_parts = sscanf(text, "%4u.%4u.%4u%n", &numbers[0], &numbers[1], &numbers[2], &used);
    if (*ret_parts < 3)
        used = (int)strspn(text, "0123456789.");
    return *ret_parts > 0 && text[used] == '\0' && text[0] >= '0' && text[0] <= '9';
}

int sim_release_find(const char *wanted, const char **ret_driver, int *ret_cuda, struct gp_err *err)
{
    unsigned int numbers[3];
    int parts;
    if (!is_version(wanted, numbers, &parts))
        return gp_err_set(err, GP_EUSAGE,
                          "driver=%.40s: expected a branch or a version, for example driver=470 or "
                          "driver=535.43.02",
                          wanted);
    for (size_t i = 0; i < GP_ARRAY_LEN(releases); i++) {
        if (!begins(releases[i].driver, wanted, strlen(wanted)))
            continue;
        *ret_driver = releases[i].driver;
        *ret_cuda = releases[i].cuda;
        return GP_OK;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(releases) && parts == 3; i++) {
        if (!begins(releases[i].driver, wanted, strcspn(wanted, ".")))
            continue;
        *ret_driver = wanted;
        *ret_cuda = releases[i].cuda;
        return GP_OK;
    }
    char known[400];
    size_t len = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(releases) && len < sizeof(known); i++)
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
                                releases[i].driver);
    return gp_err_set(err, GP_EUSAGE, "unknown version driver=%.40s; known: %s", wanted, known);
}

bool sim_driver_is(const unsigned int driver[3], unsigned int major, unsigned int minor)
{
    if (driver[0] != major)
        return driver[0] == 0 || driver[0] > major;
    return driver[1] >= minor;
}

/* ------------------------------------------------------------------------- symbols */

const struct sim_symbol sim_symbols[SIM_SYMBOL_COUNT] = {
#define X(branch, type, name, args) {#name, branch},
    NVML_FUNCTIONS(X)
#undef X
#define SIM_UNPLAYED(branch, function) {#function, branch},
#include "sim/unplayed.def"
#undef SIM_UNPLAYED
};

void sim_symbols_missing(const unsigned int driver[3], bool missing[SIM_SYMBOL_COUNT])
{
    /* 535.98 removed the _v3 process lists, whose entries had grown in 535.43; 535.104 restored the
     * original ones. */
    static const char list[] = "RunningProcesses_v3";
    bool lacks_lists = driver[0] == 535 && driver[1] >= 98 && driver[1] < 104;
    for (size_t i = 0; i < SIM_SYMBOL_COUNT; i++) {
        const struct sim_symbol *s = &sim_symbols[i];
        missing[i] = s->branch > NVML_OLDEST_BRANCH && !sim_driver_is(driver, s->branch, 0);
        missing[i] |= lacks_lists && strstr(s->name, list);
    }
}

size_t sim_process_entry_size(const unsigned int driver[3], unsigned int version)
{
    if (version == 1)
        return sizeof(nvmlProcessInfo_v1_t);
    bool wide = version == 3 && driver[0] == 535 && driver[1] >= 43 && driver[1] <= 86;
    return wide ? sizeof(nvmlProcessInfo_r535_t) : sizeof(nvmlProcessInfo_v2_t);
}

/* ------------------------------------------------------------------------- fields */

static const struct {
    unsigned int first, last; /* newest ids */
    unsigned int branch;
} field_branches[] = {
    {1, 145, 440},   {146, 146, 455}, {147, 147, 460}, {148, 160, 470}, {161, 166, 520},
    {167, 169, 525}, {170, 196, 535}, {197, 198, 555}, {199, 199, 550}, {200, 200, 555},
    {201, 229, 560}, {230, 230, 570}, {231, 234, 575}, {235, 268, 570}, {269, 273, 575},
    {274, 288, 590}, {289, 295, 595}, {296, 300, 610}, {301, 302, 595},
};

/* Releases whose header has other field ids. */
static const struct {
    unsigned int from[2], before[2];  /* driver versions */
    unsigned int first, last, newest; /* their ids, and the newest id of the first one */
} field_moves[] = {
    {{555, 0}, {570, 0}, 199, 199, 200},
    {{555, 0}, {570, 0}, 200, 200, 199},
    {{575, 0}, {580, 82}, 251, 255, 269},
    {{575, 0}, {580, 82}, 256, 273, 251},
};

unsigned int sim_field_newest(const unsigned int driver[3], unsigned int id)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(field_moves) && driver[0] > 0; i++)
        if (id >= field_moves[i].first && id <= field_moves[i].last &&
            sim_driver_is(driver, field_moves[i].from[0], field_moves[i].from[1]) &&
            !sim_driver_is(driver, field_moves[i].before[0], field_moves[i].before[1]))
            return field_moves[i].newest + id - field_moves[i].first;
    return id;
}

bool sim_field_known(const unsigned int driver[3], unsigned int newest)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(field_branches); i++)
        if (newest >= field_branches[i].first && newest <= field_branches[i].last)
            return field_branches[i].branch <= NVML_OLDEST_BRANCH ||
                   sim_driver_is(driver, field_branches[i].branch, 0);
    return false;
}

/* ------------------------------------------------------------------------- retired calls */

nvmlReturn_t sim_retired(const unsigned int driver[3], const char *function)
{
    static const struct {
        const char *function;
        unsigned int branch;
    } retired[] = {
        {"nvmlDeviceGetApplicationsClock", 590},
        {"nvmlDeviceGetDefaultApplicationsClock", 590},
        {"nvmlDeviceSetApplicationsClocks", 590},
        {"nvmlDeviceResetApplicationsClocks", 590},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(retired); i++)
        if (driver[0] > 0 && driver[0] >= retired[i].branch &&
            strcmp(retired[i].function, function) == 0)
            return NVML_ERROR_DEPRECATED;
    return NVML_SUCCESS;
}
