/* gpulse top: its own program, because it needs curses and nobody else does. */
#include "cmd/top.h"
#include "cmd/commands.h"
#include "cmd/companion.h"

#include "out/procs.h"

static int top_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_top_options o = {0};
    return gp_companion_run(&gp_cmd_top, "gpulse-top", &o, false, argc, argv, err);
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
