#include "cmd/output.h"

#include "base/err.h"

#include <string.h>

static bool rotates(const struct gp_output_options *o)
{
    return o->rotate_size || o->rotate_age_ns;
}

int gp_output_check(const struct gp_output_options *o, struct gp_err *err)
{
    if (o->file && strcmp(o->file, "-") == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "--output needs a file name; omit it to write to standard output");
    if (o->keep != GP_OUTFILE_KEEP && !rotates(o))
        return gp_err_set(err, GP_EUSAGE, "--keep needs --rotate-size or --rotate-age");
    if (o->keep < 1 || o->keep > GP_OUTFILE_KEEP_MAX)
        return gp_err_set(err, GP_EUSAGE, "--keep takes 1 to %d", GP_OUTFILE_KEEP_MAX);
    return 0;
}

struct gp_outfile_config gp_output_config(const struct gp_output_options *o)
{
    return (struct gp_outfile_config){
        .path = o->file,
        .append = o->append,
        .size_max = o->rotate_size,
        .age_max_ns = o->rotate_age_ns,
        .keep = (unsigned)o->keep,
    };
}
