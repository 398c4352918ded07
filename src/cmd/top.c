/* gpulse top: its own program, because it needs curses and nobody else does. */
#include "cmd/top.h"
#include "cmd/app.h"
#include "cmd/commands.h"

#include "base/err.h"
#include "base/io.h"
#include "out/procs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The words of gpulse-top: those of this command, and the common options that stand before it. */
struct words {
    char path[GP_PATH_SIZE];
    char texts[4][2048];
    char *argv[];
};

static void add_option(struct words *words, int *count, size_t at, const char *name,
                       const char *value)
{
    if (!value)
        return;
    (void)snprintf(words->texts[at], sizeof(words->texts[at]), "--%s=%s", name, value);
    words->argv[(*count)++] = words->texts[at];
}

static int run(struct words *words, int argc, char **argv, struct gp_err *err)
{
    /* before they are parsed together with what stands behind the command */
    const struct gp_common before = *gp_common();
    struct gp_top_options o = {0};
    char timeout[32];
    int positional;
    bool done;
    int count = 1;
    (void)snprintf(timeout, sizeof(timeout), "%lluns", (unsigned long long)before.timeout_ns);
    add_option(words, &count, 0, "id", before.id);
    add_option(words, &count, 1, "timeout", before.timeout_ns ? timeout : NULL);
    add_option(words, &count, 2, "color", before.color);
    if (before.release_when_idle) {
        (void)snprintf(words->texts[3], sizeof(words->texts[3]), "--release-when-idle");
        words->argv[count++] = words->texts[3];
    }
    for (int i = 1; i < argc; i++)
        words->argv[count++] = argv[i];
    int r = gp_app_parse(&gp_cmd_top, argc, argv, &o, &positional, &done, err);
    if (r < 0 || done)
        return r;
    if (positional > 0)
        return gp_err_set(err, GP_EUSAGE, "top takes no arguments, got '%.80s'; for GPUs use --id",
                          argv[1]);
    r = gp_io_find_companion("", "gpulse-top", words->path, err);
    if (r < 0)
        return r;
    words->argv[0] = words->path;
    gp_app_export();
    (void)execv(words->path, words->argv);
    return gp_err_set(err, GP_EFAIL, "cannot run '%s': %s", words->path, strerror(errno));
}

static int top_main(int argc, char **argv, struct gp_err *err)
{
    struct words *words = calloc(1, sizeof(*words) + ((size_t)argc + 6) * sizeof(char *));
    if (!words)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    int r = run(words, argc, argv, err);
    free(words);
    return r;
}

static const char keys[] =
#define KEY(action, first, second, third, names, help) names "\t" help "\n"
#define VI(action, key)
#include "tui/keys.def"
#undef KEY
#undef VI
    ;

static const char columns[] =
#define X(id, word, title, width, rank, grows, left, kind, field, shown, help) word "\t" help "\n"
    GP_PROC_COLUMNS(X)
#undef X
    ;

const struct gp_cmd gp_cmd_top = {
    .name = "top",
    .summary = "watch GPUs and processes live, in the terminal",
    .usage = "[options]",
    .description =
        "The GPUs in as much detail as there is room for, below them the processes; ? shows all "
        "keys. A GPU that does not answer holds nothing up: it says so in its row.\n\n"
        "Every option with a value can be kept: C shows them all, S writes them into "
        "~/.config/gpulse/config.ini (or below $XDG_CONFIG_HOME), part [top], as NAME = VALUE. "
        "Options on the command line come before the file.",
    .examples = "gpulse top\tall GPUs\n"
                "gpulse top -i 0,1 --user alice --sort sm,user\tsome of both\n"
                "gpulse top --tree --columns pid,user,gpu,memory,container,command\tparents too\n"
                "gpulse top --plain --on-change\tlines, for screen readers\n"
                "gpulse --sim h100x8 top\ta simulated machine\n",
    .keys = keys,
    .columns = columns,
    .options = gp_top_table,
    .run = top_main,
};
