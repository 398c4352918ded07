/* Themes of the user: files NAME.theme with lines "LOOK = COLOR". */
#ifndef GP_TUI_THEME_FILE_H
#define GP_TUI_THEME_FILE_H

#include "base/io.h"
#include "tui/theme.h"

struct gp_err;
struct gp_strbuf;

enum { GP_THEME_NAME_SIZE = 33, GP_THEME_FILE_MAX = 16 << 10 };

/* A built-in theme, of which a file may replace some looks. */
struct gp_colors {
    enum gp_theme theme;
    uint32_t replaced; /* bit 1 << ink: use the look below */
    struct gp_look looks[GP_INK__COUNT];
};

const struct gp_look *gp_colors_look(const struct gp_colors *colors, enum gp_ink ink,
                                     bool on_light);

/* The words for the inks in a file, GP_INK__COUNT of them. */
extern const char *const gp_ink_words[GP_INK__COUNT];

/* The folder: $XDG_CONFIG_HOME/gpulse/themes, or ~/.config/gpulse/themes. False without such a
 * directory. */
bool gp_themes_path(char ret[GP_PATH_SIZE]);

/* Whether this can be the name of a file with a theme. */
bool gp_theme_is_name(const char *name);

/* Parses the text of a file; `path` is for errors. GP_EFORMAT names the line, the reason and what
 * to write instead. */
int gp_theme_parse(const char *text, const char *path, struct gp_colors *ret,
                   struct gp_err *err) GP_MUST_CHECK;

/* The theme with this name: a built-in one, or a file of the folder (NULL: there is none). On error
 * *ret is the default theme: GP_EUSAGE if there is no such theme; GP_EFORMAT; GP_EPERM for a file
 * or folder that others own or can change, GP_EIO for one that cannot be read. Never waits for a
 * pipe. */
int gp_theme_load(const char *folder, const char *name, struct gp_colors *ret,
                  struct gp_err *err) GP_MUST_CHECK;

/* Appends the names of the files, sorted, each after a blank. */
void gp_themes_add_names(struct gp_strbuf *sb, const char *folder);

#endif
