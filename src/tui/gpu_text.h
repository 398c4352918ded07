/* What the screens say about a GPU: its values as short texts, and what is wrong with it. */
#ifndef GP_TUI_GPU_TEXT_H
#define GP_TUI_GPU_TEXT_H

#include "base/strbuf.h"
#include "model/metric.h"
#include "tui/cells.h"

struct gp_device;
struct gp_track;
struct gp_words;

/* A short text on the stack. */
enum { GP_GPU_TEXT_SIZE = 256 };
#define GP_GPU_TEXT(name)                                                                          \
    char name##_room[GP_GPU_TEXT_SIZE] = "";                                                       \
    struct gp_strbuf name = GP_STRBUF_ON(name##_room, GP_GPU_TEXT_SIZE - 1)

/* The product name without the common prefixes. */
const char *gp_gpu_short_name(const struct gp_device *device);

/* Bytes of the name that fit into w columns and end at a word, of "H100 80GB HBM3" for example the
 * first nine; 0 if the first word is wider. */
size_t gp_gpu_name_fit(const char *name, int w);

/* Each appends "--" for a value that the GPU does not report. */
void gp_gpu_add_index(struct gp_strbuf *sb, const struct gp_device *device);
void gp_gpu_add_number(struct gp_strbuf *sb, const struct gp_device *device, enum gp_metric m,
                       const char *unit);
void gp_gpu_add_gib(struct gp_strbuf *sb, double bytes); /* "4M", "60.1G", "143G" */
void gp_gpu_add_memory(struct gp_strbuf *sb, const struct gp_device *device); /* "60.1/79.6G" */
void gp_gpu_add_power(struct gp_strbuf *sb, const struct gp_device *device);  /* "310/700" */

/* "SM 345 · MEM 2619 MHz ", as wide as it can become, or only that of the SMs. */
void gp_gpu_add_clocks(struct gp_strbuf *sb, const struct gp_device *device, bool both);
/* " 54/700 W", as wide as it can become. */
void gp_gpu_add_watts(struct gp_strbuf *sb, const struct gp_device *device);
/* "54°C mem 62°C fan 30% ", as far as it fits into w columns, as wide as it can become. */
void gp_gpu_add_temperatures(struct gp_words *words, const struct gp_device *device, int w);

/* The limits are the GPU's own thresholds. */
enum gp_ink gp_gpu_temperature_ink(const struct gp_device *device);

/* Of the memory in use: full, held while nothing has run for half a minute, or neither. `track` may
 * be NULL. */
enum gp_ink gp_gpu_memory_ink(const struct gp_device *device, const struct gp_track *track,
                              uint64_t now_ns);

/* Whether a GiB or more is in use by no process that is listed. */
bool gp_gpu_has_orphans(const struct gp_device *device, double *ret_bytes);

/* Why a GPU reports no values; NULL if it does. */
const char *gp_gpu_trouble(const struct gp_device *device);
/* Bytes of it without that function. */
size_t gp_gpu_trouble_words(const char *trouble);
/* Same as gp_gpu_trouble(), but a sleeping GPU is not a problem. */
bool gp_gpu_is_ill(const struct gp_device *device);

/* Draws gp_gpu_trouble() in w columns. If all of it does not fit, what is in brackets or after a
 * semicolon or a colon is left out. Unless `whole`, what is in brackets, which is the function of
 * the driver that hangs, gives way to what to do next. */
void gp_gpu_draw_trouble(const struct gp_box *box, int x, int y, int w, enum gp_ink ink,
                         const struct gp_device *device, bool whole);

/* Whether cards show it in one line: a MIG instance, or a GPU that sleeps. */
bool gp_gpu_is_flat(const struct gp_device *device);

#endif
