#include "tui/alert_line.h"

#include "base/utf8.h"
#include "tui/alerts.h"

#include <stdio.h>
#include <string.h>

enum {
    BRIEF_SIZE = 48,
    EDGES = 4, /* columns of the mark and the blanks */
};

static const char dot[] = " · ";

static int width_of(const char *text)
{
    return (int)gp_utf8_width(text);
}

/* "GPU 3 memory errors" */
static void brief_of(const struct gp_alert *alert, char ret[BRIEF_SIZE])
{
    (void)snprintf(ret, BRIEF_SIZE, "GPU %u %s", alert->gpu, alert->brief);
}

/* " (+2)" */
static void count_of(size_t more, char ret[32])
{
    (void)snprintf(ret, 32, more > 0 ? " (+%zu)" : "", more);
}

/* ---- one ---- */

void gp_alert_line(const struct gp_alert *alert, int w, char ret[GP_ALERT_LINE_SIZE])
{
    char text[sizeof(alert->text) + sizeof(alert->next) + 8];
    (void)snprintf(text, sizeof(text), "%s%s%s", alert->text, alert->next[0] ? dot : "",
                   alert->next);
    while (width_of(text) > w - EDGES) {
        char *end = NULL;
        for (char *at = text; (at = strstr(at, dot)); at++)
            end = at;
        if (!end)
            break;
        *end = '\0';
    }
    if (width_of(text) > w - EDGES)
        brief_of(alert, text);
    (void)snprintf(ret, GP_ALERT_LINE_SIZE, width_of(text) > w - EDGES ? " ! 1 " : " ! %s ", text);
}

/* ---- several ---- */

/* What to do, if it helps with all of them. */
static const char *common_next(const struct gp_alert *list, size_t count)
{
    static const char all[] = "gpulse doctor"; /* examines the whole machine */
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].next, list[0].next) != 0)
            return strcmp(list[0].next, all) == 0 ? all : "";
    return list[0].next;
}

/* How many of the alerts fit into w columns, in brief, with the count of the others. Sets the
 * columns that the alerts take. */
static size_t fitting(const struct gp_alert *list, size_t count, size_t found, int w, int *ret_w)
{
    size_t fit = 0;
    int used = 0;
    *ret_w = 0;
    for (size_t i = 0; i < count; i++) {
        char text[BRIEF_SIZE];
        char rest[32];
        brief_of(&list[i], text);
        count_of(found - i - 1, rest);
        used += (i > 0 ? width_of(dot) : 0) + width_of(text);
        if (used + width_of(rest) > w)
            continue;
        *ret_w = used;
        fit = i + 1;
    }
    return fit;
}

/* Where not even the first one fits: what it is, or how many there are. */
static void draw_word(const struct gp_box *box, const struct gp_alert *alert, size_t found)
{
    char text[BRIEF_SIZE + 32];
    (void)snprintf(text, sizeof(text), " ! %s (+%zu) ", alert->brief, found - 1);
    if (width_of(text) > box->w)
        (void)snprintf(text, sizeof(text), " ! %zu ", found);
    gp_draw_right(box, 0, 0, box->w, alert->ink, width_of(text) <= box->w ? text : "!");
}

static void draw_several(const struct gp_box *box, const struct gp_alert *list, size_t count,
                         size_t found)
{
    char rest[32];
    int w;
    const size_t fit = fitting(list, count, found, box->w - EDGES, &w);
    const char *next = fit == found ? common_next(list, count) : "";
    if (fit == 0) {
        draw_word(box, &list[0], found);
        return;
    }
    count_of(found - fit, rest);
    w += EDGES + width_of(rest);
    if (!*next || w + width_of(dot) + width_of(next) > box->w)
        next = "";
    else
        w += width_of(dot) + width_of(next);
    int x = gp_draw(box, box->w - w, 0, GP_INK_PLAIN, " ");
    x = gp_draw(box, x, 0, list[0].ink, "! ");
    for (size_t i = 0; i < fit; i++) {
        char text[BRIEF_SIZE];
        brief_of(&list[i], text);
        x = gp_draw(box, x, 0, GP_INK_DIM, i > 0 ? dot : "");
        x = gp_draw(box, x, 0, list[i].ink, text);
    }
    x = gp_draw(box, x, 0, GP_INK_DIM, *next ? dot : "");
    x = gp_draw(box, x, 0, GP_INK_KEY, next);
    x = gp_draw(box, x, 0, GP_INK_HIGH, rest);
    (void)gp_draw(box, x, 0, GP_INK_PLAIN, " ");
}

void gp_draw_alerts(const struct gp_box *box, const struct gp_alert *list, size_t count,
                    size_t found)
{
    char line[GP_ALERT_LINE_SIZE];
    if (found > 1) {
        draw_several(box, list, count, found);
        return;
    }
    gp_alert_line(&list[0], box->w, line);
    gp_draw_right(box, 0, 0, box->w, list[0].ink, width_of(line) <= box->w ? line : "!");
}
