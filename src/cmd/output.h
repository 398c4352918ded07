/* What commands that write to a file share: its options, as rows of their tables. */
#ifndef GP_CMD_OUTPUT_H
#define GP_CMD_OUTPUT_H

#include "base/cli.h"
#include "base/outfile.h"

struct gp_err;

struct gp_output_options {
    const char *file; /* NULL: standard output */
    bool append;
    uint64_t rotate_size;
    uint64_t rotate_age_ns;
    uint64_t keep;
};

/* clang-format off */
#define GP_OUTPUT_DEFAULTS {.keep = GP_OUTFILE_KEEP}

/* The rows, for an options type with a gp_output_options named `member`; append_note is added to
 * the help of --append. */
#define GP_OUTPUT_ROWS(type, member, append_note)                                                  \
    {'o', "output", NULL, GP_OPT_STRING, "FILE", .complete = GP_COMPLETE_FILE,                     \
     .offset = offsetof(type, member.file),                                                        \
     .help = "write to FILE instead of standard output; an existing FILE is renamed "              \
             "to FILE.1"},                                                                         \
    {0, "append", NULL, GP_OPT_FLAG, .offset = offsetof(type, member.append), .needs = "output",   \
     .help = "with --output: append to FILE" append_note},                                         \
    {0, "rotate-size", NULL, GP_OPT_SIZE, "SIZE", .offset = offsetof(type, member.rotate_size),    \
     .needs = "output",                                                                            \
     .help = "with --output: start a new file before FILE exceeds SIZE; the old one becomes "      \
             "FILE.1"},                                                                            \
    {0, "rotate-age", NULL, GP_OPT_DURATION, "TIME",                                               \
     .offset = offsetof(type, member.rotate_age_ns), .needs = "output",                            \
     .help = "with --output: start a new file every TIME"},                                        \
    {0, "keep", NULL, GP_OPT_U64, "N", .offset = offsetof(type, member.keep),                      \
     .help = "number of old files to keep (default 5)"}
/* clang-format on */

/* GP_EUSAGE: options that cannot be combined. */
int gp_output_check(const struct gp_output_options *o, struct gp_err *err) GP_MUST_CHECK;

struct gp_outfile_config gp_output_config(const struct gp_output_options *o);

#endif
