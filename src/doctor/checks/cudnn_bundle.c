/* A cuDNN that a program brings, and another release of it in the system: its parts open each other
 * by name, and all must be of one release. A finding of cuda.cudnn. */
#include "doctor/checks/cuda.h"
#include "doctor/checks/log_show.h"
#include "doctor/exam.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/log.h"
#include "doctor/readers/pypackage.h"
#include "doctor/readers/searchpath.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <string.h>

enum { FOLDERS_MAX = 400, DEPTH = 4 };

struct bundle {
    const char *folder, *version, *where; /* where: what shows the version */
    size_t looked, count;
};

/* The version that the wheel has from which a program unpacked it: its folder of metadata. */
static const char *wheel_version(struct gp_exam *exam, const char *folder, const char **ret_where)
{
    char **names, name[GP_PYPACKAGE_NAME], version[GP_PYPACKAGE_VERSION];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n; i++) {
        if (strncmp(names[i], "nvidia_cudnn_cu", 15) != 0 || !strstr(names[i], ".dist-info") ||
            !gp_pypackage_split(names[i], name, version))
            continue;
        *ret_where = gp_exam_text(exam, "%s/%s", folder, names[i]);
        return gp_exam_text(exam, "%s", version);
    }
    return "";
}

/* By the name of the file, or else of the wheel; "": unknown. */
static const char *version_in(struct gp_exam *exam, const char *folder, const char *library,
                              const char **ret_where)
{
    char real[GP_PATH_SIZE];
    *ret_where = gp_exam_text(exam, "%s/%s", folder, library);
    if (gp_files_real(&exam->files, *ret_where, real) && strchr(gp_library_version(real), '.'))
        return gp_exam_text(exam, "%s", gp_library_version(real));
    const char *slash = strrchr(folder, '/');
    const char *version = wheel_version(exam, folder, ret_where);
    return version[0]
               ? version
               : wheel_version(exam, gp_exam_text(exam, "%.*s", (int)(slash - folder), folder),
                               ret_where);
}

/* Whether both are of one release: a wheel has a fourth number, "9.21.0.82". */
static bool is_same(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), least = n < m ? n : m;
    return strncmp(a, b, least) == 0 && (n == m || (n < m ? b : a)[least] == '.');
}

/* Whether its parts find each other in the folder whatever the system has: by the names without a
 * version, which they ask for first, or by those of an environment of conda. */
static bool is_complete(struct gp_exam *exam, const char *folder)
{
    return (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/libcudnn.so", folder)) &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "%s/libcudnn_graph.so", folder))) ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/../conda-meta", folder));
}

/* All of cuDNN in a folder of a program, of another release than the system's. */
static void look_into(struct gp_exam *exam, const char *folder, const char *library,
                      const char *version, struct bundle *ret)
{
    const char *const part = gp_exam_text(exam, "%s/libcudnn_graph%s", folder, library + 8);
    const char *where, *own;
    if (!gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, library)) ||
        !gp_files_exist(&exam->files, part) || is_complete(exam, folder) ||
        (ret->folder && strcmp(ret->folder, folder) == 0))
        return;
    own = version_in(exam, folder, library, &where);
    if (!own[0] || is_same(own, version))
        return;
    ret->count++;
    ret->folder = gp_exam_text(exam, "%s", folder);
    ret->version = own;
    ret->where = where;
}

static void look_below(struct gp_exam *exam, const char *folder, unsigned depth,
                       const char *library, const char *version, struct bundle *ret)
{
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && ret->looked < FOLDERS_MAX; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        struct stat st;
        if (names[i][0] == '.' || strcmp(names[i], "containers") == 0 ||
            strcmp(names[i], "site-packages") == 0 ||
            gp_files_stat_link(&exam->files, path, &st) != 0 || !S_ISDIR(st.st_mode))
            continue;
        ret->looked++;
        look_into(exam, path, library, version, ret);
        if (depth > 1)
            look_below(exam, path, depth - 1, library, version, ret);
    }
}

/* Where programs keep what they have downloaded, and where they are unpacked. */
static void find(struct gp_exam *exam, const char *library, const char *version, struct bundle *ret)
{
    const struct gp_homes *homes = gp_homes_of(exam);
    *ret = (struct bundle){0};
    for (size_t i = 0; i < homes->count; i++)
        look_below(exam, gp_exam_text(exam, "%s/.local/share", homes->list[i]), DEPTH, library,
                   version, ret);
    look_below(exam, "/opt", 2, library, version, ret);
}

/* Whether LD_LIBRARY_PATH has the folder. */
static bool is_searched(const struct gp_exam *exam, const char *wanted)
{
    const char *list = gp_machine_variable(&exam->machine, "LD_LIBRARY_PATH");
    char folder[GP_PATH_SIZE];
    while (list && gp_search_path_next(&list, ":", folder))
        if (strcmp(folder, wanted) == 0)
            return true;
    return false;
}

/* A logged error that says so; others of its kind may be of a cuDNN that is too old. */
static const struct gp_log_known *logged(struct gp_exam *exam)
{
    const struct gp_log *log = gp_log_of(exam);
    for (size_t i = 0; i < log->known_count; i++)
        if (strcmp(log->known[i].id, "cudnn.version") == 0 &&
            strstr(log->known[i].text, "SUBLIBRARY_VERSION_MISMATCH"))
            return &log->known[i];
    return NULL;
}

/* Whether the program that logged it is the one with the folder: "koharu[900]: …" for one below
 * ~/.local/share/Koharu. Otherwise it may be of another one. */
static bool is_logged_by(struct gp_exam *exam, const struct gp_log_known *known, const char *folder)
{
    size_t length = strcspn(known->text, "[: ");
    const char *name = gp_exam_text(exam, "/%.*s/", (int)length, known->text);
    return length > 0 && strcasestr(folder, name);
}

static void fix(struct gp_exam *exam, const struct bundle *bundle, const char *system)
{
    const char *folder = gp_exam_quoted(exam, bundle->folder);
    unsigned major = gp_version_major(bundle->version);
    gp_exam_remedy(exam, GP_REMEDY_REMOVE_CUDNN, NULL, NULL);
    gp_exam_advice(exam,
                   "or have both of one release: cuDNN %s in place of %s in the system, or a "
                   "release of the program with that one",
                   bundle->version, system);
    gp_exam_advice(exam, "or, if the system's must stay, let the program find all names in its own "
                         "folder first:");
    if (!gp_files_exist(&exam->files, gp_exam_text(exam, "%s/libcudnn.so", bundle->folder)))
        gp_exam_command(exam, "the names without a version",
                        "(cd %s && for f in libcudnn*.so.%u; do ln -s \"$f\" \"${f%%.%u}\"; done)",
                        folder, major, major);
    if (!is_searched(exam, bundle->folder))
        gp_exam_command(exam, "in the shell that starts it",
                        "export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", folder);
}

bool gp_check_cudnn_bundle(struct gp_exam *exam, const char *path, const char *version)
{
    struct bundle bundle;
    unsigned major = gp_version_major(version);
    if (major < 9 || !strchr(version, '.'))
        return false; /* the parts of older ones have other names */
    const struct gp_log_known *known = logged(exam);
    if (!known)
        return false;
    find(exam, gp_exam_text(exam, "libcudnn.so.%u", major), version, &bundle);
    if (bundle.count != 1)
        return false;
    gp_exam_report(exam,
                   is_logged_by(exam, known, bundle.folder) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                   "cuDNN %s of a program, and %s in the system: their parts do not work together",
                   bundle.version, version);
    gp_exam_evidence(exam, bundle.where, "cuDNN %s", bundle.version);
    gp_exam_evidence(exam, path, "cuDNN %s, which the loader finds", version);
    gp_log_show_known(exam, known);
    gp_exam_why(exam, "The parts of cuDNN open each other by name. Those that the program does not "
                      "find in its own folder come from the system: "
                      "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH.");
    fix(exam, &bundle, version);
    return true;
}
