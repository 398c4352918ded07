/* Pages made from what is already known: keys, and the resource use of gpulse. */
#include "tui/screen.h"

#include "base/clock.h"
#include "base/io.h"
#include "tui/playback.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- help ---- */

static void fill_help(struct gp_ui *ui)
{
    struct gp_page *page = &ui->text;
    gp_page_clear(page);
    if (ui->outside.player) {
        for (int a = 1; a < GP_PLAY__COUNT; a++)
            gp_page_add(page, GP_INK_PLAIN, gp_play_keys((enum gp_play_action)a),
                        gp_play_help((enum gp_play_action)a));
        gp_page_head(page, "other keys");
    }
    for (int a = 1; a < GP_ACTION__COUNT; a++) {
        char keys[32];
        char vi = gp_ui_is_vi(ui) ? gp_action_vi_letter((enum gp_action)a) : '\0';
        (void)snprintf(keys, sizeof(keys), vi ? "%s %c" : "%s", gp_action_keys((enum gp_action)a),
                       vi);
        gp_page_add(page, GP_INK_PLAIN, keys, gp_action_help((enum gp_action)a));
    }
    gp_page_head(page, "mouse");
    gp_page_add(page, GP_INK_PLAIN, "click",
                "select a GPU or a process, or press a key in the bottom line");
    gp_page_add(page, GP_INK_PLAIN, "click heading", "sort by the column; again: reverse");
    gp_page_add(page, GP_INK_PLAIN, "double click", "show all details");
    gp_page_add(page, GP_INK_PLAIN, "wheel", "moves");
    gp_page_add(page, GP_INK_PLAIN, "Shift+drag", "select text for the clipboard");
    gp_page_head(page, "letters next to a GPU");
    gp_page_add(page, GP_INK_PLAIN, "!", "does not respond");
    gp_page_add(page, GP_INK_PLAIN, "R", "the driver requests a reset or a reboot");
    gp_page_add(page, GP_INK_PLAIN, "T P S", "clocks limited by heat, power, sync boost");
    gp_page_head(page, "processes");
    for (int c = 0; c < GP_PROC_COLUMN__COUNT; c++)
        gp_page_add(page, GP_INK_PLAIN, gp_proc_column_table[c].title,
                    gp_proc_column_table[c].help);
}

const struct gp_screen gp_screen_help = {.key = gp_page_screen_key,
                                         .draw = gp_page_screen_draw,
                                         .fill = fill_help,
                                         .title = "keys · q back"};

/* ---- cost ---- */

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
