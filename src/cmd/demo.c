/* gpulse demo: gpulse top on a simulated machine, with a guide. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/companion.h"
#include "cmd/top.h"

#include "base/err.h"

#include <unistd.h>

static const char machine[] = "sick";

static int demo_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_top_options o = {0};
    int positional;
    bool done;
    char name[] = "top";
    char config[] = "--config=none"; /* the keys of the guide, whatever the user prefers */
    char guide[] = "--guide";
    char *top_argv[] = {name, config, guide, NULL};
    int r = gp_app_parse(&gp_cmd_demo, argc, argv, NULL, &positional, &done, err);
    if (r < 0 || done)
        return r;
    r = gp_app_refuse_words(&gp_cmd_demo, positional, argv, err);
    if (r < 0)
        return r;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return gp_err_set(err, GP_EUSAGE,
                          "the demo needs a terminal; without one, try gpulse --sim %s status",
                          machine);
    if (!gp_common()->sim)
        gp_common()->sim = machine;
    return gp_companion_run(&gp_cmd_top, "gpulse-top", &o, false, 3, top_argv, err);
}

const struct gp_cmd gp_cmd_demo = {
    .name = "demo",
    .summary = "take a guided tour of gpulse top on a simulated machine",
    .usage = "[options]",
    .description =
        "Opens gpulse top on a simulated machine with some problems: a lost GPU, memory errors, a "
        "hot GPU, and GPU memory held by an orphaned process. The last line of the screen says "
        "which key to try next. It takes a minute; q quits. Nothing on this machine changes.\n"
        "\n"
        "--sim chooses another machine. The preferences of gpulse top are not used.",
    .examples = "gpulse demo\ta one-minute tour\n"
                "gpulse --sim h100x8 demo\tthe same on a healthy machine\n",
    .run = demo_main,
};
