#include "tui/guide.h"

#include <stdio.h>
#include <string.h>

static const struct {
    enum gp_action action;
    const char *to_do, *opened;
} steps[] = {
#define STEP(action, to_do, opened) {GP_ACTION_##action, to_do, opened},
#include "tui/guide.def"
#undef STEP
};

void gp_guide_key(struct gp_guide *guide, enum gp_action action, unsigned front)
{
    if (!guide->is_on || guide->step >= GP_ARRAY_LEN(steps))
        return;
    if (action == steps[guide->step].action) {
        guide->is_pressed = true;
        guide->opened = front;
    }
    if (guide->is_pressed && front == 0) {
        guide->is_pressed = false;
        guide->step++;
    }
}

void gp_guide_draw(const struct gp_guide *guide, const struct gp_box *box, unsigned front)
{
    char text[160];
    const size_t count = GP_ARRAY_LEN(steps);
    if (front != 0 && !(guide->is_pressed && front == guide->opened)) {
        /* a screen that no step has opened: the keys of the steps mean something else there */
        (void)snprintf(text, sizeof(text), " Esc: back to the tour");
    } else if (guide->step >= count) {
        (void)snprintf(text, sizeof(text), " The end. q: quit. Then try: gpulse --sim sick doctor");
    } else if (guide->is_pressed) {
        (void)snprintf(text, sizeof(text), " %zu/%zu  %s", guide->step + 1, count,
                       steps[guide->step].opened);
    } else {
        const char *keys = gp_action_keys(steps[guide->step].action);
        (void)snprintf(text, sizeof(text), " %zu/%zu  Press %.*s to %s", guide->step + 1, count,
                       (int)strcspn(keys, " "), keys, steps[guide->step].to_do);
    }
    gp_draw_left(box, 0, 0, box->w, GP_INK_SELECTED, text);
    gp_draw_ink(box, 0, GP_INK_SELECTED);
}
