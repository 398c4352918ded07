/* The alerts in one line, at the right of the line between GPUs and processes. */
#ifndef GP_TUI_ALERT_LINE_H
#define GP_TUI_ALERT_LINE_H

#include "tui/cells.h"

struct gp_alert;

enum { GP_ALERT_LINE_SIZE = 256 };

/* Writes as much of an alert as fits into w columns: " ! text · next ". Whole parts are left out,
 * the last ones before the others; then it is said in brief. Where no word fits, it is a number. */
void gp_alert_line(const struct gp_alert *alert, int w, char ret[GP_ALERT_LINE_SIZE]);

/* Draws them at the right of the box, the most severe first, each in its ink: one as a line,
 * several in brief, and after them what helps with all. There are `found`, of which the list has
 * `count`. What does not fit is counted. */
void gp_draw_alerts(const struct gp_box *box, const struct gp_alert *list, size_t count,
                    size_t found);

#endif
