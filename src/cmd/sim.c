/* gpulse sim: a separate program, because it needs an XML parser that no other command does. */
#include "cmd/app.h"
#include "cmd/commands.h"
#include "cmd/habits.h"

#include "base/err.h"
#include "base/io.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "h100x8", "t4,driver=470": a machine, where a command is expected. */
static bool is_machine(const char *word)
{
    char path[GP_PATH_SIZE];
    char name[80];
    const size_t all = strcspn(word, ",");
    size_t n = all;
    while (n > 0 && isdigit((unsigned char)word[n - 1]))
        n--;
    n = n > 1 && n < all && word[n - 1] == 'x' ? n - 1 : all;
    (void)snprintf(name, sizeof(name), "machines/%.*s.json", (int)(n < 60 ? n : 60), word);
    return n > 0 && !strchr(word, '/') && gp_io_find_companion("sim", name, path, NULL) == 0;
}

static int sim_main(int argc, char **argv, struct gp_err *err)
{
    static char path[GP_PATH_SIZE];
    if (argc > 1 && is_machine(argv[1]))
        return gp_err_set(err, GP_EUSAGE, "'%.60s' is a machine; try gpulse --sim %.60s COMMAND",
                          argv[1], argv[1]);
    int r = argc > 1 ? gp_habit_check_words(gp_cmd_sim.name, 1, argv + 1, err) : 0;
    if (r < 0)
        return r;
    r = gp_io_find_companion("sim", "gpulse-sim", path, err);
    if (r < 0)
        return r;
    if (gp_common()->sim)
        (void)setenv("GPULSE_SIM", gp_common()->sim, 1); /* gpulse --sim M sim …: its -m */
    if (gp_common()->sim_still)
        (void)setenv("GPULSE_SIM_STILL", "1", 1);
    argv[0] = path; /* so that a load is named gpulse-sim in process lists */
    (void)execv(path, argv);
    return gp_err_set(err, GP_EFAIL, "cannot run '%s': %s", path, strerror(errno));
}

const struct gp_cmd gp_cmd_sim = {
    .name = "sim",
    .group = "Without a GPU",
    .summary = "simulate machines, jobs and faults",
    .usage = "COMMAND [options]",
    .description =
        "Simulated GPUs that answer like real ones: to try gpulse, dashboards and scripts, and for "
        "tests. See gpulse sim --help.",
    .raw_rest = true,
    .run = sim_main,
};
