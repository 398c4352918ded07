#include "doctor/readers/isaac.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/pyenv.h"

#include <string.h>

/* A directory with its starter, and its version beside that. */
static bool read_folder(struct gp_exam *exam, const char *folder, struct gp_isaac *ret)
{
    char line[128];
    if (!gp_files_exist(&exam->files, gp_exam_text(exam, "%s/isaac-sim.sh", folder)))
        return false;
    bool has_version =
        gp_files_line(&exam->files, gp_exam_text(exam, "%s/VERSION", folder), line, sizeof(line));
    *ret = (struct gp_isaac){
        .path = folder,
        .version = has_version ? gp_exam_text(exam, "%.*s", (int)strcspn(line, "+-"), line) : "",
    };
    return true;
}

/* Those directories of a folder whose names begin so. */
static bool read_below(struct gp_exam *exam, const char *folder, struct gp_isaac *ret)
{
    static const char start[] = "isaac";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], start, sizeof(start) - 1) == 0 &&
            read_folder(exam, gp_exam_text(exam, "%s/%s", folder, names[i]), ret))
            return true;
    return false;
}

bool gp_isaac_find(struct gp_exam *exam, struct gp_isaac *ret)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    const struct gp_homes *homes = gp_homes_of(exam);
    for (size_t i = 0; i < envs->count; i++) {
        const struct gp_pypackage *package = gp_pyenv_package(&envs->list[i], "isaacsim");
        if (!package)
            continue;
        *ret = (struct gp_isaac){
            .path = gp_exam_text(exam, "%s/isaacsim", envs->list[i].site),
            .version = package->version,
        };
        return true;
    }
    for (size_t i = 0; i < homes->count; i++)
        if (read_below(exam, homes->list[i][0] ? homes->list[i] : "/", ret) ||
            read_below(exam, gp_exam_text(exam, "%s/.local/share/ov/pkg", homes->list[i]), ret))
            return true;
    return read_below(exam, "/", ret) || read_below(exam, "/opt", ret); /* in NVIDIA's image: "/" */
}

/* The last file of a folder of logs, "kit_20260530_212307.log": their names are their times. */
static const char *newest_log(struct gp_exam *exam, const char *folder)
{
    char **names;
    const char *newest = NULL;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], "kit_", 4) == 0 && strstr(names[i], ".log") &&
            (!newest || strcmp(names[i], newest) > 0))
            newest = names[i];
    return newest ? gp_exam_text(exam, "%s/%s", folder, newest) : NULL;
}

static const char *crash_in(struct gp_exam *exam, const char *path, const char *library)
{
    enum { MOST = 1 << 20, LINE = 200 };
    static const char fatal[] = "[Fatal]";
    const char *line, *found = NULL;
    size_t length = 0, n;
    const char *text = path ? gp_files_tail(&exam->files, &exam->arena, path, MOST, &length) : NULL;
    struct gp_lines lines = gp_lines_of(text, text ? length : 0);
    while (!found && gp_lines_next(&lines, &line, &n))
        if (memmem(line, n, fatal, sizeof(fatal) - 1) && memmem(line, n, library, strlen(library)))
            found = gp_exam_text(exam, "%.*s", n < LINE ? (int)n : LINE, line);
    return found;
}

const char *gp_isaac_crash(struct gp_exam *exam, const struct gp_isaac *isaac, const char *release,
                           const char *library, const char **ret_path)
{
    const struct gp_homes *homes = gp_homes_of(exam);
    static const char logs[] = "logs/Kit/Isaac-Sim";
    const char *found = NULL;
    *ret_path = newest_log(exam, gp_exam_text(exam, "%s/kit/%s/%s", isaac->path, logs, release));
    found = crash_in(exam, *ret_path, library);
    for (size_t i = 0; i < homes->count && !found; i++) {
        *ret_path = newest_log(
            exam, gp_exam_text(exam, "%s/.nvidia-omniverse/%s/%s", homes->list[i], logs, release));
        found = crash_in(exam, *ret_path, library);
    }
    return found;
}
