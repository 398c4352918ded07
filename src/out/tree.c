#include "out/tree.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "model/snapshot.h"
#include "out/groups.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 63, NONE = -1 };

/* ---- ancestors ---- */

static int compare_ancestors(const void *a, const void *b)
{
    const int64_t *pid = a;
    int64_t other = gp_process_value(b, GP_PID)->i;
    return (*pid > other) - (*pid < other);
}

static const char *container_of(const struct gp_process *process)
{
    const struct gp_value *v = gp_process_value(process, GP_PROCESS_CONTAINER);
    return gp_value_is_present(v) ? v->s : NULL;
}

/* Marks all ancestors of a row. Stops at a marked one, because its ancestors are already marked;
 * with groups, also where its job begins. */
static void mark_chain(const struct gp_snapshot *snapshot, bool *wanted,
                       const struct gp_proc_row *row, enum gp_proc_groups groups)
{
    int64_t pid = row->ppid;
    while (pid > 0 && snapshot->ancestor_count) {
        const struct gp_process *found =
            bsearch(&pid, snapshot->ancestors, snapshot->ancestor_count,
                    sizeof(*snapshot->ancestors), compare_ancestors);
        if (!found || wanted[found - snapshot->ancestors])
            return;
        if (groups && (pid == 1 || (row->container &&
                                    !gp_groups_same_job(row->container, container_of(found)))))
            return;
        wanted[found - snapshot->ancestors] = true;
        const struct gp_value *parent = gp_process_value(found, GP_PROCESS_PPID);
        pid = gp_value_is_present(parent) ? parent->i : 0;
    }
}

int gp_tree_add_ancestors(struct gp_procs *procs, const struct gp_snapshot *snapshot,
                          enum gp_proc_groups groups)
{
    size_t most = procs->count + snapshot->ancestor_count + 1;
    bool *wanted = calloc(snapshot->ancestor_count + 1, sizeof(*wanted));
    struct gp_proc_row *grown = realloc(procs->rows, most * sizeof(*grown));
    procs->rows = grown ? grown : procs->rows;
    procs->room = grown ? most : procs->room;
    if (!wanted || !grown) {
        free(wanted);
        return GP_ENOMEM;
    }
    for (size_t i = 0; i < procs->count; i++)
        mark_chain(snapshot, wanted, &procs->rows[i], groups);
    for (size_t i = 0; i < snapshot->ancestor_count; i++) {
        if (!wanted[i])
            continue;
        gp_proc_row_init(&procs->rows[procs->count++], &snapshot->ancestors[i], snapshot->wall_ns);
        procs->ancestors++;
    }
    free(wanted);
    return 0;
}

/* ---- order ---- */

/* Maps a pid to its row. If a process has rows on several GPUs, the first one represents it. */
struct place {
    int64_t pid;
    size_t row;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int compare_pid(const void *a, const void *b)
{
    const int64_t *pid = a;
    const struct place *place = b;
    return (*pid > place->pid) - (*pid < place->pid);
}

struct tree {
    struct place *places; /* sorted by pid, one for each pid */
    size_t place_count;
    long *first, *next, *stack; /* row numbers; NONE: none */
    long *groups;               /* the rows of groups */
    size_t group_count;
};

static long group_of(const struct tree *t, const struct gp_procs *procs,
                     const struct gp_proc_row *row, enum gp_proc_groups groups)
{
    for (size_t i = 0; i < t->group_count; i++)
        if (gp_groups_has(&procs->rows[t->groups[i]], row, groups))
            return t->groups[i];
    return NONE;
}

static long parent_of(const struct tree *t, const struct gp_procs *procs,
                      const struct gp_proc_row *row, enum gp_proc_groups groups)
{
    const bool is_flat = groups == GP_PROC_GROUPS_USER || groups == GP_PROC_GROUPS_JOB;
    if (row->pid == 0)
        return NONE;
    const struct place *found =
        is_flat || row->ppid <= 0 || row->ppid == row->pid
            ? NULL
            : bsearch(&row->ppid, t->places, t->place_count, sizeof(*t->places), compare_pid);
    return found ? (long)found->row : group_of(t, procs, row, groups);
}

static void fill_places(struct tree *t, const struct gp_procs *procs)
{
    for (size_t i = 0; i < procs->count; i++)
        if (procs->rows[i].pid)
            t->places[t->place_count++] = (struct place){procs->rows[i].pid, i};
        else if (procs->rows[i].members)
            t->groups[t->group_count++] = (long)i;
    qsort(t->places, t->place_count, sizeof(*t->places), compare_places);
    size_t kept = 0;
    for (size_t i = 0; i < t->place_count; i++)
        if (kept == 0 || t->places[kept - 1].pid != t->places[i].pid)
            t->places[kept++] = t->places[i];
    t->place_count = kept;
}

/* ---- sums ---- */

static void add_to_parents(const struct tree *t, const struct gp_procs *procs,
                           struct gp_proc_row *sums, const struct gp_proc_row *row,
                           enum gp_proc_groups groups)
{
    long at = parent_of(t, procs, row, groups);
    for (int depth = 0; depth < DEPTH_MAX && at != NONE && procs->rows[at].pid; depth++) {
        gp_groups_add_row(&sums[at], row);
        at = parent_of(t, procs, &procs->rows[at], groups);
    }
}

/* Shows the sums in the GPU columns of a parent. Its CPU and host memory remain its own. */
static void show_sums(struct gp_proc_row *row, const struct gp_proc_row *sum)
{
    const struct gp_proc_row own = *row;
    *row = *sum;
    row->cpu = own.cpu;
    row->rss = own.rss;
    row->members = 0;
    row->below = sum->members;
    gp_groups_name_gpus(row);
}

/* Fills `sums` and replaces the rows by it, sorted. */
static void sort_by_sums(struct tree *t, struct gp_procs *procs, struct gp_proc_row *sums,
                         const struct gp_proc_order *order, enum gp_proc_groups groups)
{
    struct gp_proc_row *rows = procs->rows;
    const size_t count = procs->count;
    fill_places(t, procs);
    for (size_t i = 0; i < count; i++) {
        sums[i] = rows[i];
        sums[i].members = *rows[i].gpus != '\0'; /* it counts itself */
        sums[i].folded_at = (uint32_t)i;         /* for now, where it was */
    }
    for (size_t i = 0; i < count; i++)
        add_to_parents(t, procs, sums, &rows[i], groups);
    for (size_t i = 0; i < count; i++)
        if (rows[i].pid && !*rows[i].gpus && sums[i].members)
            show_sums(&rows[i], &sums[i]);
    procs->rows = sums;
    procs->room = count;
    gp_procs_sort(procs, order);
    for (size_t i = 0; i < count; i++)
        sums[i] = rows[sums[i].folded_at];
    free(rows);
}

int gp_tree_sort(struct gp_procs *procs, const struct gp_proc_order *order,
                 enum gp_proc_groups groups)
{
    const size_t n = procs->count + 1;
    struct tree t = {
        .places = calloc(n, sizeof(*t.places)),
        .groups = calloc(n, sizeof(*t.groups)),
    };
    struct gp_proc_row *sums = calloc(n, sizeof(*sums));
    const bool has_room = t.places && t.groups && sums;
    if (has_room)
        sort_by_sums(&t, procs, sums, order, groups);
    else
        free(sums);
    free(t.places);
    free(t.groups);
    return has_room ? 0 : GP_ENOMEM;
}

/* ---- rows in the order of the tree ---- */

/* Links each row to its parent. The slot after the last row collects the rows without a parent. */
static void link_rows(struct tree *t, const struct gp_procs *procs, enum gp_proc_groups groups)
{
    for (size_t i = 0; i <= procs->count; i++)
        t->first[i] = NONE;
    for (size_t i = procs->count; i > 0; i--) {
        long parent = parent_of(t, procs, &procs->rows[i - 1], groups);
        size_t list = parent == NONE ? procs->count : (size_t)parent;
        t->next[i - 1] = t->first[list];
        t->first[list] = (long)i - 1;
    }
}

static bool is_foldable(const struct tree *t, const struct gp_proc_row *row, long at)
{
    return row->pid && !gp_proc_row_uses_any(row) && t->first[at] != NONE &&
           t->next[t->first[at]] == NONE;
}

/* Walks the tree without recursion. Does not reach cycles of parents; the caller adds their
 * rows. Puts those that are folded at the end. */
static size_t walk(struct tree *t, const struct gp_procs *procs, bool folds,
                   struct gp_proc_row *out, bool *visited)
{
    size_t count = 0;
    size_t end = procs->count;
    size_t depth = 0;
    uint64_t branches = 0;
    t->stack[0] = t->first[procs->count];
    for (;;) {
        long row = t->stack[depth];
        if (row == NONE) {
            if (depth == 0)
                return count;
            depth--;
            t->stack[depth] = t->next[t->stack[depth]];
            continue;
        }
        bool is_last = t->next[row] == NONE;
        uint64_t bit = depth < DEPTH_MAX ? UINT64_C(1) << depth : 0;
        uint16_t folded = 0;
        for (; folds && is_foldable(t, &procs->rows[row], row); row = t->first[row], folded++) {
            out[--end] = procs->rows[row];
            visited[row] = true;
        }
        out[count] = procs->rows[row];
        out[count].folded = folded;
        out[count].folded_at = (uint32_t)end;
        out[count].depth = (uint16_t)(depth < DEPTH_MAX ? depth : DEPTH_MAX);
        out[count].is_last = is_last;
        out[count++].branches = branches & (bit ? bit - 1 : ~UINT64_C(0));
        visited[row] = true;
        branches = is_last ? branches & ~bit : branches | bit;
        t->stack[++depth] = t->first[row];
    }
}

static int arrange(struct tree *t, struct gp_procs *procs, enum gp_proc_groups groups,
                   struct gp_proc_row *out, bool *visited)
{
    fill_places(t, procs);
    link_rows(t, procs, groups);
    const bool folds = groups == GP_PROC_GROUPS_TREE;
    const size_t all = procs->count;
    size_t count = walk(t, procs, folds, out, visited);
    for (size_t i = 0; i < all; i++)
        if (!visited[i])
            out[count++] = procs->rows[i];
    free(procs->rows);
    procs->rows = out;
    procs->room = all;
    procs->count = count;
    procs->folded = all - count;
    procs->ancestors -= procs->folded;
    return 0;
}

int gp_tree_arrange(struct gp_procs *procs, enum gp_proc_groups groups)
{
    size_t n = procs->count + 2;
    struct tree t = {
        .places = calloc(n, sizeof(*t.places)),
        .first = calloc(n, sizeof(*t.first)),
        .next = calloc(n, sizeof(*t.next)),
        .stack = calloc(n, sizeof(*t.stack)),
        .groups = calloc(n, sizeof(*t.groups)),
    };
    struct gp_proc_row *out = calloc(n, sizeof(*out));
    bool *visited = calloc(n, sizeof(*visited));
    int r = GP_ENOMEM;
    if (t.places && t.first && t.next && t.stack && t.groups && out && visited)
        r = arrange(&t, procs, groups, out, visited);
    if (r < 0)
        free(out);
    free(t.places);
    free(t.first);
    free(t.next);
    free(t.stack);
    free(t.groups);
    free(visited);
    return r;
}

void gp_tree_add_branch(struct gp_strbuf *sb, const struct gp_proc_row *row)
{
    for (unsigned depth = 1; depth < row->depth; depth++)
        gp_strbuf_adds(sb, row->branches >> depth & 1 ? "│ " : "  ");
    if (row->depth > 0)
        gp_strbuf_adds(sb, row->is_last ? "└─" : "├─");
}
