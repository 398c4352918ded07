#include "tui/playback.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "base/when.h"
#include "model/snapshot.h"
#include "source/player.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    BOTH_FROM = 16,    /* lines of a screen with a timeline */
    TICK_MIN_MS = 200, /* between two frames */
    QUICK_MS = 250,    /* a key that is pressed again within this time is held */
    LEAP_TICKS = 16,   /* a longer way is a leap: what was seen before it does not go on */
    PAST_MAX = 128,    /* samples before the one shown, for graphs */
    PAST_MS = 20,      /* how long reading them may take */
    BLOCK = 0x2581,    /* ▁ */
    EIGHTHS = 8,
    MARK = 0x25b2,  /* ▲ */
    NOTHING = 0xb7, /* · */
    WIDTH_MIN = 10, /* of the timeline */
};

#define SPEED_MIN 0.25
#define SPEED_MAX 64.0
#define MINUTE_US INT64_C(60000000)
#define DAY_NS (UINT64_C(86400) * GP_NS_PER_S)

/* ---- keys ---- */

static const struct {
    int keys[2];
    const char *names, *help;
} bindings[GP_PLAY__COUNT] = {
#define PLAY(action, first, second, names, help)                                                   \
    [GP_PLAY_##action] = {{first, second}, names, help},
#include "tui/playback.def"
#undef PLAY
};

static enum gp_play_action action_of(int key)
{
    for (int a = 1; key && a < GP_PLAY__COUNT; a++)
        if (bindings[a].keys[0] == key || bindings[a].keys[1] == key)
            return (enum gp_play_action)a;
    return GP_PLAY_NONE;
}

const char *gp_play_keys(enum gp_play_action action)
{
    return bindings[action].names;
}

const char *gp_play_help(enum gp_play_action action)
{
    return bindings[action].help;
}

static struct gp_player_state state_of(const struct gp_ui *ui)
{
    struct gp_player_state state;
    ui->outside.player->ops->look(ui->outside.player, &state);
    return state;
}

static void ask(struct gp_ui *ui, enum gp_player_request request, int64_t amount)
{
    ui->outside.player->ops->ask(ui->outside.player, request, amount);
    ui->playback.hurries = true;
}

static void set_paused(struct gp_ui *ui, bool is_paused)
{
    ui->outside.player->ops->pause(ui->outside.player, is_paused);
}

/* How many samples a key moves over: more when it is held. */
static int64_t stride(struct gp_ui *ui, enum gp_play_action action)
{
    static const struct {
        unsigned from;
        int64_t samples;
    } strides[] = {{80, 60}, {50, 30}, {30, 10}, {20, 5}, {10, 2}, {0, 1}};
    struct gp_ui_playback *p = &ui->playback;
    const uint64_t now_ns = gp_clock_mono_ns();
    const bool is_held = p->last == (int)action && now_ns - p->pressed_ns < QUICK_MS * GP_NS_PER_MS;
    p->repeats = is_held ? p->repeats + 1 : 0;
    p->pressed_ns = now_ns;
    p->last = (int)action;
    size_t i = 0;
    while (p->repeats < strides[i].from)
        i++;
    return strides[i].samples;
}

uint64_t gp_ui_tick_ns(const struct gp_ui *ui)
{
    const uint64_t interval_ns = ui->prefs.interval_ns;
    if (!ui->outside.player)
        return interval_ns;
    const struct gp_player_state state = state_of(ui);
    const uint64_t least_ns = TICK_MIN_MS * GP_NS_PER_MS;
    if (state.is_paused || state.is_at_end || state.speed <= 0)
        return interval_ns;
    const uint64_t tick_ns = (uint64_t)((double)interval_ns / state.speed);
    return tick_ns > least_ns ? tick_ns : interval_ns < least_ns ? interval_ns : least_ns;
}

static void change_speed(struct gp_ui *ui, double factor)
{
    struct gp_player *player = ui->outside.player;
    const double speed = state_of(ui).speed * factor;
    if (speed < SPEED_MIN || speed > SPEED_MAX)
        return;
    player->ops->set_speed(player, speed, 0);
    player->ops->set_speed(player, speed, gp_ui_tick_ns(ui));
}

/* The end of the day on which the clock showed this time. */
static uint64_t end_of_day(uint64_t wall_ns)
{
    const time_t seconds = (time_t)(wall_ns / GP_NS_PER_S);
    struct tm tm;
    if (!localtime_r(&seconds, &tm))
        return wall_ns;
    tm.tm_hour = 23;
    tm.tm_min = 59;
    tm.tm_sec = 59;
    tm.tm_isdst = -1;
    const time_t end = mktime(&tm);
    return end > 0 ? (uint64_t)end * GP_NS_PER_S : wall_ns;
}

/* A time of day is that of the day on the screen; if that is not in the recording, the one on the
 * day before or after it. */
static bool parse_time(const struct gp_player_state *state, const char *text, uint64_t *ret_ns)
{
    const uint64_t end_ns = end_of_day(state->wall_ns);
    const uint64_t nows_ns[] = {end_ns, end_ns + DAY_NS,
                                end_ns > DAY_NS ? end_ns - DAY_NS : end_ns};
    if (strstr(text, "ago") || strcmp(text, "now") == 0)
        return gp_parse_time(text, state->now_ns, ret_ns);
    for (size_t i = 0; i < GP_ARRAY_LEN(nows_ns); i++) {
        uint64_t ns;
        if (gp_parse_time(text, nows_ns[i], &ns) && ns >= state->first_ns && ns <= state->last_ns) {
            *ret_ns = ns;
            return true;
        }
    }
    return gp_parse_time(text, end_ns, ret_ns);
}

static void on_time(struct gp_ui *ui, enum gp_edit_step step)
{
    const struct gp_player_state state = state_of(ui);
    uint64_t ns;
    if (step != GP_EDIT_KEPT || !*ui->playback.time)
        return;
    if (parse_time(&state, ui->playback.time, &ns))
        ask(ui, GP_PLAYER_GO, (int64_t)(ns / GP_NS_PER_US));
    else
        gp_ui_say(ui, "'%.40s' is not a time; try 03:10, \"yesterday 03:10\" or \"2h ago\"",
                  ui->playback.time);
}

static void step(struct gp_ui *ui, enum gp_play_action action)
{
    const int64_t samples = stride(ui, action);
    set_paused(ui, true);
    ask(ui, GP_PLAYER_STEP, action == GP_PLAY_BACK ? -samples : samples);
}

bool gp_playback_key(struct gp_ui *ui, int key)
{
    const enum gp_play_action action = ui->outside.player ? action_of(key) : GP_PLAY_NONE;
    switch (action) {
    case GP_PLAY_BACK:
    case GP_PLAY_FORTH:
        step(ui, action);
        break;
    case GP_PLAY_MINUTE_BACK:
    case GP_PLAY_MINUTE_FORTH:
        ask(ui, GP_PLAYER_SHIFT, action == GP_PLAY_MINUTE_BACK ? -MINUTE_US : MINUTE_US);
        break;
    case GP_PLAY_EVENT_BACK:
    case GP_PLAY_EVENT_FORTH:
        set_paused(ui, true);
        ask(ui, GP_PLAYER_EVENT, action == GP_PLAY_EVENT_BACK ? -1 : 1);
        break;
    case GP_PLAY_PAUSE:
        set_paused(ui, !state_of(ui).is_paused);
        break;
    case GP_PLAY_SLOWER:
    case GP_PLAY_FASTER:
        change_speed(ui, action == GP_PLAY_SLOWER ? 0.5 : 2);
        break;
    case GP_PLAY_GO:
        ui->playback.time[0] = '\0';
        gp_ui_edit(ui, ui->playback.time, "go to", on_time);
        break;
    default:
        return false;
    }
    return true;
}

bool gp_playback_click(struct gp_ui *ui, const struct gp_hit *hit, int x)
{
    if (hit->kind != GP_HIT_TIME || !ui->outside.player || hit->w <= 0)
        return false;
    const struct gp_player_state state = state_of(ui);
    const double part = (double)(state.last - state.first) / hit->w;
    ask(ui, GP_PLAYER_SHIFT,
        state.first + (int64_t)(part * ((double)(x - hit->x) + 0.5)) - state.at);
    return true;
}

static const struct {
    enum gp_action action;
    const char *words;
} refused[] = {
    {GP_ACTION_KILL, "signals are only sent to processes of this machine"},
    {GP_ACTION_ADJUST, "settings can only be changed on this machine"},
    {GP_ACTION_ENVIRONMENT, "environments are not recorded"},
};

bool gp_playback_refuses(struct gp_ui *ui, enum gp_action action)
{
    for (size_t i = 0; ui->outside.player && i < GP_ARRAY_LEN(refused); i++)
        if (refused[i].action == action) {
            gp_ui_say(ui, "this is a recording: %s", refused[i].words);
            return true;
        }
    return false;
}

bool gp_playback_hides(const struct gp_ui *ui, enum gp_action action)
{
    bool hides = action_of(gp_action_key(action, gp_ui_is_vi(ui))) != GP_PLAY_NONE;
    for (size_t i = 0; i < GP_ARRAY_LEN(refused); i++)
        hides = hides || refused[i].action == action;
    return ui->outside.player && hides;
}

/* ---- samples ---- */

struct filling {
    struct gp_history *history;
    uint64_t lasts_ns, oldest_ns;
};

static void on_past(void *ctx, const struct gp_snapshot *snapshot)
{
    struct filling *filling = ctx;
    if (filling->oldest_ns == 0)
        filling->oldest_ns = snapshot->mono_ns;
    gp_history_add(filling->history, snapshot, filling->lasts_ns);
}

/* Fills the graphs with what was recorded before this sample: as much as is quickly read. */
static void fill_history(struct gp_ui *ui, const struct gp_snapshot *snapshot, uint64_t lasts_ns)
{
    struct gp_ui_playback *p = &ui->playback;
    struct filling filling = {&ui->history, lasts_ns, 0};
    const uint64_t before_ns = gp_clock_mono_ns();
    p->past = p->past ? p->past : PAST_MAX;
    gp_history_cut(&ui->history, 0);
    ui->outside.player->ops->past(ui->outside.player, p->past, ui->prefs.interval_ns, on_past,
                                  &filling);
    const uint64_t took_ns = gp_clock_mono_ns() - before_ns;
    if (took_ns > PAST_MS * GP_NS_PER_MS)
        p->past = p->past / 2 + 1;
    else if (took_ns < PAST_MS * GP_NS_PER_MS / 4 && p->past < PAST_MAX)
        p->past *= 2;
    p->known_from_ns = filling.oldest_ns ? filling.oldest_ns : snapshot->mono_ns;
}

void gp_playback_add_history(struct gp_ui *ui, const struct gp_snapshot *snapshot)
{
    const struct gp_player_state state = state_of(ui);
    const struct gp_snapshot *before = ui->newest ? ui->newest : ui->snapshot;
    const uint64_t interval_ns = ui->prefs.interval_ns;
    const uint64_t now_ns = snapshot->mono_ns;
    const uint64_t summary_ns = (uint64_t)state.step_us * GP_NS_PER_US;
    const uint64_t tick_ns = gp_ui_tick_ns(ui);
    uint64_t lasts_ns = (uint64_t)((double)tick_ns * state.speed);
    if (before && before->mono_ns == now_ns)
        return;
    lasts_ns = lasts_ns < interval_ns ? interval_ns : lasts_ns;
    lasts_ns = lasts_ns < summary_ns ? summary_ns : lasts_ns;
    const bool is_leap =
        !before || (now_ns > before->mono_ns && now_ns - before->mono_ns > LEAP_TICKS * lasts_ns);
    const uint64_t wanted_ns = PAST_MAX / 4 * interval_ns;
    if (is_leap || (now_ns < before->mono_ns && now_ns < ui->playback.known_from_ns + wanted_ns))
        fill_history(ui, snapshot, lasts_ns);
    else if (now_ns < before->mono_ns)
        gp_history_cut(&ui->history, now_ns);
    gp_history_add(&ui->history, snapshot, lasts_ns);
    if (!before) /* the timeline is not read yet */
        ask(ui, GP_PLAYER_SHIFT, 0);
}

/* ---- the lines at the bottom ---- */

int gp_playback_lines(const struct gp_ui *ui, int height)
{
    return !ui->outside.player ? 0 : height >= BOTH_FROM ? 2 : 1;
}

/* "5s", "12m", "21h", "3d" */
static void add_age(struct gp_strbuf *sb, uint64_t seconds)
{
    static const struct {
        uint64_t from, unit;
        const char *letter;
    } units[] = {{172800, 86400, "d"}, {7200, 3600, "h"}, {120, 60, "m"}, {0, 1, "s"}};
    size_t i = 0;
    while (seconds < units[i].from)
        i++;
    gp_strbuf_addf(sb, "%llu%s ago", (unsigned long long)(seconds / units[i].unit),
                   units[i].letter);
}

static const char paused[] = "PAUSED";

static void add_speed(struct gp_strbuf *sb, double speed)
{
    gp_strbuf_addf(sb, speed < 1 ? "playing %.2gx" : "playing %.0fx", speed);
}

/* "PAUSED · 2026-11-27 03:10:05", with tenths where there are ten samples a second */
static void add_place(struct gp_strbuf *sb, const struct gp_player_state *state)
{
    char time[GP_RFC3339_SIZE];
    if (state->is_paused)
        gp_strbuf_adds(sb, paused);
    else if (state->is_at_end)
        gp_strbuf_adds(sb, state->is_growing ? "recording now" : "end of the recording");
    else
        add_speed(sb, state->speed);
    gp_clock_plain(state->wall_ns, time);
    time[strlen(state->is_moment ? "2026-11-20 15:04:05.1" : "2026-11-20 15:04:05")] = '\0';
    gp_strbuf_addf(sb, " · %s", time);
}

/* " · 21h ago · summary of 10s" */
static void add_kind(struct gp_strbuf *sb, const struct gp_player_state *state)
{
    const uint64_t age_ns = state->now_ns > state->wall_ns ? state->now_ns - state->wall_ns : 0;
    gp_strbuf_adds(sb, " · ");
    add_age(sb, age_ns / GP_NS_PER_S);
    if (state->is_hole)
        gp_strbuf_adds(sb, " · nothing recorded");
    else if (state->step_us > 0)
        gp_strbuf_addf(sb, " · summary of %llds", (long long)(state->step_us / 1000000));
    else
        gp_strbuf_adds(sb, state->is_moment ? " · sample of an incident" : " · sample");
}

/* If there is no room for all of it, an answer is more important than the kind of the sample. */
static void draw_status(const struct gp_box *box, const struct gp_player_state *state)
{
    char room[256] = "";
    struct gp_strbuf sb = GP_STRBUF_ON(room, sizeof(room) - 1);
    const size_t needed = state->note[0] ? strlen(" · ") + gp_utf8_width(state->note) : 0;
    add_place(&sb, state);
    const size_t place = sb.len;
    add_kind(&sb, state);
    if (needed && gp_utf8_width(sb.buf) + needed > (size_t)box->w && !state->is_hole)
        sb.buf[place] = '\0';
    int x = gp_draw(box, 1, 0, state->is_hole ? GP_INK_HIGH : GP_INK_STRONG, sb.buf);
    if (state->is_paused)
        (void)gp_draw(box, 1, 0, GP_INK_PAUSED, paused);
    if (!needed)
        return;
    x = gp_draw(box, x, 0, GP_INK_PLAIN, " · ");
    if (x < box->w)
        gp_draw_left(box, x, 0, box->w - x, GP_INK_MEDIUM, state->note);
}

/* How a time at an end of the timeline is written, by the length of the recording. */
static const struct edge {
    uint64_t from_ns;
    size_t begin, end; /* in "2026-11-20 15:04:05" */
} edges[] = {
    {DAY_NS * 300, 0, 10},     /* 2026-11-20 */
    {DAY_NS / 2, 5, 16},       /* 11-20 15:04 */
    {DAY_NS / 24 / 6, 11, 16}, /* 15:04 */
    {0, 11, 19},
};

static const struct edge *edge_of(const struct gp_player_state *state)
{
    const uint64_t ns = state->last_ns > state->first_ns ? state->last_ns - state->first_ns : 0;
    const struct edge *edge = edges;
    while (ns < edge->from_ns)
        edge++;
    return edge;
}

static void draw_edge(const struct gp_box *box, int x, const struct edge *edge, uint64_t wall_ns)
{
    char time[GP_RFC3339_SIZE];
    gp_clock_plain(wall_ns, time);
    time[edge->end] = '\0';
    (void)gp_draw(box, x, 0, GP_INK_DIM, time + edge->begin);
}

/* Events that are no faults are only marked where they are few. */
static bool has_few_events(const struct gp_player_part *parts, size_t count)
{
    size_t events = 0;
    for (size_t i = 0; i < count; i++)
        events += parts[i].has_event;
    return events <= count / 4;
}

static void draw_part(const struct gp_box *box, int x, const struct gp_player_part *part,
                      bool marks_all, bool is_here)
{
    const int permille = (int)(part->load * 1000);
    enum gp_ink ink = GP_INK_DIM;
    uint32_t cp = part->is_known ? NOTHING : ' ';
    if (part->load >= 0) {
        ink = gp_load_ink(GP_SERIES_GPU, permille);
        cp = (uint32_t)(BLOCK + (permille * (EIGHTHS - 1) + 500) / 1000);
    }
    if (part->has_fault) {
        ink = GP_INK_CRITICAL;
        cp = '!';
    } else if (part->has_event && marks_all) {
        ink = GP_INK_STRONG;
        cp = MARK;
    }
    gp_draw_fill(box, x, 0, 1, is_here ? GP_INK_SELECTED : ink, cp);
}

static void draw_timeline(struct gp_ui *ui, const struct gp_box *box,
                          const struct gp_player_state *state)
{
    struct gp_player_part parts[GP_PLAYER_PARTS];
    const struct edge *edge = edge_of(state);
    const int width = (int)(edge->end - edge->begin);
    int w = box->w - 2 * (width + 2);
    w = w > GP_PLAYER_PARTS ? GP_PLAYER_PARTS : w;
    if (w < WIDTH_MIN)
        return;
    ui->outside.player->ops->parts(ui->outside.player, parts, (size_t)w);
    const struct gp_box middle = gp_box_part(box, width + 2, 0, w, 1);
    const double part = (double)(state->last - state->first + 1) / w;
    const int here = (int)((double)(state->at - state->first) / part);
    const bool marks_all = has_few_events(parts, (size_t)w);
    draw_edge(box, 1, edge, state->first_ns);
    for (int i = 0; i < w; i++)
        draw_part(&middle, i, &parts[i], marks_all, i == here);
    draw_edge(box, width + w + 3, edge, state->last_ns);
    gp_hits_add(&ui->hits, &middle, GP_HIT_TIME, 0);
}

void gp_playback_draw(struct gp_ui *ui, const struct gp_box *box)
{
    const struct gp_player_state state = state_of(ui);
    if (!state.is_known || box->h < 1)
        return;
    for (int y = 0; y < box->h; y++)
        gp_draw_fill(box, 0, y, box->w, GP_INK_PLAIN, ' ');
    if (box->h >= 2) {
        const struct gp_box line = gp_box_part(box, 0, 0, box->w, 1);
        draw_timeline(ui, &line, &state);
    }
    const struct gp_box line = gp_box_part(box, 0, box->h - 1, box->w, 1);
    draw_status(&line, &state);
}

int gp_playback_draw_keys(const struct gp_ui *ui, const struct gp_box *box, int x)
{
    const bool is_paused = ui->outside.player && state_of(ui).is_paused;
    const struct {
        const char *keys, *word;
    } shown[] = {{"Space", is_paused ? "play " : "pause"}, /* as wide */
                 {"[ ]", "step"},
                 {". ,", "event"},
                 {"g", "time"},
                 {"+ -", "speed"}};
    for (size_t i = 0; ui->outside.player && i < GP_ARRAY_LEN(shown); i++) {
        x = gp_draw(box, x, 0, GP_INK_KEY, shown[i].keys);
        x = gp_drawf(box, x, 0, GP_INK_PLAIN, ":%s", shown[i].word) + 1;
    }
    return x;
}
