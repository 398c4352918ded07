#include "doctor/readers/opencl.h"

#include "doctor/exam.h"

#include <errno.h>
#include <string.h>

/* Whether the user has set where the loader looks; NixOS' loader has another place. */
static bool is_directed(struct gp_exam *exam)
{
    static const char *const names[] = {"OCL_ICD_VENDORS", "OCL_ICD_FILENAMES",
                                        "OPENCL_VENDOR_PATH"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *value = gp_machine_variable(&exam->machine, names[i]);
        if (value && value[0])
            return true;
    }
    return gp_files_exist(&exam->files, "/run/opengl-driver");
}

/* The first file that names a library with this word, or one that cannot be read, if such count;
 * NULL: none, or the folder cannot be read: then *ret_error is set, to −errno. */
static const char *find_file(struct gp_exam *exam, const char *word, bool takes_unreadable,
                             int *ret_error)
{
    static const char folder[] = GP_OPENCL_VENDORS, end[] = ".icd"; /* the loader reads no other */
    char **names, text[256];
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    if (n < 0 && n != -ENOENT && n != -ENOTDIR)
        *ret_error = (int)n;
    for (long i = 0; i < n; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        const char *last = strrchr(names[i], '.');
        if (!last || strcmp(last, end) != 0)
            continue;
        if (gp_files_line(&exam->files, path, text, sizeof(text)) ? strstr(text, word) != NULL
                                                                  : takes_unreadable)
            return path;
    }
    return NULL;
}

bool gp_opencl_knows(struct gp_exam *exam, const char *word, int *ret_error)
{
    int error = 0;
    if (is_directed(exam) || find_file(exam, word, true, &error))
        return true;
    if (error)
        *ret_error = error;
    return error != 0;
}

const char *gp_opencl_file(struct gp_exam *exam, const char *word)
{
    int error = 0;
    return is_directed(exam) ? NULL : find_file(exam, word, false, &error);
}

const char *gp_opencl_program(struct gp_exam *exam)
{
    /* The loader alone says nothing: FFmpeg's packages need it. */
    static const char *const programs[] = {
        "/usr/bin/clinfo",          "/usr/bin/hashcat",   "/usr/bin/darktable",  "/usr/bin/clpeak",
        "/opt/resolve/bin/resolve", "/usr/bin/FAHClient", "/usr/bin/fah-client", NULL};
    return gp_files_first(&exam->files, programs);
}
