/* What can be chosen about the monitor. One table (prefs.def) feeds the command line, the file and
 * the setup screen; values are written alike in all three. */
#ifndef GP_TUI_PREFS_H
#define GP_TUI_PREFS_H

#include "base/io.h"
#include "tui/graph.h"
#include "tui/layout.h"
#include "tui/theme.h"

struct gp_err;
struct gp_strbuf;

enum gp_pref_type {
    GP_PREF_SWITCH,   /* bool: yes or no */
    GP_PREF_CHOICE,   /* int: the place in the choices */
    GP_PREF_DURATION, /* uint64_t: nanoseconds */
    GP_PREF_TEXT,     /* char[GP_PREF_TEXT_SIZE] */
};

enum gp_pref {
#define PREF(id, field, type, letter, name, argument, choices, help) GP_PREF_##id,
#include "tui/prefs.def"
#undef PREF
    GP_PREF__COUNT,
};

enum { GP_PREF_TEXT_SIZE = 160 }; /* with its name it fits in a line that inih reads */

enum gp_host_pref { GP_HOST_AUTO, GP_HOST_YES, GP_HOST_NO };
enum gp_keys_pref { GP_KEYS_HTOP, GP_KEYS_VI };

struct gp_prefs {
    uint64_t interval_ns;
    int view;   /* enum gp_density */
    int series; /* enum gp_series */
    int graph;  /* 1: blocks */
    int host;   /* enum gp_host_pref */
    int theme;  /* enum gp_theme */
    int keys;   /* enum gp_keys_pref */
    char sort[GP_PREF_TEXT_SIZE], columns[GP_PREF_TEXT_SIZE], filter[GP_PREF_TEXT_SIZE];
    bool tree, per_gpu, gpus, processes, alerts, mouse, ascii, sync, read_only;
};

struct gp_pref_info {
    const char *name, *choices, *help;
    enum gp_pref_type type;
    size_t offset;
};

extern const struct gp_pref_info gp_pref_table[GP_PREF__COUNT];

void gp_prefs_init(struct gp_prefs *prefs);

/* Takes a value from text. GP_EUSAGE says what it takes. */
int gp_pref_set(struct gp_prefs *prefs, enum gp_pref pref, const char *text,
                struct gp_err *err) GP_MUST_CHECK;

/* Appends the value as gp_pref_set() takes it. */
void gp_pref_format(struct gp_strbuf *sb, const struct gp_prefs *prefs, enum gp_pref pref);

/* The next value of a switch, a choice or a duration, or the one before. Text stays. */
void gp_pref_step(struct gp_prefs *prefs, enum gp_pref pref, bool forward);

/* The file: $XDG_CONFIG_HOME/gpulse/config.ini, or below ~/.config. False if there is no such
 * place. */
bool gp_prefs_path(char ret[GP_PATH_SIZE]);

/* Takes the part [top] of a file. What it does not know, or cannot take, is left out, and err tells
 * of the first such line; a file that is not there is no error. GP_EUSAGE, GP_EIO. */
int gp_prefs_load(struct gp_prefs *prefs, const char *path, struct gp_err *err) GP_MUST_CHECK;

/* Writes the part [top] anew, at once or not at all; the rest of the file stays as it is. GP_EIO.
 */
int gp_prefs_save(const struct gp_prefs *prefs, const char *path, struct gp_err *err) GP_MUST_CHECK;

#endif
