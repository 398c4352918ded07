#include "cmd/top.h"

#include "base/parse.h"

#define OPT(field) offsetof(struct gp_top_options, field)

/* Preferences are validated after all were read, because they may also come from the file. */
#define GP_OPT_OF_SWITCH GP_OPT_CHOICE
#define GP_OPT_OF_CHOICE GP_OPT_CHOICE
#define GP_OPT_OF_MODE GP_OPT_CHOICE
#define GP_OPT_OF_DURATION GP_OPT_STRING
#define GP_OPT_OF_TEXT GP_OPT_STRING
#define GP_OPT_OF_NAME GP_OPT_STRING
#define FALLBACK_SWITCH "yes"
#define FALLBACK_CHOICE NULL
#define FALLBACK_MODE "yes"
#define FALLBACK_DURATION NULL
#define FALLBACK_TEXT NULL
#define FALLBACK_NAME NULL
#define COMPLETE_SWITCH GP_COMPLETE_NONE
#define COMPLETE_CHOICE GP_COMPLETE_NONE
#define COMPLETE_MODE GP_COMPLETE_NONE
#define COMPLETE_DURATION GP_COMPLETE_NONE
#define COMPLETE_TEXT GP_COMPLETE_NONE
#define COMPLETE_NAME GP_COMPLETE_THEMES
#define TAKES_DASH_SWITCH false
#define TAKES_DASH_CHOICE false
#define TAKES_DASH_MODE false
#define TAKES_DASH_DURATION false
#define TAKES_DASH_NAME false
#define TAKES_DASH_TEXT true /* --sort -memory */

const struct gp_opt gp_top_table[] = {
#define PREF(id, field, type, letter, name, argument, choices, help)                               \
    {letter,                                                                                       \
     name,                                                                                         \
     NULL,                                                                                         \
     GP_OPT_OF_##type,                                                                             \
     argument,                                                                                     \
     FALLBACK_##type,                                                                              \
     choices,                                                                                      \
     help,                                                                                         \
     .offset = offsetof(struct gp_top_options, prefs) + GP_PREF_##id * sizeof(const char *),       \
     .complete = COMPLETE_##type,                                                                  \
     .takes_dash = TAKES_DASH_##type},
#include "tui/prefs.def"
#undef PREF
    GP_PROC_CHOICE_ROWS(struct gp_top_options, choice),
    {0, "plain", NULL, GP_OPT_FLAG, .offset = OPT(plain), .group = "Other",
     .help = "print lines, for screen readers and dumb terminals (every 10s unless --interval is "
             "given)"},
    {0, "on-change", NULL, GP_OPT_FLAG, .offset = OPT(on_change),
     .help = "with --plain: only lines that changed"},
    {'c', "count", NULL, GP_OPT_U64, "N", .offset = OPT(count), .least = 1,
     .help = "with --plain: stop after N samples"},
    {0, "config", NULL, GP_OPT_STRING, "FILE", .offset = OPT(config), .complete = GP_COMPLETE_FILE,
     .help = "preferences file, or 'none' for no file (default ~/.config/gpulse/config.ini)"},
    {0, "guide", NULL, GP_OPT_FLAG, .offset = OPT(guide)},        /* for gpulse demo */
    {0, "speed", NULL, GP_OPT_STRING, "N", .offset = OPT(speed)}, /* for gpulse replay */
    GP_OPT_END,
};

bool gp_top_parse_speed(const char *text, double *ret)
{
    double speed;
    if (!gp_parse_number(text, &speed) || speed < 0.25 || speed > 64)
        return false;
    *ret = speed;
    return true;
}
