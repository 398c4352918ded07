/* Keys and what they do. */
#ifndef GP_TUI_KEYS_H
#define GP_TUI_KEYS_H

#include "base/util.h"

/* A key is the character that it gives, or one of these. */
enum {
    GP_KEY_ESCAPE = 0x1b,
    GP_KEY_TAB = '\t',
    GP_KEY_ENTER = '\r',
    GP_KEY_BACKSPACE = 0x7f,
    GP_KEY_UP = 0x110000,
    GP_KEY_DOWN,
    GP_KEY_LEFT,
    GP_KEY_RIGHT,
    GP_KEY_HOME,
    GP_KEY_END,
    GP_KEY_PAGE_UP,
    GP_KEY_PAGE_DOWN,
    GP_KEY_F1,
    GP_KEY_F3 = GP_KEY_F1 + 2,
    GP_KEY_F4,
    GP_KEY_F6 = GP_KEY_F1 + 5,
    GP_KEY_F9 = GP_KEY_F1 + 8,
    GP_KEY_F10,
    GP_KEY_ALT = 0x200000, /* added to a character */
};

enum gp_action {
    GP_ACTION_NONE,
#define KEY(action, first, second, names, help) GP_ACTION_##action,
#include "tui/keys.def"
#undef KEY
    GP_ACTION__COUNT,
};

enum gp_action gp_key_action(int key);

/* How the keys of an action are called, and what it does. */
const char *gp_action_keys(enum gp_action action);
const char *gp_action_help(enum gp_action action);

#endif
