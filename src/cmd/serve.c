/* gpulse serve: a separate program, because it needs the tables of explain, and no other command is
 * a client of libgpulse. */
#include "cmd/serve.h"
#include "cmd/commands.h"
#include "cmd/companion.h"

static int serve_main(int argc, char **argv, struct gp_err *err)
{
    struct gp_serve_options o = {.stdio = false};
    return gp_companion_run(&gp_cmd_serve, "gpulse-serve", &o, false, argc, argv, err);
}

const struct gp_cmd gp_cmd_serve = {
    .name = "serve",
    .summary = "answer other programs' requests (JSON-RPC on stdin and stdout)",
    .usage = "--stdio [options]",
    .description =
        "For programs in any language: start it once, write a request per line, and read an answer "
        "per line. The messages are JSON-RPC 2.0; docs/schema.md describes them. Notifications are "
        "messages without an id, sent unasked.\n"
        "\n"
        "Reading: version, metrics (all fields), sample (as gpulse query), processes (as gpulse "
        "ps), "
        "watch and events (notifications until unwatch), settings, explain, estimate (the memory "
        "of a model). Acting: pick, reserve and release, signal, change (as gpulse set).\n"
        "\n"
        "Reservations belong to gpulse serve: they end with it, or with release. signal needs pid "
        "and start as processes lists them, so that it never reaches another process.\n"
        "\n"
        "The driver is opened at the first request, and closed after 10 s without one, unless "
        "a GPU does not respond. A GPU that hangs delays an answer by the timeout, but only "
        "once for requests with the same parameters. gpulse serve ends when its input ends.",
    .examples =
        "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sample\"}' | gpulse serve --stdio\tone "
        "sample of all GPUs\n",
    .options = gp_serve_table,
    .no_loop = true,
    .run = serve_main,
};
