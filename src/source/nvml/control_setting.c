/* What a getter finds out. */
#include "source/nvml/control.h"

#include <stdio.h>

void nvml_set_number(struct gp_setting *s, int64_t n)
{
    s->known = true;
    s->value = (struct gp_control_value){.n = {n}};
}

void nvml_set_pending(struct gp_setting *s, int64_t now, int64_t pending)
{
    nvml_set_number(s, now);
    s->has_pending = pending != now;
    s->pending = (struct gp_control_value){.n = {pending}};
}

void nvml_set_range(struct gp_setting *s, int64_t min, int64_t max)
{
    s->has_range = true;
    s->min = min;
    s->max = max;
}

void nvml_set_words(struct gp_setting *s, const char *words)
{
    (void)snprintf(s->words, sizeof(s->words), "%s", words);
}
