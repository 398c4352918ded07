/* Opens a machine by name. */
#include "sim/machine.h"

#include "base/cli.h"
#include "base/err.h"
#include "base/io.h"
#include "base/parse.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------------- built-in machines */

int sim_machine_directory(const char *home, char *out, size_t size, struct gp_err *err)
{
    static const char *const places[] = {"machines", "../../share/gpulse/machines"};
    for (size_t i = 0; i < GP_ARRAY_LEN(places); i++) {
        int n = snprintf(out, size, "%s/%s", home, places[i]);
        if (n >= 0 && (size_t)n < size && access(out, R_OK | X_OK) == 0)
            return GP_OK;
    }
    return gp_err_set(err, GP_EIO,
                      "the simulated machines are not installed: neither '%s/%s' nor "
                      "'%s/%s' exists",
                      home, places[0], home, places[1]);
}

/* Splits "h100x8" into name and count. "rtx3060" has no count, because its x does not follow a
 * digit. */
static bool split_spec(const char *spec, char name[64], uint64_t *ret_count)
{
    size_t len = strlen(spec);
    size_t digits = len;
    while (digits > 0 && spec[digits - 1] >= '0' && spec[digits - 1] <= '9')
        digits--;
    *ret_count = 0;
    if (digits < len && digits > 1 && spec[digits - 1] == 'x' && spec[digits - 2] != 't') {
        if (!gp_parse_u64(spec + digits, ret_count) || *ret_count == 0 ||
            *ret_count > SIM_MAX_DEVICES)
            return false;
        len = digits - 1;
    }
    if (len >= 64 || strspn(spec, "abcdefghijklmnopqrstuvwxyz0123456789-") < len)
        return false;
    (void)snprintf(name, 64, "%.*s", (int)len, spec);
    return true;
}

/* Removes ",driver=470" from the end of a name or path. */
static int split_driver(const char *spec, char base[GP_PATH_SIZE], const char **ret_driver,
                        struct gp_err *err)
{
    static const char mark[] = ",driver=";
    const char *at = strstr(spec, mark);
    const char *comma = strrchr(spec, ',');
    size_t len = at ? (size_t)(at - spec) : strlen(spec);
    *ret_driver = at ? at + strlen(mark) : NULL;
    if (comma && comma != at && !strchr(comma, '/'))
        return gp_err_set(
            err, GP_EUSAGE,
            "'%.60s': expected driver=BRANCH after the comma, for example h100,driver=470", spec);
    if (len >= GP_PATH_SIZE)
        return gp_err_set(err, GP_EUSAGE, "the name of the machine is too long");
    memcpy(base, spec, len);
    base[len] = '\0';
    return GP_OK;
}

/* ---- names that do not exist ---- */

struct names {
    struct dirent **entries;
    size_t count;
};

static int is_machine(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && strcmp(end, ".json") == 0;
}

static const char *next_name(const void *ctx, size_t i)
{
    const struct names *names = ctx;
    return i < names->count ? names->entries[i]->d_name : NULL;
}

/* " (did you mean 'sick'?)": the nearest name; upper case makes no difference. */
static struct gp_cli_hint hint_of(const char *dir, const char *base)
{
    struct names names = {NULL, 0};
    struct gp_cli_hint hint = {""};
    char word[64];
    size_t n = 0;
    for (; n < sizeof(word) - 1 && base[n]; n++)
        word[n] = (char)tolower((unsigned char)base[n]);
    word[n] = '\0';
    char name[64];
    uint64_t count;
    if (!split_spec(word, name, &count)) /* not for its letters */
        return hint;
    const int found = scandir(dir, &names.entries, is_machine, alphasort);
    names.count = found > 0 ? (size_t)found : 0;
    for (size_t i = 0; i < names.count; i++)
        *strrchr(names.entries[i]->d_name, '.') = '\0';
    hint = gp_cli_hint(name, next_name, &names);
    for (size_t i = 0; i < names.count; i++)
        free(names.entries[i]);
    if (found >= 0)
        free(names.entries);
    return hint;
}

int sim_machine_open(const char *spec, const char *home, struct sim_machine **ret,
                     struct gp_err *err)
{
    char base[GP_PATH_SIZE], name[64], dir[GP_PATH_SIZE], path[GP_PATH_SIZE];
    const char *driver;
    uint64_t count;
    int result = split_driver(spec, base, &driver, err);
    if (result < 0)
        return result;
    size_t len = strlen(base);
    if (strchr(base, '/') || (len > 5 && strcmp(base + len - 5, ".json") == 0))
        return sim_machine_load_as(base, 0, driver, ret, err);
    const bool is_spec = split_spec(base, name, &count);
    result = sim_machine_directory(home, dir, sizeof(dir), err);
    if (result < 0)
        return result;
    if (!is_spec)
        return gp_err_set(err, GP_EUSAGE,
                          "unknown simulated machine '%.60s'%s: expected a name, a name with a "
                          "count from x1 to x%d, or a file",
                          base, hint_of(dir, base).text, SIM_MAX_DEVICES);
    int n = snprintf(path, sizeof(path), "%s/%s.json", dir, name);
    if (n < 0 || (size_t)n >= sizeof(path) || access(path, R_OK) != 0)
        return gp_err_set(err, GP_EUSAGE,
                          "unknown simulated machine '%s'%s; for a list: gpulse sim list", name,
                          hint_of(dir, name).text);
    return sim_machine_load_as(path, count, driver, ret, err);
}
