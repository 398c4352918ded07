#include "tui/theme.h"

enum {
    BLACK,
    RED,
    GREEN,
    YELLOW,
    BLUE,
    MAGENTA,
    CYAN,
    WHITE,
    OWN = -1,
    BRIGHT = 8, /* offset to the bright colors, if there are 16 */
    ORANGE = 208,
    SKY = 39,
    BOLD = GP_ATTR_BOLD,
    REVERSE = GP_ATTR_REVERSE,
    UNDERLINE = GP_ATTR_UNDERLINE,
};

/* The fourth number is the color on a terminal with eight colors, the fifth the attribute without
 * any. Color never carries a meaning alone. */
static const struct gp_look looks[GP_THEME__COUNT][GP_INK__COUNT] =
    {
        [GP_THEME_DEFAULT] =
            {
                [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
                [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
                [GP_INK_DIM] = {CYAN, OWN, 0, CYAN, 0},
                [GP_INK_TITLE] = {BLUE, OWN, BOLD, BLUE, BOLD},
                [GP_INK_LOW] = {GREEN, OWN, 0, GREEN, 0},
                [GP_INK_MEDIUM] = {YELLOW, OWN, 0, YELLOW, 0},
                [GP_INK_HIGH] = {RED, OWN, BOLD, RED, BOLD},
                [GP_INK_CRITICAL] = {RED, OWN, REVERSE, RED, REVERSE},
                [GP_INK_STALE] = {MAGENTA, OWN, 0, MAGENTA, UNDERLINE},
                [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
                [GP_INK_TAGGED] = {YELLOW, OWN, BOLD, YELLOW, BOLD},
                [GP_INK_KEY] = {CYAN, OWN, BOLD, CYAN, BOLD},
            },
        [GP_THEME_MONO] =
            {
                [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
                [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
                [GP_INK_DIM] = {OWN, OWN, 0, OWN, 0},
                [GP_INK_TITLE] = {OWN, OWN, BOLD, OWN, BOLD},
                [GP_INK_LOW] = {OWN, OWN, 0, OWN, 0},
                [GP_INK_MEDIUM] = {OWN, OWN, 0, OWN, 0},
                [GP_INK_HIGH] = {OWN, OWN, BOLD, OWN, BOLD},
                [GP_INK_CRITICAL] = {OWN, OWN, REVERSE, OWN, REVERSE},
                [GP_INK_STALE] = {OWN, OWN, UNDERLINE, OWN, UNDERLINE},
                [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
                [GP_INK_TAGGED] = {OWN, OWN, BOLD, OWN, BOLD},
                [GP_INK_KEY] = {OWN, OWN, BOLD, OWN, BOLD},
            },
        [GP_THEME_LIGHT] =
            {
                /* Yellow and cyan are unreadable on white. */
                [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
                [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
                [GP_INK_DIM] = {BRIGHT + BLACK, OWN, 0, BLUE, 0},
                [GP_INK_TITLE] = {BLUE, OWN, BOLD, BLUE, BOLD},
                [GP_INK_LOW] = {28, OWN, 0, GREEN, 0},
                [GP_INK_MEDIUM] = {94, OWN, 0, MAGENTA, 0},
                [GP_INK_HIGH] = {124, OWN, BOLD, RED, BOLD},
                [GP_INK_CRITICAL] = {124, OWN, REVERSE, RED, REVERSE},
                [GP_INK_STALE] = {MAGENTA, OWN, 0, MAGENTA, UNDERLINE},
                [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
                [GP_INK_TAGGED] = {94, OWN, BOLD, MAGENTA, BOLD},
                [GP_INK_KEY] = {BLUE, OWN, BOLD, BLUE, BOLD},
            },
        [GP_THEME_SAFE] =
            {
                [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
                [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
                [GP_INK_DIM] = {BRIGHT + BLACK, OWN, 0, OWN, 0},
                [GP_INK_TITLE] = {SKY, OWN, BOLD, BLUE, BOLD},
                [GP_INK_LOW] = {SKY, OWN, 0, BLUE, 0},
                [GP_INK_MEDIUM] = {OWN, OWN, 0, OWN, 0},
                [GP_INK_HIGH] = {ORANGE, OWN, BOLD, YELLOW, BOLD},
                [GP_INK_CRITICAL] = {ORANGE, OWN, REVERSE, YELLOW, REVERSE},
                [GP_INK_STALE] = {OWN, OWN, UNDERLINE, OWN, UNDERLINE},
                [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
                [GP_INK_TAGGED] = {ORANGE, OWN, BOLD, YELLOW, BOLD},
                [GP_INK_KEY] = {SKY, OWN, BOLD, BLUE, BOLD},
            },
        [GP_THEME_CONTRAST] =
            {
                [GP_INK_PLAIN] = {BRIGHT + WHITE, BLACK, 0, WHITE, 0},
                [GP_INK_STRONG] = {BRIGHT + WHITE, BLACK, BOLD, WHITE, BOLD},
                [GP_INK_DIM] = {BRIGHT + WHITE, BLACK, 0, WHITE, 0},
                [GP_INK_TITLE] = {BRIGHT + CYAN, BLACK, BOLD, CYAN, BOLD},
                [GP_INK_LOW] = {BRIGHT + GREEN, BLACK, BOLD, GREEN, 0},
                [GP_INK_MEDIUM] = {BRIGHT + YELLOW, BLACK, BOLD, YELLOW, 0},
                [GP_INK_HIGH] = {BRIGHT + RED, BLACK, BOLD, RED, BOLD},
                [GP_INK_CRITICAL] = {BRIGHT + WHITE, RED, BOLD, WHITE, REVERSE},
                [GP_INK_STALE] = {BRIGHT + MAGENTA, BLACK, UNDERLINE, MAGENTA, UNDERLINE},
                [GP_INK_SELECTED] = {BLACK, BRIGHT + WHITE, BOLD, BLACK, REVERSE},
                [GP_INK_TAGGED] = {BRIGHT + YELLOW, BLACK, BOLD, YELLOW, BOLD},
                [GP_INK_KEY] = {BRIGHT + CYAN, BLACK, BOLD, CYAN, BOLD},
            },
};

const struct gp_look *gp_theme_looks(enum gp_theme theme)
{
    return looks[theme];
}
