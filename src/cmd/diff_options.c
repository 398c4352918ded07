#include "cmd/diff.h"

#include "base/util.h"

#define OPT(field) offsetof(struct gp_diff_options, field)

const struct gp_opt gp_diff_table[] = {
    {'f', "format", NULL, GP_OPT_CHOICE, "FORMAT", .choices = "text json", .offset = OPT(format),
     .help = "output format (default text)"},
    {'a', "all", NULL, GP_OPT_FLAG, .offset = OPT(all),
     .help = "also show what did not change, or too little to matter"},
    GP_OPT_END,
};
