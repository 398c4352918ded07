#include "cmd/serve.h"

const struct gp_opt gp_serve_table[] = {
    {0, "stdio", NULL, GP_OPT_FLAG, .offset = offsetof(struct gp_serve_options, stdio),
     .help = "read requests from standard input, and write to standard output"},
    GP_OPT_END,
};
