/* gpulse replay: the live monitor on a recording, from its beginning. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/companion.h"
#include "cmd/top.h"

#include "base/err.h"

#include <stdio.h>

struct replay_options {
    const char *at, *speed;
};

#define OPT(field) offsetof(struct replay_options, field)

static const struct gp_opt options[] = {
    {0, "at", NULL, GP_OPT_STRING, "TIME", .offset = OPT(at),
     .help = "begin at this time of the recording, for example 03:10, \"yesterday 03:10\", "
             "2026-11-26T03:10, or \"2h ago\" (default: its beginning)"},
    {0, "speed", NULL, GP_OPT_STRING, "N", .offset = OPT(speed),
     .help = "play N times as fast as it was recorded, from 0.25 to 64 (default 1)"},
    GP_OPT_END,
};

static int run_top(const struct replay_options *o, struct gp_err *err)
{
    struct gp_top_options top = {.count = 0};
    char speed[64];
    char name[] = "top";
    char *argv[] = {name, speed, NULL};
    (void)snprintf(speed, sizeof(speed), "--speed=%.40s", o->speed);
    return gp_companion_run(&gp_cmd_top, "gpulse-top", &top, false, 2, argv, err);
}

static int replay_main(int argc, char **argv, struct gp_err *err)
{
    struct replay_options o = {.at = "start", .speed = "1"};
    double speed;
    int words;
    bool done;
    if (gp_common()->tape)
        return gp_err_set(err, GP_EUSAGE,
                          "give the recording after the command: gpulse replay %.200s",
                          gp_common()->tape);
    int r = gp_app_parse(&gp_cmd_replay, argc, argv, &o, &words, &done, err);
    if (r < 0 || done)
        return r;
    if (words > 1)
        return gp_err_set(err, GP_EUSAGE, "replay shows one recording; got '%.80s' as well",
                          argv[2]);
    if (words == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "missing recording; usage: gpulse replay FILE [--at TIME] [--speed N]");
    if (!gp_top_parse_speed(o.speed, &speed))
        return gp_err_set(err, GP_EUSAGE, "--speed: '%.40s' is not a number from 0.25 to 64",
                          o.speed);
    gp_common()->tape = argv[1];
    gp_common()->at = o.at;
    return run_top(&o, err);
}

const struct gp_cmd gp_cmd_replay = {
    .name = "replay",
    .summary = "play a recording in the live monitor",
    .usage = "FILE [options]",
    .description =
        "Shows a recording of gpulse record as gpulse top shows a machine, from its beginning or "
        "from the time --at. [ and ] step through the samples, . and , jump to the next and the "
        "previous event, g goes to a time, Space pauses, + and - change the speed; ? lists all "
        "keys. The line at the bottom shows the whole recording: how busy the GPUs were, errors "
        "(!) and other events (▲).\n"
        "\n"
        "Of what is older than the samples, summaries are shown. What was not recorded is shown as "
        "unknown. At the end it waits, and continues if the recording is still being written.",
    .examples = "gpulse replay night.tape\tfrom the beginning\n"
                "gpulse replay night.tape --at 03:10\tfrom then on\n"
                "gpulse replay night.tape --speed 10\tten times as fast\n",
    .options = options,
    .no_loop = true,
    .run = replay_main,
};
