#include "tui/proc_command.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "out/tree.h"
#include "proc/proc.h"
#include "tui/children.h"
#include "tui/closed.h"
#include "tui/proc_table.h"

#include <stdint.h>
#include <string.h>

enum {
    MARK_W = 2,            /* columns of "▸ " and "▾ ", and of a branch with one of them */
    CHILDREN_FROM = 34,    /* columns of a command beside which they have room: all about them, */
    CHILD_COUNT_FROM = 12, /* and their number */
    GPUS_FROM = 60,        /* and GPUs that have no room in their column */
};

/* Children without rows of their own. */
struct children {
    unsigned count;
    struct gp_amount cpu; /* percent of one CPU */
};

/* Those of a process that use no GPU. */
static void add_workers(struct children *sum, const struct gp_children *children, int64_t pid)
{
    const struct gp_children_sum *of = gp_children_find(children, pid);
    if (!of)
        return;
    sum->count += of->count;
    sum->cpu.n += of->cpu;
    sum->cpu.known = true;
}

/* Those that use no GPU, and all that are below a closed row. */
static struct children children_of(const struct gp_proc_view *view, size_t at)
{
    const struct gp_proc_row *row = &view->procs->rows[at];
    const struct gp_proc_row *below = gp_rows_below(view->procs, at).first;
    struct children sum = {0};
    add_workers(&sum, view->children, row->pid);
    for (size_t i = 0; i < row->closed; i++) {
        sum.count += 1u + below[i].folded;
        sum.cpu.n += below[i].cpu.known ? below[i].cpu.n : 0;
        sum.cpu.known = sum.cpu.known || below[i].cpu.known;
        add_workers(&sum, view->children, below[i].pid);
    }
    return sum;
}

/* "+3 children   41% CPU"; of a closed row "+3" at least. */
static void add_children(struct gp_strbuf *text, const struct gp_proc_view *view, size_t at, int w)
{
    const struct children sum = children_of(view, at);
    const bool is_closed = view->procs->rows[at].closed > 0;
    if (sum.count == 0 || w < (is_closed ? CHILD_COUNT_FROM : CHILDREN_FROM))
        return;
    gp_strbuf_addf(text, text->len ? "  +%u" : "+%u", sum.count);
    if (w >= CHILDREN_FROM)
        gp_strbuf_adds(text, sum.count == 1 ? " child" : " children");
    if (w >= CHILDREN_FROM && sum.cpu.known)
        gp_strbuf_addf(text, " %4.0f%% CPU", sum.cpu.n); /* so that nothing moves */
}

/* What is below it and, with much room, its GPUs, at the right edge. Returns the columns that are
 * left for the command. */
static int draw_below(const struct gp_box *part, const struct gp_proc_view *view, size_t at,
                      const char *gpus)
{
    char room[96] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, sizeof(room) - 1);
    if (gpus && part->w >= GPUS_FROM)
        gp_strbuf_addf(&text, "on GPUs %s", gpus);
    add_children(&text, view, at, part->w);
    if (text.len == 0)
        return part->w;
    gp_draw_right(part, 0, 0, part->w, GP_INK_DIM, text.buf);
    return part->w - (int)text.len - 1;
}

/* The branch before the command; in the tree and the groups with the mark that folds what is below.
 * Returns the column after it. */
static int draw_branch(const struct gp_box *part, const struct gp_proc_view *view, size_t at)
{
    const struct gp_proc_row *row = &view->procs->rows[at];
    const char *mark = row->closed ? "▸" : gp_row_is_open(view->procs, at) ? "▾" : NULL;
    char room[256] = "";
    struct gp_strbuf branch = GP_STRBUF_ON(room, 4096);
    gp_tree_add_branch(&branch, row);
    const int x = gp_draw(part, 0, 0, GP_INK_DIM, branch.buf);
    gp_strbuf_fini(&branch);
    if (!view->options || !view->options->groups)
        return x;
    const struct gp_box place = gp_box_part(part, x > 0 ? x - MARK_W : 0, 0, MARK_W, 1);
    if (mark)
        (void)gp_draw(&place, x > 0 ? MARK_W - 1 : 0, 0, GP_INK_PLAIN, mark);
    if (mark && view->hits)
        gp_hits_add(view->hits, &place, GP_HIT_FOLD, at);
    return x > 0 ? x : MARK_W;
}

/* The program of a parent; a login shell is "-bash". Returns its length. */
static int name_of(const struct gp_proc_row *parent, const char **ret)
{
    const int n = (int)gp_proc_program_name(parent->command ? parent->command : "?", ret);
    const int dash = n > 1 && **ret == '-';
    *ret += dash;
    return n - dash;
}

/* "systemd › sshd › bash › " before the command, in a third of the room, or more if the command
 * leaves it: of parents without room, the nearest ones are named. Returns the column after it. */
static int draw_folded(const struct gp_box *part, int x, int w, const struct gp_procs *procs,
                       const struct gp_proc_row *row)
{
    enum { STEP = 3, MORE = 4 }; /* columns of " › " and of "… › " */
    const int rest = w - x - (row->command ? (int)gp_utf8_width(row->command) : 1);
    const int room = rest > (w - x) / 3 ? rest : (w - x) / 3;
    const struct gp_proc_row *parents = &procs->rows[row->folded_at];
    const char *name;
    int used = 0;
    int named = 0;
    for (; named < row->folded; named++) {
        used += name_of(&parents[named], &name) + STEP; /* bytes: programs have ASCII names */
        if (used + (named + 1 < row->folded ? MORE : 0) > room)
            break;
    }
    if (named < row->folded)
        x = gp_draw(part, x, 0, GP_INK_DIM, named ? "… › " : "… ");
    while (named > 0) {
        const int n = name_of(&parents[--named], &name);
        x = gp_drawf(part, x, 0, GP_INK_DIM, "%.*s › ", n, name);
    }
    return x;
}

/* Where the command begins to differ from those near it that have the same first w columns; 0: from
 * none. */
static size_t differs_at(const struct gp_proc_view *view, const char *command, int w)
{
    enum { NEAR = 64 }; /* rows from the first one on the screen */
    size_t at = SIZE_MAX;
    for (size_t i = view->first; i < view->procs->count && i < view->first + NEAR; i++) {
        const char *other = view->procs->rows[i].command;
        size_t n = 0;
        while (other && command[n] && command[n] == other[n])
            n++;
        if (other && n + 1 >= (size_t)w && n < at && command[n] != other[n])
            at = n;
    }
    return at == SIZE_MAX ? 0 : at;
}

static size_t word_at(const char *text, size_t at)
{
    while (at > 0 && text[at - 1] != ' ')
        at--;
    return at;
}

/* What tells a command from the others must be seen: the word with the hit of a search, or else the
 * first word that differs, with the option before it. 0: the beginning will do. */
static size_t telling_word(const struct gp_proc_view *view, const char *command, int w)
{
    const char *hit = view->search && *view->search ? strcasestr(command, view->search) : NULL;
    if (hit && hit + strlen(view->search) - command < w)
        return 0;
    if (hit)
        return word_at(command, (size_t)(hit - command));
    const size_t at = word_at(command, differs_at(view, command, w));
    const size_t before = at > 0 ? word_at(command, at - 1) : 0;
    return command[before] == '-' ? before : at;
}

enum { HIDDEN_LEAST = 4 }; /* columns for which the middle is left out */

/* "python tr…--rank 3": the beginning, and from the word on that tells it from the others. */
static void draw_cut(const struct gp_box *part, int x, int w, const struct gp_proc_view *view,
                     const char *command, enum gp_ink ink)
{
    const int needed = (int)gp_utf8_width(command);
    const size_t at = needed > w && view->scroll == 0 ? telling_word(view, command, w) : 0;
    const int tail_w = (int)gp_utf8_width(command + at);
    const int most = w - w / 3 - 1;
    const int head_w = w - 1 - (tail_w < most ? tail_w : most);
    if (at == 0 || needed - tail_w < head_w + HIDDEN_LEAST) {
        gp_draw_left(part, x, 0, w, ink, command);
        return;
    }
    const struct gp_box head = gp_box_part(part, x, 0, head_w, 1);
    (void)gp_draw(&head, 0, 0, ink, command);
    (void)gp_draw(part, x + head_w, 0, GP_INK_DIM, "…");
    gp_draw_left(part, x + head_w + 1, 0, w - head_w - 1, ink, command + at);
}

/* What a group is, and its GPUs, if they have no room in their column. */
static void draw_group(const struct gp_box *part, int x, const struct gp_proc_row *row,
                       enum gp_ink ink, const char *gpus)
{
    char room[256] = "";
    struct gp_strbuf text = GP_STRBUF_ON(room, 4096);
    gp_proc_row_add_group(&text, row);
    if (gpus)
        gp_strbuf_addf(&text, " on GPUs %s", gpus);
    gp_draw_left(part, x, 0, part->w - x, ink, text.buf);
    gp_strbuf_fini(&text);
}

void gp_draw_command(const struct gp_box *part, const struct gp_proc_view *view, size_t at,
                     enum gp_ink ink, const char *gpus)
{
    int scroll = view->scroll;
    const struct gp_proc_row *row = &view->procs->rows[at];
    const char *command = row->command ? row->command : "?";
    int x = draw_branch(part, view, at);
    if (row->members) {
        draw_group(part, x, row, ink, gpus);
        return;
    }
    x = gp_draw(part, x, 0, GP_INK_DIM, gp_proc_row_prefix(row));
    for (; scroll > 0 && *command; scroll--) {
        do
            command++;
        while ((*command & 0xc0) == 0x80);
    }
    const int w = draw_below(part, view, at, gpus);
    x = draw_folded(part, x, w, view->procs, row);
    draw_cut(part, x, w - x, view, command,
             row->closed || (row->pid && gp_proc_row_uses_any(row)) ? ink : GP_INK_DIM);
}
