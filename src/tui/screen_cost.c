/* The page of the resource use of gpulse. */
#include "tui/screen.h"

#include "base/clock.h"
#include "base/io.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double ms_each(uint64_t ns, uint64_t count)
{
    return count ? (double)ns / (double)count / (double)GP_NS_PER_MS : 0;
}

/* Of this process, in bytes; 0 if unknown. */
static double main_memory(void)
{
    char text[128];
    unsigned long long pages;
    if (gp_io_read("/proc/self/statm", text, sizeof(text)) <= 0 ||
        sscanf(text, "%*u %llu", &pages) != 1)
        return 0;
    long page_bytes = sysconf(_SC_PAGESIZE);
    return (double)pages * (double)page_bytes;
}

static void fill_cost(struct gp_ui *ui)
{
    const struct gp_ui_cost *cost = &ui->cost;
    struct gp_page *page = &ui->text;
    struct rusage usage;
    gp_page_clear(page);
    double wall = (double)(gp_clock_mono_ns() - cost->since_ns) / (double)GP_NS_PER_S;
    if (getrusage(RUSAGE_SELF, &usage) < 0 || wall <= 0)
        return;
    double cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    gp_page_addf(page, GP_INK_PLAIN, "CPU", "%.2f%% of one core, %.2f s in %.0f s",
                 100 * cpu / wall, cpu, wall);
    gp_page_addf(page, GP_INK_PLAIN, "host memory", "%.1f MiB", main_memory() / (1024 * 1024));
    gp_page_addf(page, GP_INK_PLAIN, "samples", "%.2f ms on average, %.2f ms at most, %llu taken",
                 ms_each(cost->ticks_ns, cost->ticks),
                 (double)cost->ticks_max_ns / (double)GP_NS_PER_MS,
                 (unsigned long long)cost->ticks);
    gp_page_addf(page, GP_INK_PLAIN, "frames", "%.2f ms on average, %llu drawn",
                 ms_each(cost->frames_ns, cost->frames), (unsigned long long)cost->frames);
    gp_page_addf(page, GP_INK_PLAIN, "page faults", "%ld, %ld of them from disk",
                 usage.ru_minflt + usage.ru_majflt, usage.ru_majflt);
    gp_page_add(page, GP_INK_DIM, "",
                "the time of a sample is mostly spent waiting for the driver and /proc");
}

const struct gp_screen gp_screen_cost = {.key = gp_page_screen_key,
                                         .draw = gp_page_screen_draw,
                                         .fill = fill_cost,
                                         .title = "resource use of gpulse"};
