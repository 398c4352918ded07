/* The preferences of the monitor. One table (prefs.def) feeds the command line, the configuration
 * file and the setup screen; values have the same syntax in all three. */
#ifndef GP_TUI_PREFS_H
#define GP_TUI_PREFS_H

#include "base/io.h"
#include "tui/gpu_order.h"
#include "tui/graph.h"
#include "tui/layout.h"
#include "tui/theme_file.h"

struct gp_err;
struct gp_strbuf;

enum gp_pref_type {
    GP_PREF_SWITCH,   /* bool: yes or no */
    GP_PREF_CHOICE,   /* int: index into the choices */
    GP_PREF_DURATION, /* uint64_t: nanoseconds */
    GP_PREF_TEXT,     /* char[GP_PREF_TEXT_SIZE] */
    GP_PREF_MODE,     /* int: index into the choices; the option alone means yes */
    GP_PREF_NAME,     /* char[GP_PREF_TEXT_SIZE]: one of the choices, or the name of a file */
};

enum gp_pref {
#define PREF(id, field, type, letter, name, argument, choices, help) GP_PREF_##id,
#include "tui/prefs.def"
#undef PREF
    GP_PREF__COUNT,
};

enum { GP_PREF_TEXT_SIZE = 160 }; /* with its name it fits into a line that inih can read */

enum gp_keys_pref { GP_KEYS_HTOP, GP_KEYS_VI };
enum gp_tree_pref { GP_TREE_NO, GP_TREE_YES, GP_TREE_USER, GP_TREE_JOB, GP_TREE__COUNT };

struct gp_prefs {
    uint64_t interval_ns;
    int view;   /* enum gp_density */
    int series; /* enum gp_series */
    int graph;  /* 1: blocks */
    int host;   /* enum gp_host_pref */
    int keys;   /* enum gp_keys_pref */
    /* enum gp_gpu_order_by */
    int gpu_order;
    char sort[GP_PREF_TEXT_SIZE], columns[GP_PREF_TEXT_SIZE], filter[GP_PREF_TEXT_SIZE];
    char theme[GP_PREF_TEXT_SIZE];
    int tree; /* enum gp_tree_pref */
    char presets[GP_PREF_TEXT_SIZE];
    int first; /* 1: the processes are above the GPUs */
    bool per_gpu, gpus, graphs, processes, alerts, mouse, ascii, sync, read_only;
};

struct gp_pref_info {
    const char *name, *choices, *help;
    enum gp_pref_type type;
    size_t offset;
};

extern const struct gp_pref_info gp_pref_table[GP_PREF__COUNT];

void gp_prefs_init(struct gp_prefs *prefs);

/* Parses a value. GP_EUSAGE describes the expected values. */
int gp_pref_set(struct gp_prefs *prefs, enum gp_pref pref, const char *text,
                struct gp_err *err) GP_MUST_CHECK;

/* Appends the value in the syntax of gp_pref_set(). */
void gp_pref_format(struct gp_strbuf *sb, const struct gp_prefs *prefs, enum gp_pref pref);

/* Steps a switch, a choice or a duration to its next or previous value. Texts do not change. */
void gp_pref_step(struct gp_prefs *prefs, enum gp_pref pref, bool forward);
/* Steps a name to the next or previous one of these words; to the first if it is none of them. */
void gp_pref_step_name(struct gp_prefs *prefs, enum gp_pref pref, const char *words, bool forward);

/* The file: $XDG_CONFIG_HOME/gpulse/config.ini, or ~/.config/gpulse/config.ini. False without such
 * a directory. */
bool gp_prefs_path(char ret[GP_PATH_SIZE]);

/* Loads the section [top] of a file. Unknown names and bad values are skipped, and err describes
 * the first of them. A missing file is no error. Fails with GP_EUSAGE or GP_EIO. */
int gp_prefs_load(struct gp_prefs *prefs, const char *path, struct gp_err *err) GP_MUST_CHECK;

/* Rewrites the section [top] atomically; the rest of the file stays unchanged. Fails with
 * GP_EIO. */
int gp_prefs_save(const struct gp_prefs *prefs, const char *path, struct gp_err *err) GP_MUST_CHECK;

#endif
