/* The table of processes on the screen. */
#ifndef GP_TUI_PROC_TABLE_H
#define GP_TUI_PROC_TABLE_H

#include "out/procs.h"
#include "tui/hits.h"

struct gp_children;
struct gp_cpu_past;
struct gp_gpu_order;

struct gp_proc_view {
    const struct gp_procs *procs;
    const struct gp_procs_options *options; /* NULL: a list without a title */
    const enum gp_proc_column *columns;
    size_t column_count;
    size_t first, chosen;                 /* rows; `chosen` is highlighted */
    const char *search;                   /* its hits are marked; "": none */
    int scroll;                           /* columns scrolled off the commands */
    bool may_add;                         /* further columns, if there is much room */
    bool has_focus;                       /* whether movement keys apply to this table */
    bool is_unknown;                      /* an empty list does not mean that there are none */
    const char *gpus;                     /* for the title: which of them are shown; "": all */
    const struct gp_gpu_order *gpu_order; /* for the title, too; NULL: not in it */
    const struct gp_children *children;   /* NULL: not shown */
    const struct gp_cpu_past *cpu_past;   /* if has_cpu_past */
    bool has_cpu_past;                    /* on a screen of at least GP_CPU_PAST_FROM columns */
    bool has_codecs;                      /* a process uses an encoder or decoder, or has done so */
    const int64_t *tagged;                /* pids */
    size_t tagged_count;
    struct gp_hits *hits; /* collects the clickable areas; NULL: there are none */
};

enum { GP_CPU_PAST_FROM = 160 };

/* Draws the title, the heading and rows from `first` on; returns the column after the title. */
int gp_draw_procs(const struct gp_box *box, const struct gp_proc_view *view);

/* Only the heading and the rows. */
void gp_draw_proc_rows(const struct gp_box *box, const struct gp_proc_view *view);

#endif
