/* gpulse sim: a separate program, because it needs an XML parser that no other command does. */
#include "cmd/app.h"
#include "cmd/commands.h"

#include "base/err.h"
#include "base/io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int sim_main(int argc, char **argv, struct gp_err *err)
{
    static char path[GP_PATH_SIZE];
    (void)argc;
    int r = gp_io_find_companion("sim", "gpulse-sim", path, err);
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
