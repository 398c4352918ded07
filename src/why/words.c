#include "why/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gp_why_put(char text[GP_WHY_TEXT_SIZE], const char *fmt, ...)
{
    va_list args;
    size_t length = strlen(text);
    va_start(args, fmt);
    (void)vsnprintf(text + length, GP_WHY_TEXT_SIZE - length, fmt, args);
    va_end(args);
}

static const char *plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

struct gp_why_pid gp_why_pid(const struct gp_why_case *c)
{
    struct gp_why_pid pid = {"PID"};
    if (!c->is_over)
        (void)snprintf(pid.text, sizeof(pid.text), "%u", c->pid);
    return pid;
}

void gp_why_put_busy(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE])
{
    gp_why_put(text, "GPU busy %.0f %% of the time", gp_why_mean(c, GP_WHY_UTILIZATION));
}

void gp_why_put_host(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE])
{
    const struct gp_tasks_use *h = &c->host;
    if (h->knows_threads)
        gp_why_put(text, "; main thread busy %.0f %%", 100 * h->main);
    else
        gp_why_put(text, "; the job kept %.1f CPUs busy", h->cpus);
    if (h->workers > 0)
        gp_why_put(text, ", %u worker%s with %.1f CPUs", h->workers, plural(h->workers),
                   h->workers_cpus);
}

void gp_why_put_power(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE])
{
    if (gp_why_is_known(gp_why_power_share(c)))
        gp_why_put(text, ", power %.0f of %.0f W", gp_why_mean(c, GP_WHY_POWER),
                   gp_why_mean(c, GP_WHY_POWER_LIMIT));
}

void gp_why_put_percent(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE], const char *what,
                        enum gp_why_series series)
{
    if (gp_why_is_known(gp_why_mean(c, series)))
        gp_why_put(text, ", %s %.0f %%", what, gp_why_mean(c, series));
}

void gp_why_put_clock(const struct gp_why_case *c, char text[GP_WHY_TEXT_SIZE])
{
    if (gp_why_is_known(gp_why_clock_share(c)))
        gp_why_put(text, "SM clock %.0f of %.0f MHz", gp_why_mean(c, GP_WHY_CLOCK),
                   gp_why_mean(c, GP_WHY_CLOCK_MAX));
}
