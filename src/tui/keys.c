#include "tui/keys.h"

#define CTRL(letter) ((letter)&0x1f)
#define ALT(letter) (GP_KEY_ALT + (letter))

static const struct {
    int keys[2];
    const char *names, *help;
} bindings[GP_ACTION__COUNT] = {
#define KEY(action, first, second, names, help)                                                    \
    [GP_ACTION_##action] = {{first, second}, names, help},
#include "tui/keys.def"
#undef KEY
};

enum gp_action gp_key_action(int key)
{
    for (int a = 1; a < GP_ACTION__COUNT; a++)
        if (key && (bindings[a].keys[0] == key || bindings[a].keys[1] == key))
            return (enum gp_action)a;
    return GP_ACTION_NONE;
}

const char *gp_action_keys(enum gp_action action)
{
    return bindings[action].names;
}

const char *gp_action_help(enum gp_action action)
{
    return bindings[action].help;
}
