#include "cmd/tape_option.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/when.h"
#include "tape/control.h"
#include "tape/source.h"

#include <dlfcn.h>
#include <string.h>

/* Only what shows things can show a recording. */
int gp_tape_check_option(const struct gp_cmd *cmd, const char *other, struct gp_err *err)
{
    if (!cmd->takes_tape)
        return gp_err_set(err, GP_EUSAGE,
                          "gpulse %s works on this machine, not on a recording: --tape does not "
                          "apply",
                          cmd->name);
    return other ? gp_err_set(err, GP_EUSAGE, "--tape cannot be combined with --%s", other) : 0;
}

/* The reader of recordings is a library of its own: few uses of a command need SQLite. */
static int open_library(const char *file, int64_t at_us, struct gp_source **ret, struct gp_err *err)
{
    char path[GP_PATH_SIZE];
    int r = gp_io_find_companion("", "libgpulse-tape.so", path, err);
    if (r < 0)
        return r;
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    gp_tape_source_open *open = NULL;
    void *symbol = library ? dlsym(library, "gpulse_tape_source") : NULL;
    memcpy(&open, &symbol, sizeof(symbol));
    if (!open)
        return gp_err_set(err, GP_EFAIL, "cannot load '%.200s': %s", path, dlerror());
    return open(file, at_us, ret, err);
}

int gp_tape_open_option(const char *file, const char *at, struct gp_source **ret,
                        struct gp_err *err)
{
    uint64_t at_ns = 0;
    if (!at || strcmp(at, "end") == 0)
        return open_library(file, GP_TAPE_AT_END, ret, err);
    if (strcmp(at, "start") == 0)
        return open_library(file, GP_TAPE_AT_START, ret, err);
    if (!gp_parse_since(at, gp_clock_wall_ns(), &at_ns))
        return gp_err_set(err, GP_EUSAGE,
                          "--at: '%.60s' is not a time; try 03:10, \"yesterday 03:10\", "
                          "2026-11-26T03:10, 2h (ago), start or end",
                          at);
    return open_library(file, (int64_t)(at_ns / GP_NS_PER_US), ret, err);
}
