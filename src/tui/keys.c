#include "tui/keys.h"

#define ALT(letter) (GP_KEY_ALT + (letter))

enum { KEY_RANGE = -1 }; /* all keys from the first to the second */

static const struct {
    int keys[3];
    const char *names, *help;
} bindings[GP_ACTION__COUNT] = {
#define KEY(action, first, second, third, names, help)                                             \
    [GP_ACTION_##action] = {{first, second, third}, names, help},
#define VI(action, key)
#include "tui/keys.def"
#undef KEY
#undef VI
};

static const struct {
    enum gp_action action;
    int key;
} vi_bindings[] = {
#define KEY(action, first, second, third, names, help)
#define VI(action, key) {GP_ACTION_##action, key},
#include "tui/keys.def"
#undef KEY
#undef VI
};

static bool has_key(enum gp_action action, int key)
{
    const int *keys = bindings[action].keys;
    if (keys[2] == KEY_RANGE)
        return key >= keys[0] && key <= keys[1];
    return keys[0] == key || keys[1] == key || keys[2] == key;
}

enum gp_action gp_key_action(int key, bool vi)
{
    for (size_t i = 0; vi && i < GP_ARRAY_LEN(vi_bindings); i++)
        if (vi_bindings[i].key == key)
            return vi_bindings[i].action;
    for (int a = 1; key && a < GP_ACTION__COUNT; a++)
        if (has_key((enum gp_action)a, key))
            return (enum gp_action)a;
    return GP_ACTION_NONE;
}

int gp_action_key(enum gp_action action, bool vi)
{
    char letter = vi ? gp_action_vi_letter(action) : '\0';
    return letter ? letter : bindings[action].keys[0];
}

const char *gp_action_keys(enum gp_action action)
{
    return bindings[action].names;
}

const char *gp_action_help(enum gp_action action)
{
    return bindings[action].help;
}

char gp_action_vi_letter(enum gp_action action)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(vi_bindings); i++)
        if (vi_bindings[i].action == action)
            return (char)vi_bindings[i].key;
    return '\0';
}
