#include "tui/layout.h"

enum {
    PROCESS_LINES = 10, /* reserved for processes: title, heading, eight rows */
    PROCESS_LEAST = 7,  /* if GPUs would not have a line each otherwise */
    GRAPH_LINES = 3,    /* minimum for a useful graph */
    GRAPH_LINES_MAX = 9,
    GRAPHS_MAX = 4,   /* of a card, stacked */
    TOTAL_FROM = 17,  /* GPUs in a grid, for a line about all of them */
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

static bool has_frame(const struct gp_layout_options *o)
{
    return o->w >= GP_FRAME_FROM && o->h >= GP_FRAME_LINES && !(o->no_gpus && o->no_processes);
}

/* Lines above the GPUs: a title in the frame, names of columns. */
static int headings_of(const struct gp_layout *l)
{
    return l->has_rule + (l->density == GP_DENSITY_LINE);
}

/* Lines that the GPUs need in this density, without optional lines for graphs. */
static int lines_of(const struct gp_layout *l, const struct gp_layout_options *o)
{
    bool has_flat = l->density < GP_DENSITY_LINE;
    int high = has_flat ? o->gpus - o->flat : o->gpus;
    int rows = (high + l->columns - 1) / l->columns;
    return rows * l->gpu_height + (has_flat ? o->flat : 0) + headings_of(l);
}

/* The lines that the GPUs may have. */
static int lines_for(const struct gp_layout_options *o, enum gp_density density, int room)
{
    int others = density == GP_DENSITY_LINE ? PROCESS_LEAST : PROCESS_LINES;
    return o->no_processes ? room - has_frame(o) : most(room - others, room / 2);
}

static void set_density(struct gp_layout *l, enum gp_density density,
                        const struct gp_layout_options *o, int room)
{
    static const int heights[GP_DENSITY__COUNT] = {
        [GP_DENSITY_CARD] = GP_TEXT_LINES + GRAPH_LINES,
        [GP_DENSITY_BAR] = 2,
        [GP_DENSITY_LINE] = 1,
        [GP_DENSITY_GRID] = 1,
    };
    l->density = density;
    l->gpu_height = heights[density];
    l->columns = 1;
    l->has_rule = density >= GP_DENSITY_LINE && has_frame(o);
    if (density == GP_DENSITY_GRID) { /* as few columns as possible, for wide cells */
        int lines = most(lines_for(o, density, room) - headings_of(l), 1);
        l->columns =
            least((o->gpus + lines - 1) / lines, o->w / (GP_GRID_COLUMNS + (o->gpus > 100)));
    } else if (density < GP_DENSITY_LINE && o->gpus > GPUS_STACKED && !o->flat) {
        l->columns = o->w / GP_CARD_COLUMNS;
    }
    l->columns = most(l->columns, 1);
}

/* Cards and bars use the lines that are left. */
static void grow(struct gp_layout *l, const struct gp_layout_options *o, int wanted)
{
    int rows = (o->gpus - o->flat + l->columns - 1) / l->columns;
    int each = rows > 0 ? (wanted - o->flat) / rows : 0;
    if (l->density == GP_DENSITY_CARD)
        l->gpu_height =
            most(l->gpu_height, least(GP_TEXT_LINES + GRAPHS_MAX * GRAPH_LINES_MAX, each));
    if (l->density == GP_DENSITY_BAR && o->w >= GP_FRAME_FROM)
        l->gpu_height = most(l->gpu_height, least(GP_TEXT_LINES, each));
}

/* The title of the processes says which cards and bars are shown if they are not all; without
 * processes, a line does, for which there may be a row of GPUs less. */
static void add_range_line(struct gp_layout *l, const struct gp_layout_options *o, int wanted)
{
    int lines = l->shown / l->columns * l->gpu_height;
    bool has_line = o->no_processes && lines < wanted;
    if (o->no_processes && !has_line && l->shown > l->columns) {
        l->shown -= l->columns;
        lines -= l->gpu_height;
        has_line = true;
    }
    l->gpus.h = lines + has_line;
}

/* Sets how many GPUs are shown, and the lines for that. */
static void show(struct gp_layout *l, const struct gp_layout_options *o, int wanted)
{
    int heading = headings_of(l);
    int needed = lines_of(l, o);
    int height = most(l->gpu_height, 1);
    l->gpus.h = least(needed, wanted);
    l->shown = needed <= wanted ? o->gpus : (l->gpus.h - heading) / height * l->columns;
    l->shown = least(most(l->shown, 0), o->gpus);
    l->has_more = l->shown < o->gpus && l->shown > 1 && l->density >= GP_DENSITY_LINE &&
                  !l->has_rule; /* the rule says which ones are shown */
    if (l->shown > 0 && l->shown < o->gpus && l->density < GP_DENSITY_LINE)
        add_range_line(l, o, wanted);
    l->has_total = l->density == GP_DENSITY_GRID && needed < wanted && o->gpus >= TOTAL_FROM;
    l->gpus.h += l->has_total;
    l->shown -= l->has_more;
}

/* Places the area of the GPUs within `room` lines. */
static void place_gpus(struct gp_layout *l, const struct gp_layout_options *o, int room)
{
    enum gp_density first = o->density == GP_DENSITY_AUTO ? GP_DENSITY_CARD : o->density;
    if (o->no_graphs && first == GP_DENSITY_CARD)
        first = GP_DENSITY_BAR;
    set_density(l, first, o, room);
    while (o->density == GP_DENSITY_AUTO && l->density < GP_DENSITY_GRID &&
           lines_of(l, o) > lines_for(o, l->density, room)) {
        int beside = o->w / GP_CARD_COLUMNS; /* lines may also be placed side by side */
        if (l->density == GP_DENSITY_LINE && l->columns < beside)
            l->columns = beside;
        else
            set_density(l, l->density + 1, o, room);
    }
    grow(l, o, lines_for(o, l->density, room));
    show(l, o, lines_for(o, l->density, room));
    if (l->shown <= 0 &&
        l->density < GP_DENSITY_LINE) { /* the pinned GPU view does not fit at all */
        set_density(l, GP_DENSITY_LINE, o, room);
        show(l, o, lines_for(o, l->density, room));
    }
}

struct gp_layout gp_layout_of(const struct gp_layout_options *o)
{
    struct gp_layout l = {.columns = 1, .gpu_height = 1};
    const int edge = has_frame(o);
    int room = o->h;
    l.header = (struct gp_rect){0, 0, o->w, room >= 2};
    l.keys = (struct gp_rect){0, o->h - 1, o->w, room >= 8};
    l.host = (struct gp_rect){0, l.header.h, o->w, o->host && room >= 8};
    int top = l.header.h + l.host.h;
    room -= top + l.keys.h;
    l.gpus = (struct gp_rect){edge, top, o->w - 2 * edge, 0};
    if (!o->no_gpus)
        place_gpus(&l, o, room);
    l.processes = (struct gp_rect){edge, top + l.gpus.h, o->w - 2 * edge, 0};
    if (!o->no_processes && room - edge - l.gpus.h >= 2)
        l.processes.h = room - edge - l.gpus.h;
    if (edge)
        l.frame = (struct gp_rect){0, top, o->w, l.gpus.h + l.processes.h + 1};
    if (o->processes_first) {
        l.processes.y = top;
        l.gpus.y = top + l.processes.h;
    }
    return l;
}

struct gp_rect gp_layout_column(const struct gp_layout *l, int column)
{
    const int gutter = l->frame.h > 0 && l->density < GP_DENSITY_LINE; /* for a wall */
    const int w = (l->gpus.w - gutter * (l->columns - 1)) / l->columns;
    return (struct gp_rect){column * (w + gutter), 0, w, 0};
}
