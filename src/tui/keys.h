/* Keys and their actions. */
#ifndef GP_TUI_KEYS_H
#define GP_TUI_KEYS_H

#include "base/util.h"

/* A key is the character it produces, or one of these. */
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
    GP_KEY_F2,
    GP_KEY_F3,
    GP_KEY_F4,
    GP_KEY_F5,
    GP_KEY_F6,
    GP_KEY_F9 = GP_KEY_F1 + 8,
    GP_KEY_F10,
    GP_KEY_F12 = GP_KEY_F1 + 11,
    GP_KEY_MOUSE,          /* a click; its place goes to gp_ui_click() */
    GP_KEY_UNKNOWN,        /* a key without a meaning here */
    GP_KEY_ALT = 0x200000, /* flag added to a character */
};

#define GP_KEY_CTRL(letter) ((letter)&0x1f)

enum gp_action {
    GP_ACTION_NONE,
#define KEY(action, first, second, third, names, help) GP_ACTION_##action,
#define VI(action, key)
#include "tui/keys.def"
#undef KEY
#undef VI
    GP_ACTION__COUNT,
};

/* `vi`: use vi's letters for movement. */
enum gp_action gp_key_action(int key, bool vi);

/* The display names of an action's keys, and what the action does. */
const char *gp_action_keys(enum gp_action action);
const char *gp_action_help(enum gp_action action);

/* One of the action's keys. */
int gp_action_key(enum gp_action action, bool vi);

/* The letter of the action with keys=vi; NUL for none. */
char gp_action_vi_letter(enum gp_action action);

#endif
