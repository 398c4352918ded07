#include "out/groups.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

/* The part of the text of a container that says whose it is: without the step of a job. */
static size_t key_length(const char *container)
{
    const char *job = gp_procs_job_id(container);
    return job ? (size_t)(job - container) + strcspn(job, ".") : strlen(container);
}

bool gp_groups_same_job(const char *a, const char *b)
{
    if (!a || !b)
        return false;
    size_t n = key_length(a);
    return n == key_length(b) && memcmp(a, b, n) == 0;
}

bool gp_groups_has(const struct gp_proc_row *group, const struct gp_proc_row *row,
                   enum gp_proc_groups groups)
{
    if (groups == GP_PROC_GROUPS_USER)
        return group->user && row->user && strcmp(group->user, row->user) == 0;
    return gp_groups_same_job(group->container, row->container);
}

/* ---- sums ---- */

static void add(struct gp_amount *sum, struct gp_amount amount)
{
    sum->n += amount.known ? amount.n : 0;
    sum->known = sum->known || amount.known;
    sum->old = sum->old || amount.old;
}

/* It is idle since its last process was busy, if that is known of all. */
static void add_idle(struct gp_proc_row *group, const struct gp_proc_row *row)
{
    if (group->members == 0 || (group->idle_s.known && row->idle_s.n < group->idle_s.n)) {
        group->idle_s = row->idle_s;
        group->idle_is_least = row->idle_is_least;
    }
    if (!row->idle_s.known)
        group->idle_s = (struct gp_amount){0};
}

void gp_groups_add_row(struct gp_proc_row *group, const struct gp_proc_row *row)
{
    struct gp_amount *const sums[] = {&group->memory, &group->suspended, &group->rss, &group->sm,
                                      &group->mem,    &group->enc,       &group->dec, &group->cpu};
    const struct gp_amount *const amounts[] = {&row->memory, &row->suspended, &row->rss, &row->sm,
                                               &row->mem,    &row->enc,       &row->dec, &row->cpu};
    for (size_t i = 0; i < GP_ARRAY_LEN(sums); i++)
        add(sums[i], *amounts[i]);
    if (row->age_s.known && (!group->age_s.known || row->age_s.n > group->age_s.n))
        group->age_s = row->age_s;
    if (!*row->gpus)
        return; /* an ancestor */
    if (!group->user)
        group->user = row->user;
    for (size_t i = 0; i < GP_ARRAY_LEN(group->gpu_bits); i++)
        group->gpu_bits[i] |= row->gpu_bits[i];
    add_idle(group, row);
    group->members++;
}

void gp_groups_name_gpus(struct gp_proc_row *group)
{
    for (unsigned gpu = 0; gpu < GP_PROC_GPUS; gpu++)
        if (group->gpu_bits[gpu / 64] >> gpu % 64 & 1)
            gp_proc_row_add_index(group, gpu);
}

/* ---- rows ---- */

static bool is_of_group(const struct gp_proc_row *row, enum gp_proc_groups groups)
{
    return row->pid > 0 && (groups == GP_PROC_GROUPS_USER ? row->user : row->container);
}

static void add_to_group(struct gp_procs *procs, size_t row_count, const struct gp_proc_row *row,
                         enum gp_proc_groups groups)
{
    size_t at = row_count;
    while (at < procs->count && !gp_groups_has(&procs->rows[at], row, groups))
        at++;
    if (at == procs->count) {
        const bool by_user = groups == GP_PROC_GROUPS_USER;
        procs->rows[procs->count++] =
            (struct gp_proc_row){.user = by_user ? row->user : NULL,
                                 .container = by_user ? NULL : row->container,
                                 .container_name = by_user ? NULL : row->container_name,
                                 .job = by_user ? NULL : row->job};
    }
    gp_groups_add_row(&procs->rows[at], row);
}

int gp_groups_add(struct gp_procs *procs, enum gp_proc_groups groups)
{
    const size_t count = procs->count;
    if (procs->room < 2 * count) {
        struct gp_proc_row *grown = realloc(procs->rows, 2 * count * sizeof(*grown));
        if (!grown)
            return GP_ENOMEM;
        procs->rows = grown;
        procs->room = 2 * count;
    }
    for (size_t i = 0; i < count; i++)
        if (is_of_group(&procs->rows[i], groups))
            add_to_group(procs, count, &procs->rows[i], groups);
    size_t kept = count;
    for (size_t i = count; i < procs->count; i++) {
        if (!procs->rows[i].members)
            continue; /* only of ancestors */
        procs->rows[kept] = procs->rows[i];
        gp_groups_name_gpus(&procs->rows[kept++]);
    }
    procs->count = kept;
    procs->groups = kept - count;
    return 0;
}

void gp_proc_row_add_job(struct gp_strbuf *sb, const struct gp_proc_row *row)
{
    const char *text = row->container;
    const size_t n = text ? key_length(text) : 0;
    const size_t kind = text ? strcspn(text, ":") : 0;
    for (size_t i = 0; i < n; i++)
        gp_strbuf_addc(sb, i == kind ? ' ' : text[i]);
}

void gp_proc_row_add_group(struct gp_strbuf *sb, const struct gp_proc_row *row)
{
    gp_proc_row_add_job(sb, row);
    gp_strbuf_adds(sb, row->container ? ", " : "");
    gp_strbuf_add_int(sb, row->members);
    gp_strbuf_adds(sb, row->members == 1 ? " process" : " processes");
}
