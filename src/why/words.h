/* Parts of the sentences of verdicts: each appends to a text, and is cut at its end. */
#ifndef GP_WHY_WORDS_H
#define GP_WHY_WORDS_H

#include "why/case.h"

enum { GP_WHY_TEXT_SIZE = 400 };

void gp_why_put(char text[GP_WHY_TEXT_SIZE], const char *fmt, ...) GP_PRINTF(2, 3);

/* Its process, for sentences: "4711", or "PID" if the job is over when they are read. */
struct gp_why_pid {
    char text[12];
};
struct gp_why_pid gp_why_pid(const struct gp_why_case *c);

/* "GPU busy 38 % of the time" */
void gp_why_put_busy(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE]);
/* What the job did on the CPUs: "; main thread busy 12 %, 4 workers with 3.9 CPUs" */
void gp_why_put_host(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE]);
/* The following write nothing about what is unknown. ", power 180 of 700 W" */
void gp_why_put_power(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE]);
/* ", WHAT 12 %": the mean of a series. */
void gp_why_put_percent(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE], const char *what,
                        enum gp_why_series series);
/* "SM clock 1200 of 1980 MHz" */
void gp_why_put_clock(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE]);

#endif
