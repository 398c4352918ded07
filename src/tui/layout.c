#include "tui/layout.h"

enum {
    PROCESS_LINES = 10, /* reserved for processes: title, heading, eight rows */
    GRAPH_LINES = 3,    /* minimum for a useful graph */
    GRAPH_LINES_MAX = 9,
    GRAPHS_MAX = 4,   /* of a card, stacked */
    GPUS_STACKED = 2, /* up to this many GPUs get the full width */
};

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* Lines that the GPUs need in this density, without optional lines for graphs. */
static int lines_of(const struct gp_layout *l, int gpus)
{
    int rows = (gpus + l->columns - 1) / l->columns;
    return rows * l->gpu_height + (l->density == GP_DENSITY_LINE); /* plus the heading */
}

static void set_density(struct gp_layout *l, enum gp_density density, int w, int gpus)
{
    static const int heights[GP_DENSITY__COUNT] = {
        [GP_DENSITY_CARD] = GP_TEXT_LINES + GRAPH_LINES,
        [GP_DENSITY_BAR] = GP_TEXT_LINES,
        [GP_DENSITY_LINE] = 1,
        [GP_DENSITY_GRID] = 1,
    };
    static const int widths[GP_DENSITY__COUNT] = {
        [GP_DENSITY_CARD] = GP_CARD_COLUMNS,
        [GP_DENSITY_BAR] = GP_CARD_COLUMNS,
        [GP_DENSITY_GRID] = GP_GRID_COLUMNS,
    };
    l->density = density;
    l->gpu_height = heights[density];
    l->columns = widths[density] ? most(1, w / widths[density]) : 1;
    if (density != GP_DENSITY_GRID && gpus <= GPUS_STACKED)
        l->columns = 1;
}

/* Places the area of the GPUs within `room` lines. */
static void place_gpus(struct gp_layout *l, const struct gp_layout_options *o, int room)
{
    int wanted = o->no_processes ? room : most(room - PROCESS_LINES, room / 2);
    enum gp_density first = o->density == GP_DENSITY_AUTO ? GP_DENSITY_CARD : o->density;
    set_density(l, first, o->w, o->gpus);
    while (o->density == GP_DENSITY_AUTO && l->density < GP_DENSITY_GRID &&
           lines_of(l, o->gpus) > wanted) {
        int beside = o->w / GP_CARD_COLUMNS; /* lines may also be placed side by side */
        if (l->density == GP_DENSITY_LINE && l->columns < beside)
            l->columns = beside;
        else
            set_density(l, l->density + 1, o->w, o->gpus);
    }
    int rows = (o->gpus + l->columns - 1) / l->columns;
    if (l->density == GP_DENSITY_CARD && rows > 0)
        l->gpu_height =
            most(l->gpu_height, least(GP_TEXT_LINES + GRAPHS_MAX * GRAPH_LINES_MAX, wanted / rows));
    int heading = l->density == GP_DENSITY_LINE;
    l->gpus.h = least(lines_of(l, o->gpus), wanted);
    l->shown = (l->gpus.h - heading) / l->gpu_height * l->columns;
    if (l->shown <= 0 &&
        l->density < GP_DENSITY_LINE) { /* the pinned GPU view does not fit at all */
        set_density(l, GP_DENSITY_LINE, o->w, o->gpus);
        heading = 1;
        l->gpus.h = least(lines_of(l, o->gpus), wanted);
        l->shown = l->gpus.h - heading;
    }
    l->shown = least(most(l->shown, 0), o->gpus);
    int used = heading + (l->shown + l->columns - 1) / l->columns * l->gpu_height;
    if (l->shown < o->gpus && l->density < GP_DENSITY_LINE)
        l->gpus.h = least(used + 1, l->gpus.h); /* below them, a line that says how many */
}

struct gp_layout gp_layout_of(const struct gp_layout_options *o)
{
    struct gp_layout l = {.columns = 1, .gpu_height = 1};
    int room = o->h;
    l.header = (struct gp_rect){0, 0, o->w, room >= 2};
    l.keys = (struct gp_rect){0, o->h - 1, o->w, room >= 8};
    l.host = (struct gp_rect){0, l.header.h, o->w, o->host && room >= 8};
    int top = l.header.h + l.host.h;
    room -= top + l.keys.h;
    l.gpus = (struct gp_rect){0, top, o->w, 0};
    if (!o->no_gpus)
        place_gpus(&l, o, room);
    l.processes = (struct gp_rect){0, top + l.gpus.h, o->w, 0};
    if (!o->no_processes && room - l.gpus.h >= 2)
        l.processes.h = room - l.gpus.h;
    return l;
}
