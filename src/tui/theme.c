#include "tui/theme.h"

#include "tui/choices.h"

#include <stdio.h>
#include <string.h>

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
    BOLD = GP_ATTR_BOLD,
    REVERSE = GP_ATTR_REVERSE,
    UNDERLINE = GP_ATTR_UNDERLINE,
};

enum table {
    DARK,
    LIGHT,
    TERMINAL,
    TERMINAL_LIGHT,
    SAFE_DARK,
    SAFE_LIGHT,
    CONTRAST,
    MONO,
    TABLE__COUNT
};

/* The fourth number is the color on a terminal with fewer colors, the fifth the attribute without
 * any. Color never carries a meaning alone. Those above 15 look the same on every terminal: they
 * have a contrast of 4.5 to 1 or more to the backgrounds that the table is for. Trouble and what is
 * worth a look differ in lightness, too, for those who see red and yellow alike. */
/* clang-format off */
static const struct gp_look looks[TABLE__COUNT][GP_INK__COUNT] = {
    [DARK] = {
        [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_DIM] = {246, OWN, 0, CYAN, 0},
        [GP_INK_TITLE] = {110, OWN, BOLD, CYAN, BOLD},
        [GP_INK_LOW] = {79, OWN, 0, GREEN, 0},
        [GP_INK_MEDIUM] = {221, OWN, 0, YELLOW, 0},
        [GP_INK_HIGH] = {203, OWN, BOLD, RED, BOLD},
        [GP_INK_CRITICAL] = {203, OWN, REVERSE, RED, REVERSE | BOLD},
        [GP_INK_STALE] = {180, OWN, 0, OWN, UNDERLINE},
        [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
        [GP_INK_TAGGED] = {221, OWN, BOLD, YELLOW, BOLD},
        [GP_INK_KEY] = {117, OWN, BOLD, CYAN, BOLD},
        [GP_INK_MEMORY] = {141, OWN, 0, MAGENTA, 0},
        [GP_INK_PAUSED] = {221, OWN, REVERSE, YELLOW, REVERSE | BOLD},
    },
    [LIGHT] = {
        [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_DIM] = {241, OWN, 0, OWN, 0},
        [GP_INK_TITLE] = {24, OWN, BOLD, BLUE, BOLD},
        [GP_INK_LOW] = {23, OWN, 0, BLUE, 0},
        [GP_INK_MEDIUM] = {94, OWN, BOLD, OWN, 0},
        [GP_INK_HIGH] = {88, OWN, BOLD, RED, BOLD},
        [GP_INK_CRITICAL] = {88, OWN, REVERSE, RED, REVERSE | BOLD},
        [GP_INK_STALE] = {241, OWN, UNDERLINE, OWN, UNDERLINE},
        [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
        [GP_INK_TAGGED] = {90, OWN, BOLD, MAGENTA, BOLD},
        [GP_INK_KEY] = {25, OWN, BOLD, BLUE, BOLD},
        [GP_INK_MEMORY] = {61, OWN, 0, MAGENTA, 0},
        [GP_INK_PAUSED] = {94, OWN, REVERSE, OWN, REVERSE | BOLD},
    },
    [TERMINAL] = {
        [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_DIM] = {CYAN, OWN, 0, CYAN, 0},
        [GP_INK_TITLE] = {BLUE, OWN, BOLD, BLUE, BOLD},
        [GP_INK_LOW] = {GREEN, OWN, 0, GREEN, 0},
        [GP_INK_MEDIUM] = {YELLOW, OWN, 0, YELLOW, 0},
        [GP_INK_HIGH] = {RED, OWN, BOLD, RED, BOLD},
        [GP_INK_CRITICAL] = {RED, OWN, REVERSE, RED, REVERSE | BOLD},
        [GP_INK_STALE] = {OWN, OWN, UNDERLINE, OWN, UNDERLINE},
        [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
        [GP_INK_TAGGED] = {YELLOW, OWN, BOLD, YELLOW, BOLD},
        [GP_INK_KEY] = {CYAN, OWN, BOLD, CYAN, BOLD},
        [GP_INK_MEMORY] = {MAGENTA, OWN, 0, MAGENTA, 0},
        [GP_INK_PAUSED] = {YELLOW, OWN, REVERSE, YELLOW, REVERSE | BOLD},
    },
    [TERMINAL_LIGHT] = { /* yellow, cyan and green are too light there */
        [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_DIM] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_TITLE] = {BLUE, OWN, BOLD, BLUE, BOLD},
        [GP_INK_LOW] = {BLUE, OWN, 0, BLUE, 0},
        [GP_INK_MEDIUM] = {OWN, OWN, BOLD, OWN, 0},
        [GP_INK_HIGH] = {RED, OWN, BOLD, RED, BOLD},
        [GP_INK_CRITICAL] = {RED, OWN, REVERSE, RED, REVERSE | BOLD},
        [GP_INK_STALE] = {OWN, OWN, UNDERLINE, OWN, UNDERLINE},
        [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
        [GP_INK_TAGGED] = {MAGENTA, OWN, BOLD, MAGENTA, BOLD},
        [GP_INK_KEY] = {BLUE, OWN, BOLD, BLUE, BOLD},
        [GP_INK_MEMORY] = {MAGENTA, OWN, 0, MAGENTA, 0},
        [GP_INK_PAUSED] = {OWN, OWN, REVERSE | BOLD, OWN, REVERSE | BOLD},
    },
    [SAFE_DARK] = {
        [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_DIM] = {246, OWN, 0, OWN, 0},
        [GP_INK_TITLE] = {110, OWN, BOLD, BLUE, BOLD},
        [GP_INK_LOW] = {39, OWN, 0, BLUE, 0},
        [GP_INK_MEDIUM] = {229, OWN, 0, OWN, 0},
        [GP_INK_HIGH] = {208, OWN, BOLD, YELLOW, BOLD},
        [GP_INK_CRITICAL] = {208, OWN, REVERSE, YELLOW, REVERSE | BOLD},
        [GP_INK_STALE] = {OWN, OWN, UNDERLINE, OWN, UNDERLINE},
        [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
        [GP_INK_TAGGED] = {208, OWN, BOLD, YELLOW, BOLD},
        [GP_INK_KEY] = {117, OWN, BOLD, BLUE, BOLD},
        [GP_INK_MEMORY] = {153, OWN, 0, CYAN, 0},
        [GP_INK_PAUSED] = {229, OWN, REVERSE, OWN, REVERSE | BOLD},
    },
    [SAFE_LIGHT] = {
        [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_DIM] = {241, OWN, 0, OWN, 0},
        [GP_INK_TITLE] = {24, OWN, BOLD, BLUE, BOLD},
        [GP_INK_LOW] = {26, OWN, 0, BLUE, 0},
        [GP_INK_MEDIUM] = {OWN, OWN, BOLD, OWN, 0},
        [GP_INK_HIGH] = {94, OWN, BOLD, RED, BOLD},
        [GP_INK_CRITICAL] = {94, OWN, REVERSE, RED, REVERSE | BOLD},
        [GP_INK_STALE] = {OWN, OWN, UNDERLINE, OWN, UNDERLINE},
        [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
        [GP_INK_TAGGED] = {94, OWN, BOLD, RED, BOLD},
        [GP_INK_KEY] = {25, OWN, BOLD, BLUE, BOLD},
        [GP_INK_MEMORY] = {18, OWN, 0, OWN, 0},
        [GP_INK_PAUSED] = {OWN, OWN, REVERSE | BOLD, OWN, REVERSE | BOLD},
    },
    [MONO] = {
        [GP_INK_PLAIN] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_STRONG] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_DIM] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_TITLE] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_LOW] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_MEDIUM] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_HIGH] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_CRITICAL] = {OWN, OWN, REVERSE | BOLD, OWN, REVERSE | BOLD},
        [GP_INK_STALE] = {OWN, OWN, UNDERLINE, OWN, UNDERLINE},
        [GP_INK_SELECTED] = {OWN, OWN, REVERSE, OWN, REVERSE},
        [GP_INK_TAGGED] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_KEY] = {OWN, OWN, BOLD, OWN, BOLD},
        [GP_INK_MEMORY] = {OWN, OWN, 0, OWN, 0},
        [GP_INK_PAUSED] = {OWN, OWN, REVERSE | BOLD, OWN, REVERSE | BOLD},
    },
    [CONTRAST] = {
        [GP_INK_PLAIN] = {231, 16, 0, WHITE, 0},
        [GP_INK_STRONG] = {231, 16, BOLD, WHITE, BOLD},
        [GP_INK_DIM] = {231, 16, 0, WHITE, 0},
        [GP_INK_TITLE] = {51, 16, BOLD, CYAN, BOLD},
        [GP_INK_LOW] = {46, 16, BOLD, GREEN, 0},
        [GP_INK_MEDIUM] = {226, 16, BOLD, YELLOW, 0},
        [GP_INK_HIGH] = {210, 16, BOLD, RED, BOLD},
        [GP_INK_CRITICAL] = {210, 16, REVERSE | BOLD, RED, REVERSE | BOLD},
        [GP_INK_STALE] = {219, 16, UNDERLINE, MAGENTA, UNDERLINE},
        [GP_INK_SELECTED] = {16, 231, BOLD, BLACK, REVERSE},
        [GP_INK_TAGGED] = {226, 16, BOLD, YELLOW, BOLD},
        [GP_INK_KEY] = {51, 16, BOLD, CYAN, BOLD},
        [GP_INK_MEMORY] = {51, 16, BOLD, CYAN, 0},
        [GP_INK_PAUSED] = {226, 16, REVERSE | BOLD, YELLOW, REVERSE | BOLD},
    },
};
/* clang-format on */

/* The tables of a theme on a dark and on a light background. */
static const enum table tables[GP_THEME__COUNT][2] = {
    [GP_THEME_DEFAULT] = {DARK, LIGHT},
    [GP_THEME_DARK] = {DARK, DARK},
    [GP_THEME_LIGHT] = {LIGHT, LIGHT},
    [GP_THEME_TERMINAL] = {TERMINAL, TERMINAL_LIGHT},
    [GP_THEME_SAFE] = {SAFE_DARK, SAFE_LIGHT},
    [GP_THEME_CONTRAST] = {CONTRAST, CONTRAST},
    [GP_THEME_MONO] = {MONO, MONO},
};

const struct gp_look *gp_theme_looks(enum gp_theme theme, bool on_light)
{
    return looks[tables[theme][on_light]];
}

bool gp_theme_asks(enum gp_theme theme)
{
    return tables[theme][false] != tables[theme][true];
}

bool gp_theme_find(const char *word, enum gp_theme *ret)
{
    const int at = gp_choices_find(GP_THEME_WORDS, word, strlen(word));
    if (at >= 0)
        *ret = (enum gp_theme)at;
    return at >= 0;
}

/* ---- colors ---- */

/* Of the 256 colors, those from 16 on are a cube with these steps, and greys. */
enum { CUBE = 16, STEPS = 6, GREYS = 232, GREY_COUNT = 24, CHANNELS = 3 };
static const int steps[STEPS] = {0, 95, 135, 175, 215, 255};

static int grey_of(int i)
{
    return 8 + 10 * i;
}

static void split(int rgb, int ret[CHANNELS])
{
    for (int i = 0; i < CHANNELS; i++)
        ret[i] = rgb >> 8 * (CHANNELS - 1 - i) & 0xff;
}

static int rgb_of(int color)
{
    if (color & GP_COLOR_RGB)
        return color & (GP_COLOR_RGB - 1);
    if (color >= GREYS)
        return grey_of(color - GREYS) * 0x010101;
    const int n = color - CUBE;
    return steps[n / (STEPS * STEPS)] << 16 | steps[n / STEPS % STEPS] << 8 | steps[n % STEPS];
}

static int square(int n)
{
    return n * n;
}

int gp_color_of_256(int color)
{
    int parts[CHANNELS];
    int found = CUBE;
    int cube_far = 0;
    int far = 3 * 256 * 256; /* of the nearest grey */
    int grey = 0;
    if (color < 0 || !(color & GP_COLOR_RGB))
        return color;
    split(rgb_of(color), parts);
    for (int c = 0, weight = STEPS * STEPS; c < CHANNELS; c++, weight /= STEPS) {
        int best = 0;
        for (int i = 1; i < STEPS; i++)
            if (square(steps[i] - parts[c]) < square(steps[best] - parts[c]))
                best = i;
        found += weight * best;
        cube_far += square(steps[best] - parts[c]);
    }
    for (int i = 0; i < GREY_COUNT; i++) {
        int sum = 0;
        for (int c = 0; c < CHANNELS; c++)
            sum += square(grey_of(i) - parts[c]);
        if (sum < far) {
            far = sum;
            grey = GREYS + i;
        }
    }
    return far < cube_far ? grey : found;
}

/* Keeps the channels that have at least half of the strongest one. */
short gp_color_of_8(int color)
{
    enum { DARK_BELOW = 64 };
    int parts[CHANNELS];
    int most = 0;
    if (color < CUBE)
        return (short)(color < 0 ? OWN : color % 8);
    split(rgb_of(color), parts);
    for (int c = 0; c < CHANNELS; c++)
        most = parts[c] > most ? parts[c] : most;
    if (most < DARK_BELOW)
        return BLACK;
    return (short)((2 * parts[0] >= most ? RED : 0) | (2 * parts[1] >= most ? GREEN : 0) |
                   (2 * parts[2] >= most ? BLUE : 0));
}

/* Reads "ffff", one to four digits, as a number from 0 to 1. */
static bool take_part(const char **text, double *ret)
{
    const size_t n = strspn(*text, "0123456789abcdefABCDEF");
    unsigned value;
    if (n < 1 || n > 4 || sscanf(*text, "%4x", &value) != 1)
        return false;
    *ret = (double)value / (double)((1U << 4 * n) - 1);
    *text += n;
    return true;
}

bool gp_theme_read_background(const char *answer, bool *ret_light)
{
    /* how bright red, green and blue seem: ITU-R BT.601 */
    static const double weights[] = {0.299, 0.587, 0.114};
    const char *text = strchr(answer, ':');
    double brightness = 0;
    if (!text || strncmp(answer, "rgb", 3) != 0)
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(weights); i++) {
        double part;
        text++; /* the colon, or a slash */
        if (!take_part(&text, &part) || (i < 2 && *text != '/'))
            return false;
        brightness += weights[i] * part;
    }
    *ret_light = brightness > 0.5;
    return true;
}
