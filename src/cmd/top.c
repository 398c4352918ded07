/* gpulse top: a separate program, because it needs curses and no other command does. */
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
#define PLAY(action, first, second, names, help) names "\tin a recording: " help "\n"
#include "tui/playback.def"
#undef PLAY
    ;

static const char columns[] =
#define X(id, word, title, width, rank, grows, left, kind, field, shown, help) word "\t" help "\n"
    GP_PROC_COLUMNS(X)
#undef X
    ;

const struct gp_cmd gp_cmd_top = {
    .name = "top",
    .group = "Watch",
    .summary = "watch GPUs and processes live",
    .usage = "[options]",
    .description =
        "Shows the GPUs in as much detail as there is room for, and their processes below; ? lists "
        "all keys. A GPU that does not respond does not delay the others: its row says so.\n"
        "\n"
        "Options with a value can be saved: C shows them, S writes them to "
        "~/.config/gpulse/config.ini (or below $XDG_CONFIG_HOME) as NAME = VALUE in section [top]. "
        "The command line takes precedence over the file.\n"
        "\n"
        "The file ~/.config/gpulse/themes/NAME.theme is the theme NAME. A line is NAME = COLOR, "
        "for example load = #5fd7af or trouble = bold red on black. The names are plain, strong, "
        "dim, title, load, held, trouble, critical, stale, selected, tagged, key, memory and "
        "paused. A "
        "color is #rrggbb, 0 to 255, black, red, green, yellow, blue, magenta, cyan, white or "
        "default; bold, underline or reverse may precede it. What the file does not name is as in "
        "the default theme. Without 24-bit colors (COLORTERM=truecolor), the nearest one is shown.",
    .examples = "gpulse top\tall GPUs\n"
                "gpulse top -i 0,1 --user alice --sort sm,user\tsome GPUs, one user\n"
                "gpulse top --tree\tprocesses with their parents\n"
                "gpulse top --plain --on-change\tlines, for screen readers\n"
                "gpulse --sim h100x8 top\ta simulated machine\n",
    .keys = keys,
    .columns = columns,
    .options = gp_top_table,
    .takes_tape = true,
    .run = top_main,
};
