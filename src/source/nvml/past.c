/* What the counters of a GPU have said, kept beyond a session: when the driver is reopened, because
 * another GPU is lost, say, rates and the energy of processes go on. */
#include "source/nvml/internal.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { PAST_S = 60 }; /* a rate since an earlier time would be one of another load */

static void free_past(struct nvml_past *past)
{
    free(past->energy.shares);
    free(past->links);
    free(past);
}

/* Takes out what nobody has used for too long. */
static void drop_old(struct nvml_source *source, uint64_t now_ns)
{
    for (struct nvml_past **p = &source->pasts; *p;) {
        struct nvml_past *past = *p;
        if (past->in_use || now_ns - past->left_ns <= PAST_S * GP_NS_PER_S) {
            p = &past->next;
            continue;
        }
        *p = past->next;
        free_past(past);
    }
}

struct nvml_past *nvml_take_past(struct nvml_source *source, const char *uuid)
{
    (void)pthread_mutex_lock(&source->pasts_lock);
    drop_old(source, gp_clock_mono_ns());
    struct nvml_past **p = &source->pasts;
    while (*p && ((*p)->in_use || !uuid[0] || strcmp((*p)->uuid, uuid) != 0))
        p = &(*p)->next;
    if (!*p)
        *p = calloc(1, sizeof(**p));
    struct nvml_past *past = *p;
    if (past) {
        past->in_use = true;
        memcpy(past->uuid, uuid, strlen(uuid) + 1);
    }
    (void)pthread_mutex_unlock(&source->pasts_lock);
    return past;
}

void nvml_leave_past(struct nvml_source *source, struct nvml_past *past)
{
    if (!past)
        return;
    (void)pthread_mutex_lock(&source->pasts_lock);
    past->in_use = false;
    past->left_ns = gp_clock_mono_ns();
    (void)pthread_mutex_unlock(&source->pasts_lock);
}

void nvml_free_pasts(struct nvml_source *source)
{
    while (source->pasts) {
        struct nvml_past *past = source->pasts;
        source->pasts = past->next;
        free_past(past);
    }
}
