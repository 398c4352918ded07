/* gpulse-diff: compares two recordings, or two jobs. */
#include "cmd/app.h"
#include "cmd/diff.h"
#include "cmd/diff_job.h"
#include "cmd/record_background.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "base/when.h"
#include "tape/diff.h"
#include "tape/diff_gather.h"
#include "tape/diff_report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct gp_cmd command = {
    .name = "diff", .usage = "[options] BEFORE AFTER", .options = gp_diff_table};

enum { DIFFERENT = 1, TROUBLE = 2 };

/* ---- what is compared ---- */

/* An argument: FILE, FILE@FROM..TO or @FROM..TO. */
struct place {
    char file[GP_PATH_SIZE];
    int64_t from_us, to_us; /* 0: not given */
};

static int parse_time(const char *word, const char *text, int64_t *ret_us, struct gp_err *err)
{
    uint64_t ns = 0;
    if (*text && !gp_parse_since(text, gp_clock_wall_ns(), &ns))
        return gp_err_set(err, GP_EUSAGE,
                          "'%.100s': '%.60s' is not a time; try 03:10, \"yesterday 03:10\", "
                          "2026-11-26T03:10 or 2h",
                          word, text);
    *ret_us = (int64_t)(ns / GP_NS_PER_US);
    return 0;
}

static int parse_times(const char *word, const char *times, struct place *place, struct gp_err *err)
{
    char from[80];
    const char *dots = strstr(times, "..");
    if (!dots || (size_t)(dots - times) >= sizeof(from))
        return gp_err_set(err, GP_EUSAGE, "'%.100s': FROM..TO must follow the @", word);
    (void)snprintf(from, sizeof(from), "%.*s", (int)(dots - times), times);
    int r = parse_time(word, from, &place->from_us, err);
    if (r == 0)
        r = parse_time(word, dots + 2, &place->to_us, err);
    if (r == 0 && place->to_us > 0 && place->to_us <= place->from_us)
        return gp_err_set(err, GP_EUSAGE, "'%.100s' ends before it begins", word);
    return r;
}

/* A file whose name has an @ is that file. */
static int parse_place(const char *word, struct place *ret, struct gp_err *err)
{
    const char *at = strrchr(word, '@');
    const size_t len = at ? (size_t)(at - word) : strlen(word);
    *ret = (struct place){.from_us = 0};
    if (strlen(word) >= sizeof(ret->file))
        return gp_err_set(err, GP_EUSAGE, "'%.60s…' is too long for a path", word);
    if (!at || access(word, F_OK) == 0) {
        (void)snprintf(ret->file, sizeof(ret->file), "%s", word);
        return 0;
    }
    (void)snprintf(ret->file, sizeof(ret->file), "%.*s", (int)len, word);
    int r = len == 0 ? gp_record_own_file(ret->file, err) : 0;
    return r < 0 ? r : parse_times(word, at + 1, ret, err);
}

static int read_side(const char *word, struct gp_diff_side *ret, struct gp_err *err)
{
    struct place place;
    struct stat st;
    if (stat(word, &st) == 0 && S_ISDIR(st.st_mode))
        return gp_diff_job(word, ret, err);
    int r = parse_place(word, &place, err);
    return r < 0 ? r : gp_diff_gather(place.file, word, place.from_us, place.to_us, ret, err);
}

/* Drops the GPUs that were not selected with -i. */
static int select_gpus(struct gp_diff_side *side, struct gp_err *err)
{
    struct gp_selection room;
    struct gp_selection *selection;
    int r = gp_selection_parse_any(gp_common()->id, &room, &selection, err);
    if (r < 0 || !selection)
        return r;
    for (size_t i = side->gpu_count; i-- > 0;) {
        const struct gp_diff_gpu *gpu = &side->gpus[i];
        char *rest;
        const unsigned index = (unsigned)strtoul(gpu->label, &rest, 10);
        const struct gp_identity identity = {
            .uuid = gpu->uuid,
            .name = gpu->name,
            .is_mig = *rest == ':',
            .gpu = index,
            .mig_index = *rest == ':' ? (unsigned)strtoul(rest + 1, NULL, 10) : 0,
        };
        if (!gp_selection_matches(selection, index, &identity))
            gp_diff_side_drop(side, i);
    }
    return side->gpu_count > 0 ? 0
                               : gp_err_set(err, GP_ENODEV, "no GPU in '%.200s' matches -i %.60s",
                                            side->source, gp_common()->id);
}

static int gather(const char *word, struct gp_diff_side *ret, struct gp_err *err)
{
    int r = read_side(word, ret, err);
    if (r < 0)
        return r;
    r = select_gpus(ret, err);
    if (r < 0)
        gp_diff_side_fini(ret);
    return r;
}

/* ---- the output ---- */

static int print(const struct gp_diff *diff, const struct gp_diff_options *o, struct gp_err *err)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(64 << 20);
    if (strcmp(o->format, "json") == 0)
        gp_diff_report_add_json(&sb, diff, o->all);
    else
        gp_diff_report_add(&sb, diff, o->all, gp_io_columns());
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}

static int compare(const struct gp_diff_side *before, const struct gp_diff_side *after,
                   const struct gp_diff_options *o, int *ret_status, struct gp_err *err)
{
    struct gp_diff diff;
    int r = gp_diff_compare(before, after, &diff, err);
    if (r < 0)
        return r;
    r = print(&diff, o, err);
    *ret_status = gp_diff_has_changes(&diff, o->all) ? DIFFERENT : diff.tests > 0 ? 0 : TROUBLE;
    gp_diff_fini(&diff);
    return r;
}

static int run(const struct gp_diff_options *o, int count, char **argv, int *ret_status,
               struct gp_err *err)
{
    struct gp_diff_side before;
    struct gp_diff_side after;
    if (count != 2)
        return gp_err_set(err, GP_EUSAGE,
                          "diff compares two recordings; usage: gpulse diff BEFORE AFTER");
    int r = gather(argv[1], &before, err);
    if (r < 0)
        return r;
    r = gather(argv[2], &after, err);
    if (r == 0) {
        r = compare(&before, &after, o, ret_status, err);
        gp_diff_side_fini(&after);
    }
    gp_diff_side_fini(&before);
    return r;
}

int main(int argc, char **argv)
{
    struct gp_diff_options o = {.format = "text"};
    struct gp_err err = {0};
    int positional;
    int status = 0;
    bool done;
    gp_app_init_helper(&command);
    (void)signal(SIGPIPE, SIG_DFL);
    int r = gp_app_parse(&command, argc, argv, &o, &positional, &done, &err);
    if (r == 0 && !done)
        r = run(&o, positional, argv, &status, &err);
    if (r < 0 && err.code)
        gp_app_print_error(&err);
    return r < 0 ? TROUBLE : status;
}
