/* conda's C++ library: what it installed must be there, or programs load the system's instead. */
#include "doctor/checks/python.h"

#include "doctor/checks/pyinstall.h"
#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"

#include <errno.h>
#include <string.h>

/* The record of the package whose files have the library's name; NULL: none. */
static const char *record_of(struct gp_exam *exam, const char *meta)
{
    enum { RECORD_MAX = 256 << 10 };
    static const char start[] = "libstdcxx-";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, meta, &names);
    for (long i = 0; i < n; i++) {
        if (strncmp(names[i], start, strlen(start)) != 0)
            continue;
        const char *path = gp_exam_text(exam, "%s/%s", meta, names[i]);
        const char *text = gp_files_text(&exam->files, &exam->arena, path, RECORD_MAX, NULL);
        if (text && strstr(text, "\"lib/libstdc++.so.6\""))
            return path;
    }
    return NULL;
}

/* The library itself, which the name should link to; NULL: it is gone, too. */
static const char *file_in(struct gp_exam *exam, const char *lib)
{
    static const char start[] = "libstdc++.so.6.0.";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, lib, &names);
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], start, strlen(start)) == 0 &&
            strspn(names[i] + strlen(start), "0123456789") == strlen(names[i] + strlen(start)))
            return names[i];
    return NULL;
}

void gp_check_conda_stdcxx(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const char *lib = gp_exam_text(exam, "%s/lib", env->prefix);
    const char *name = gp_exam_text(exam, "%s/libstdc++.so.6", lib);
    const char *record = record_of(exam, gp_exam_text(exam, "%s/conda-meta", env->prefix));
    struct stat st;
    if (!record || gp_files_stat_link(&exam->files, name, &st) != -ENOENT)
        return;
    const char *file = file_in(exam, lib);
    gp_exam_report(exam, GP_VERDICT_WARN,
                   "libstdc++.so.6 of conda is missing in %s: the system's is loaded instead", lib);
    gp_exam_evidence(exam, name, "missing");
    gp_exam_evidence(exam, record, "\"lib/libstdc++.so.6\"");
    if (file)
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", lib, file), "is there");
    gp_exam_why(exam, "Programs of this environment fail if the system's library is older: "
                      "\"version `GLIBCXX_3.4.30' not found\".");
    gp_exam_link(exam, "https://github.com/pytorch/pytorch/issues/157709");
    if (file)
        gp_exam_command(exam, "the link that conda installed", "ln -s %s %s", file,
                        gp_exam_quoted(exam, name));
    gp_exam_command(exam, file ? "or install the package again" : "install the package again",
                    "%s install -p %s --force-reinstall libstdcxx", gp_conda_program(exam, env),
                    gp_exam_quoted(exam, env->prefix));
}
