/* The C++ compiler that nvcc calls: each release refuses newer ones than it knows. */
#include "doctor/checks_cuda.h"

#include "doctor/exam.h"
#include "doctor/toolkit.h"
#include "doctor/version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The newest gcc for each CUDA, from crt/host_config.h of the releases (some unverified). */
static const struct {
    const char *cuda;
    unsigned gcc;
} limits[] = {{"7.0", 4},   {"8.0", 5},     {"9.0", 6},   {"9.2", 7},   {"10.1", 8},  {"11.0", 9},
              {"11.1", 10}, {"11.4.1", 11}, {"12.0", 12}, {"12.4", 13}, {"12.8", 14}, {"13.0", 15}};

static unsigned limit_of(const char *cuda)
{
    unsigned limit = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(limits); i++)
        if (gp_version_compare(limits[i].cuda, cuda) <= 0)
            limit = limits[i].gcc;
    return limit;
}

/* As in the names of packages: all that know a gcc 4 know 4.9. */
static const char *gcc_word(struct gp_exam *exam, unsigned gcc)
{
    return gcc == 4 ? "4.9" : gp_exam_text(exam, "%u", gcc);
}

/* The first CUDA that knows this gcc; NULL: none. */
static const char *cuda_for(unsigned gcc)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(limits); i++)
        if (limits[i].gcc >= gcc)
            return limits[i].cuda;
    return NULL;
}

/* 13 of "x86_64-linux-gnu-gcc-13"; 0: it has none. */
static unsigned number_of(const char *name)
{
    const char *dash = strrchr(name, '-');
    return dash && isdigit((unsigned char)dash[1]) ? (unsigned)strtoul(dash + 1, NULL, 10) : 0;
}

/* The version of /usr/bin/gcc: from its link, else from the directory of its parts, if there is
 * only one; 0: unknown. */
static unsigned gcc_version(struct gp_exam *exam, const char **ret_where)
{
    static const char path[] = "/usr/bin/gcc", top[] = "/usr/lib/gcc";
    char real[GP_PATH_SIZE];
    char **targets, **names;
    unsigned found = 0, count = 0;
    *ret_where = path;
    if (!gp_files_real(&exam->files, path, real))
        return 0;
    if (number_of(real))
        return number_of(real);
    long n = gp_files_list(&exam->files, &exam->arena, top, &targets);
    for (long i = 0; i < n; i++) {
        const char *folder = gp_exam_text(exam, "%s/%s", top, targets[i]);
        long k = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long j = 0; j < k; j++)
            if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s/cc1", folder, names[j]))) {
                found = (unsigned)strtoul(names[j], NULL, 10);
                *ret_where = gp_exam_text(exam, "%s/%s", folder, names[j]);
                count++;
            }
    }
    return count == 1 ? found : 0;
}

/* Whether a variable, a link next to nvcc, or the packages of a distribution make it use another
 * one. */
static bool is_told(struct gp_exam *exam, const struct gp_toolkit_found *toolkit)
{
    static const char *const variables[] = {"NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
                                            "CUDAHOSTCXX"};
    for (size_t i = 0; i < GP_ARRAY_LEN(variables); i++)
        if (gp_machine_variable(&exam->machine, variables[i]))
            return true;
    return strncmp(toolkit->path, "/usr/local/", 11) != 0 ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/bin/gcc", toolkit->path));
}

/* Releases before 11 do not read the variables; they prefer a compiler that is next to nvcc. */
static void use_compiler(struct gp_exam *exam, const struct gp_toolkit_found *toolkit,
                         const char *word)
{
    const char *const names[] = {"gcc", "g++"};
    if (gp_version_compare(toolkit->version, "11.0") >= 0) {
        gp_exam_command(exam, "have nvcc use it",
                        "export NVCC_CCBIN=/usr/bin/g++-%s CUDAHOSTCXX=/usr/bin/g++-%s", word,
                        word);
        return;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        gp_exam_command(exam, i == 0 ? "have nvcc use it" : "",
                        "sudo ln -s /usr/bin/%s-%s %s/bin/%s", names[i], word,
                        gp_exam_quoted(exam, toolkit->path), names[i]);
}

/* Debian's family and openSUSE have packages of older ones under this name, RHEL has sets of tools.
 */
static void mend(struct gp_exam *exam, const struct gp_toolkit_found *toolkit, unsigned limit,
                 unsigned gcc)
{
    enum gp_distro distro = exam->machine.distro;
    const char *cuda = cuda_for(gcc);
    const char *word = gcc_word(exam, limit);
    bool is_there = gp_files_exist(&exam->files, gp_exam_text(exam, "/usr/bin/g++-%s", word));
    bool is_named =
        distro == GP_DISTRO_DEBIAN || distro == GP_DISTRO_UBUNTU || distro == GP_DISTRO_SUSE;
    if (!is_there && (is_named || distro == GP_DISTRO_RHEL))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_GCC, word, NULL);
    if (is_there || is_named)
        use_compiler(exam, toolkit, word);
    else if (distro == GP_DISTRO_RHEL)
        gp_exam_command(exam, "a shell with it", "scl enable gcc-toolset-%u bash", limit);
    if (cuda)
        gp_exam_advice(exam, "%suse CUDA %s or newer, which knows gcc %u",
                       exam->last->fixes ? "or " : "", cuda, gcc);
    if (!is_there && !is_named && distro != GP_DISTRO_RHEL)
        gp_exam_advice(exam,
                       "or have NVCC_CCBIN name the compiler g++ of a gcc %u, such as that of "
                       "conda-forge",
                       limit);
}

void gp_check_cuda_host(struct gp_exam *exam)
{
    const struct gp_toolkit_found *toolkit = gp_toolkit_used(gp_toolkits_of(exam));
    const char *where;
    if (!toolkit || !toolkit->has_compiler || !toolkit->version[0] || is_told(exam, toolkit))
        return;
    unsigned limit = limit_of(toolkit->version), gcc = gcc_version(exam, &where);
    if (limit == 0 || gcc <= limit)
        return;
    gp_exam_report(exam, GP_VERDICT_WARN, "the compiler of CUDA %s refuses this system's gcc %u",
                   toolkit->version, gcc);
    gp_exam_evidence(exam, where, "gcc %u", gcc);
    gp_exam_evidence(exam, toolkit->source, "CUDA %s: up to gcc %s", toolkit->version,
                     gcc_word(exam, limit));
    gp_exam_why(exam,
                "nvcc stops with \"unsupported GNU version! gcc versions later than %s are not "
                "supported\". Programs that are built already, and wheels, are not affected.",
                gcc_word(exam, limit));
    mend(exam, toolkit, limit, gcc);
}
