/* The C++ compiler that nvcc calls, and the headers of the C library: each release refuses newer
 * ones than it knows. */
#include "doctor/checks/cuda.h"

#include "doctor/exam.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/toolkit.h"
#include "doctor/version.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The newest gcc for each CUDA, from crt/host_config.h of the releases. */
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

/* The toolkit's own header says it, "#if __GNUC__ > 15"; 0: that is not there. */
static unsigned stated_limit(struct gp_exam *exam, const struct gp_toolkit_found *toolkit)
{
    static const char mark[] = "__GNUC__ > ";
    const char *path = gp_exam_text(exam, "%s/include/crt/host_config.h", toolkit->path);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    const char *at = text ? strstr(text, mark) : NULL;
    return at ? (unsigned)strtoul(at + sizeof(mark) - 1, NULL, 10) : 0;
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

/* What /usr/bin/gcc runs, below this directory: the only version there, or the only one without a
 * program of its own name, "/usr/bin/gcc-15". */
static unsigned version_of_parts(struct gp_exam *exam, const char *top, const char **ret_where)
{
    char **targets, **names;
    unsigned found = 0, count = 0;
    long n = gp_files_list(&exam->files, &exam->arena, top, &targets);
    for (long i = 0; i < n; i++) {
        const char *folder = gp_exam_text(exam, "%s/%s", top, targets[i]);
        long k = gp_files_list(&exam->files, &exam->arena, folder, &names);
        for (long j = 0; j < k; j++) {
            unsigned version = (unsigned)strtoul(names[j], NULL, 10);
            if (!gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s/cc1", folder, names[j])) ||
                gp_files_exist(&exam->files, gp_exam_text(exam, "/usr/bin/gcc-%u", version)))
                continue;
            found = version;
            *ret_where = gp_exam_text(exam, "%s/%s", folder, names[j]);
            count++;
        }
    }
    return count == 1 ? found : 0;
}

/* The version of /usr/bin/gcc: from its link, else from the directory of its parts; 0: unknown. */
static unsigned gcc_version(struct gp_exam *exam, const char **ret_where)
{
    static const char path[] = "/usr/bin/gcc";
    static const char *const tops[] = {"/usr/lib/gcc", "/usr/libexec/gcc", "/usr/lib64/gcc"};
    char real[GP_PATH_SIZE];
    *ret_where = path;
    if (!gp_files_real(&exam->files, path, real))
        return 0;
    unsigned found = number_of(real);
    for (size_t i = 0; i < GP_ARRAY_LEN(tops) && found == 0; i++)
        found = version_of_parts(exam, tops[i], ret_where);
    return found;
}

/* Distributions adapt those that they package to their compilers and libraries. */
static bool is_packaged(const struct gp_toolkit_found *toolkit)
{
    return strncmp(toolkit->path, "/usr/local/", 11) != 0;
}

/* Arch's and Gentoo's package has NVIDIA's files as they are, and may name a compiler to the
 * shells; those of others choose one themselves. */
static bool chooses_compiler(struct gp_exam *exam, const struct gp_toolkit_found *toolkit)
{
    static const char profile[] = "/etc/profile.d/cuda.sh";
    if (strcmp(toolkit->path, "/opt/cuda") != 0)
        return is_packaged(toolkit);
    const char *text = gp_files_text(&exam->files, &exam->arena, profile, 1 << 14, NULL);
    return !text || strstr(text, "NVCC_CCBIN");
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
    return chooses_compiler(exam, toolkit) ||
           gp_files_exist(&exam->files, gp_exam_text(exam, "%s/bin/gcc", toolkit->path));
}

/* Whether the user is in a directory of something to build. */
static bool builds_programs(struct gp_exam *exam)
{
    static const char *const names[] = {"CMakeLists.txt", "Makefile", "setup.py", "CMakeCache.txt",
                                        "build.ninja"};
    const char *folder = gp_machine_variable(&exam->machine, "PWD");
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && folder && folder[0] == '/'; i++)
        if (gp_files_exist(&exam->files, gp_exam_text(exam, "%s/%s", folder, names[i])))
            return true;
    return false;
}

enum gp_verdict gp_cuda_build_verdict(struct gp_exam *exam)
{
    const struct gp_pyenvs *envs = gp_pyenvs_of(exam);
    bool has_wheels = false;
    for (size_t i = 0; i < envs->count; i++)
        has_wheels = has_wheels || envs->list[i].count > 0;
    return has_wheels && !builds_programs(exam) ? GP_VERDICT_INFO : GP_VERDICT_WARN;
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
        gp_exam_advice(exam,
                       "a build that passes -ccbin itself overrides that; for Makefiles of CUDA's "
                       "samples: make HOST_COMPILER=/usr/bin/g++-%s",
                       word);
        return;
    }
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        gp_exam_command(exam, i == 0 ? "have nvcc use it" : "",
                        "sudo ln -s /usr/bin/%s-%s %s/bin/%s", names[i], word,
                        gp_exam_quoted(exam, toolkit->path), names[i]);
}

/* The oldest gcc that a release of Debian or Ubuntu has; 0: not known. */
static unsigned oldest_gcc(const struct gp_machine *m)
{
    static const struct {
        const char *id, *version;
        unsigned gcc;
    } rows[] = {{"ubuntu", "20.04", 7}, {"ubuntu", "22.04", 9}, {"ubuntu", "24.04", 9},
                {"debian", "11", 9},    {"debian", "12", 11},   {"debian", "13", 12}};
    for (size_t i = 0; i < GP_ARRAY_LEN(rows); i++)
        if (strcmp(m->distro_id, rows[i].id) == 0 &&
            strcmp(m->distro_version, rows[i].version) == 0)
            return rows[i].gcc;
    return 0;
}

/* Debian's family and openSUSE have packages of older ones under this name, Fedora and Arch have
 * that of the release before, RHEL has sets of tools. False: there is no such way. */
static bool install_gcc(struct gp_exam *exam, const struct gp_toolkit_found *toolkit,
                        unsigned limit, unsigned gcc)
{
    enum { FIRST_OF_FEDORA = 13 };
    enum gp_distro distro = exam->machine.distro;
    const char *word = gcc_word(exam, limit);
    bool is_there = gp_files_exist(&exam->files, gp_exam_text(exam, "/usr/bin/g++-%s", word));
    bool is_named = (gp_machine_has_apt(&exam->machine) && limit >= oldest_gcc(&exam->machine)) ||
                    distro == GP_DISTRO_SUSE ||
                    ((distro == GP_DISTRO_FEDORA || distro == GP_DISTRO_ARCH) &&
                     limit >= FIRST_OF_FEDORA && gcc == limit + 1);
    if (!is_there && (is_named || distro == GP_DISTRO_RHEL))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_GCC, word, NULL);
    if (is_there || is_named)
        use_compiler(exam, toolkit, word);
    else if (distro == GP_DISTRO_RHEL)
        gp_exam_command(exam, "a shell with it", "scl enable gcc-toolset-%u bash", limit);
    return is_there || is_named || distro == GP_DISTRO_RHEL;
}

static void mend(struct gp_exam *exam, const struct gp_toolkit_found *toolkit, unsigned limit,
                 unsigned gcc)
{
    const char *cuda = cuda_for(gcc);
    bool has_gcc = install_gcc(exam, toolkit, limit, gcc);
    if (cuda)
        gp_exam_advice(exam, "%suse CUDA %s or newer, which knows gcc %u",
                       exam->last->fixes ? "or " : "", cuda, gcc);
    if (!has_gcc)
        gp_exam_advice(exam,
                       "or have NVCC_CCBIN name the compiler g++ of a gcc %u, such as that of "
                       "conda-forge",
                       limit);
}

void gp_cuda_fix_compiler(struct gp_exam *exam, const char *version)
{
    /* The last update of this release is what will be installed. */
    const struct gp_toolkit_found toolkit = {
        .path = gp_exam_text(exam, "/usr/local/cuda-%u.%u", gp_version_major(version),
                             gp_version_minor(version)),
        .version =
            gp_exam_text(exam, "%u.%u.9", gp_version_major(version), gp_version_minor(version))};
    const char *where;
    unsigned limit = limit_of(toolkit.version), gcc = gcc_version(exam, &where);
    gp_cuda_fix_toolkit(exam, version);
    if (limit == 0 || gcc <= limit || is_told(exam, &toolkit))
        return;
    gp_exam_advice(exam, "its compiler takes gcc up to %s, and this system has gcc %u:",
                   gcc_word(exam, limit), gcc);
    if (!install_gcc(exam, &toolkit, limit, gcc))
        gp_exam_advice(
            exam, "have NVCC_CCBIN name the g++ of a gcc %u, such as that of conda-forge", limit);
}

static void check_gcc(struct gp_exam *exam, const struct gp_toolkit_found *toolkit)
{
    const char *where;
    unsigned limit = stated_limit(exam, toolkit), gcc = gcc_version(exam, &where);
    if (limit == 0)
        limit = limit_of(toolkit->version);
    if (limit == 0 || gcc <= limit)
        return;
    gp_exam_report(exam, gp_cuda_build_verdict(exam),
                   "the compiler of CUDA %s refuses this system's gcc %u", toolkit->version, gcc);
    gp_exam_evidence(exam, where, "gcc %u", gcc);
    gp_exam_evidence(exam, toolkit->source, "CUDA %s: up to gcc %s", toolkit->version,
                     gcc_word(exam, limit));
    gp_exam_why(exam,
                "nvcc stops with \"unsupported GNU version! gcc versions later than %s are not "
                "supported\". Programs that are built already, and wheels, are not affected.",
                gcc_word(exam, limit));
    mend(exam, toolkit, limit, gcc);
}

/* ---- glibc's headers ---- */

/* Functions that glibc declares since a release, 2.41, which CUDA's headers declare, too; the first
 * CUDA whose declarations fit them. */
static const struct {
    unsigned glibc;
    const char *function, *cuda;
} clashes[] = {{42, "rsqrt", "13.2"}, {41, "cospi", "13.0"}};

/* 41 for glibc 2.41, by its headers, or by the distribution's release; 0: unknown. */
static unsigned glibc_of(struct gp_exam *exam, const char **ret_where)
{
    static const char mark[] = "__GLIBC_MINOR__";
    enum { DEBIAN = 13, DEBIAN_HAS = 41, FEDORA_IS_AHEAD = 1 };
    static const struct {
        const char *release;
        unsigned glibc;
    } of_ubuntu[] = {{"26.04", 43}, {"25.10", 42}, {"25.04", 41}};
    const struct gp_machine *m = &exam->machine;
    unsigned release = gp_version_major(m->distro_version);
    *ret_where = "/usr/include/features.h";
    const char *text = gp_files_text(&exam->files, &exam->arena, *ret_where, 1 << 16, NULL);
    const char *at = text ? strstr(text, mark) : NULL;
    if (at)
        return (unsigned)strtoul(at + sizeof(mark) - 1, NULL, 10);
    *ret_where = m->distro_name;
    if (m->distro == GP_DISTRO_FEDORA && release > 0)
        return release - FEDORA_IS_AHEAD;
    if (m->distro == GP_DISTRO_DEBIAN && release == DEBIAN)
        return DEBIAN_HAS;
    for (size_t i = 0; i < GP_ARRAY_LEN(of_ubuntu) && m->distro == GP_DISTRO_UBUNTU; i++)
        if (strcmp(m->distro_version, of_ubuntu[i].release) == 0)
            return of_ubuntu[i].glibc;
    return 0;
}

/* Whether someone has given the declaration in CUDA's header what glibc's has. */
static bool is_adapted(struct gp_exam *exam, const char *header, const char *function)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, header, 1 << 20, NULL);
    const char *at = text ? strstr(text, gp_exam_text(exam, " %s(double x)", function)) : NULL;
    const char *end = at ? strchr(at, ';') : NULL;
    return end && (memmem(at, (size_t)(end - at), "noexcept", 8) ||
                   memmem(at, (size_t)(end - at), "throw", 5));
}

static void check_glibc(struct gp_exam *exam, const struct gp_toolkit_found *toolkit)
{
    const char *where;
    const char *header = gp_exam_text(exam, "%s/include/crt/math_functions.h", toolkit->path);
    unsigned glibc = glibc_of(exam, &where);
    for (size_t i = 0; i < GP_ARRAY_LEN(clashes); i++) {
        if (glibc < clashes[i].glibc ||
            gp_version_compare(toolkit->version, clashes[i].cuda) >= 0 ||
            is_adapted(exam, header, clashes[i].function))
            continue;
        gp_exam_report(exam, builds_programs(exam) ? GP_VERDICT_WARN : GP_VERDICT_INFO,
                       "the compiler of CUDA %s does not understand the headers of glibc 2.%u",
                       toolkit->version, glibc);
        gp_exam_evidence(exam, where, "glibc 2.%u", glibc);
        gp_exam_evidence(exam, toolkit->source, "CUDA %s", toolkit->version);
        gp_exam_why(exam,
                    "Both declare %s, with different exceptions: nvcc stops with \"exception "
                    "specification is incompatible with that of previous function\". Programs that "
                    "are built already, and wheels, are not affected.",
                    clashes[i].function);
        gp_exam_advice(
            exam, "use CUDA %s or newer, which knows this glibc, if the GPU and its driver can",
            clashes[i].cuda);
        gp_exam_command(exam, "or declare them as glibc does; the original file is kept next to it",
                        "sudo sed -i.before -E 's/((sinpi|cospi|rsqrt)f?\\((double|float) "
                        "[ax]\\))( *\\)?;)/\\1 noexcept (true)\\4/' %s",
                        gp_exam_quoted(exam, header));
        return;
    }
}

void gp_check_cuda_host(struct gp_exam *exam)
{
    const struct gp_toolkit_found *toolkit = gp_toolkit_used(gp_toolkits_of(exam));
    if (!toolkit || !toolkit->has_compiler || !toolkit->version[0])
        return;
    if (!is_told(exam, toolkit))
        check_gcc(exam, toolkit);
    if (!is_packaged(toolkit))
        check_glibc(exam, toolkit);
}
