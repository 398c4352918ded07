#include "tui/alert_line.h"

#include "base/utf8.h"
#include "tui/alerts.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the text up to the last of these separators at or before `to`; 0 without one. */
static size_t before_last(const char *text, size_t to, const char *separator)
{
    const size_t n = strlen(separator);
    while (to > 0 && strncmp(text + to, separator, n) != 0)
        to--;
    return to;
}

void gp_alert_line(const struct gp_alert *alert, size_t more, int w, char ret[GP_ALERT_LINE_SIZE])
{
    char count[32] = "";
    char text[sizeof(alert->text) + sizeof(alert->next) + 8];
    const bool has_next = alert->next[0];
    (void)snprintf(text, sizeof(text), "%s%s%s", alert->text, has_next ? " · " : "", alert->next);
    if (more > 0)
        (void)snprintf(count, sizeof(count), " (+%zu)", more);
    const int room = w - 4 - (int)strlen(count); /* 4: blanks and the mark */
    const char *end = "";
    for (size_t at = strlen(text); (int)gp_utf8_width(text) > room && at > 0;) {
        at = before_last(text, at - 1, " · ");
        text[at ? at : strlen(text)] = '\0';
    }
    for (size_t at = strlen(text); (int)gp_utf8_width(text) + (*end != '\0') > room && at > 0;) {
        at = before_last(text, at - 1, " ");
        text[at] = '\0';
        end = "…";
    }
    if (*end && !strchr(text, ' ')) /* "GPU…" names none */
        text[0] = '\0';
    if (text[0])
        (void)snprintf(ret, GP_ALERT_LINE_SIZE, " ! %s%s%s ", text, end, count);
    else
        (void)snprintf(ret, GP_ALERT_LINE_SIZE, " ! %zu ", more + 1);
}

/* ---- several ---- */

enum { BRIEF_SIZE = 48 };

/* "GPU 3 memory errors", or only what it is if the one before is of the same GPU. */
static void brief_of(const struct gp_alert *alert, const struct gp_alert *before,
                     char ret[BRIEF_SIZE])
{
    if (before->gpu == alert->gpu)
        (void)snprintf(ret, BRIEF_SIZE, "%s", alert->brief);
    else
        (void)snprintf(ret, BRIEF_SIZE, "GPU %u %s", alert->gpu, alert->brief);
}

/* What separates it from the one before: the first one ends in a blank. */
static const char *gap_before(size_t i)
{
    return i > 1 ? " · " : "· ";
}

/* " (+2)", and the blank at the end. */
static void count_of(size_t more, char ret[24])
{
    (void)snprintf(ret, 24, more > 0 ? " (+%zu) " : " ", more);
}

/* How many of the alerts after the first one fit into w columns, in brief. Sets the columns that
 * they take, with the count of the others. */
static size_t fitting(const struct gp_alert *list, size_t count, size_t found, int w, int *ret_w)
{
    size_t fit = 0;
    int used = 0;
    *ret_w = 0;
    for (size_t i = 1; i < count; i++) {
        char text[BRIEF_SIZE];
        char rest[24];
        brief_of(&list[i], &list[i - 1], text);
        count_of(found - i - 1, rest);
        used += (int)(gp_utf8_width(gap_before(i)) + gp_utf8_width(text));
        if (used + (int)strlen(rest) > w)
            continue;
        *ret_w = used + (int)strlen(rest);
        fit = i;
    }
    return fit;
}

/* Without what to do next, and all but the first part of the text. */
static struct gp_alert first_part(const struct gp_alert *alert)
{
    struct gp_alert part = *alert;
    char *end = strstr(part.text, " · ");
    part.next[0] = '\0';
    if (end)
        *end = '\0';
    return part;
}

void gp_draw_alerts(const struct gp_box *box, const struct gp_alert *list, size_t count,
                    size_t found)
{
    char first[GP_ALERT_LINE_SIZE];
    char rest[24];
    int w;
    gp_alert_line(&list[0], 0, box->w, first);
    size_t fit = fitting(list, count, found, box->w - (int)gp_utf8_width(first), &w);
    if (fit + 1 < found) { /* the others matter more than what else there is to say of it */
        const struct gp_alert part = first_part(&list[0]);
        gp_alert_line(&part, 0, box->w, first);
        fit = fitting(list, count, found, box->w - (int)gp_utf8_width(first), &w);
    }
    if (fit == 0) {
        gp_alert_line(&list[0], found - 1, box->w, first);
        const bool fits = (int)gp_utf8_width(first) <= box->w;
        gp_draw_right(box, 0, 0, box->w, list[0].ink, fits ? first : "!");
        return;
    }
    int x = gp_draw(box, box->w - w - (int)gp_utf8_width(first), 0, list[0].ink, first);
    for (size_t i = 1; i <= fit; i++) {
        char text[BRIEF_SIZE];
        brief_of(&list[i], &list[i - 1], text);
        x = gp_draw(box, x, 0, GP_INK_DIM, gap_before(i));
        x = gp_draw(box, x, 0, list[i].ink, text);
    }
    count_of(found - fit - 1, rest);
    (void)gp_draw(box, x, 0, GP_INK_HIGH, rest);
}
