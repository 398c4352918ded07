/* Programs that a build of the module calls and that are not installed, by its log. */
#include "doctor/checks/driver_fix.h"

#include "doctor/exam.h"
#include "doctor/remedy.h"

#include <string.h>

/* Distributions, by the place of their packages below. */
enum place { DEBIAN, FEDORA, ARCH, SUSE, PLACES };

/* The packages that have them; what has no names is in the compiler's remedy. */
static const struct tool {
    const char *name;
    const char *packages[PLACES];
} tools[] = {
    {"gcc", {0}},
    {"cc", {0}},
    {"clang", {0}},
    {"make", {0}},
    {"ld", {"binutils", "binutils", "binutils", "binutils"}},
    {"as", {"binutils", "binutils", "binutils", "binutils"}},
    {"ar", {"binutils", "binutils", "binutils", "binutils"}},
    {"nm", {"binutils", "binutils", "binutils", "binutils"}},
    {"strip", {"binutils", "binutils", "binutils", "binutils"}},
    {"objcopy", {"binutils", "binutils", "binutils", "binutils"}},
    {"objdump", {"binutils", "binutils", "binutils", "binutils"}},
    {"ld.lld", {"lld", "lld", "lld", "lld"}},
    {"g++", {"g++", "gcc-c++", "gcc", "gcc-c++"}},
    {"c++", {"g++", "gcc-c++", "gcc", "gcc-c++"}},
    {"cc1plus", {"g++", "gcc-c++", "gcc", "gcc-c++"}}, /* gcc calls it for C++ */
    {"bc", {"bc", "bc", "bc", "bc"}},
    {"flex", {"flex", "flex", "flex", "flex"}},
    {"bison", {"bison", "bison", "bison", "bison"}},
    {"pahole", {"dwarves", "dwarves", "pahole", "dwarves"}},
    {"perl", {"perl", "perl", "perl", "perl"}},
    {"awk", {"gawk", "gawk", "gawk", "gawk"}},
    {"patch", {"patch", "patch", "patch", "patch"}},
    {"cmp", {"diffutils", "diffutils", "diffutils", "diffutils"}},
    {"xz", {"xz-utils", "xz", "xz", "xz"}},
    {"zstd", {"zstd", "zstd", "zstd", "zstd"}},
};

static const char quotes[] = "'\"\xe2\x80\x98\x99"; /* also those of UTF-8 */

/* Whether a word that ends there is this name, after a path, a prefix or a quote. */
static bool ends_with(const char *error, const char *end, const char *name)
{
    size_t n = strlen(name), length = (size_t)(end - error);
    return length >= n && memcmp(end - n, name, n) == 0 &&
           (length == n || strchr(" /-:", end[-(long)n - 1]) || strchr(quotes, end[-(long)n - 1]));
}

static const struct tool *tool_before(const char *error, const char *end)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(tools); i++)
        if (ends_with(error, end, tools[i].name))
            return &tools[i];
    return NULL;
}

/* In a line such as "/bin/sh: 1: gcc-12: not found", "make: cc: No such file or directory" or "gcc:
 * fatal error: cannot execute 'cc1plus': execvp: No such file or directory"; NULL: none. */
static const struct tool *missing_tool(const char *error)
{
    static const char *const ends[] = {": not found", ": command not found", ": Command not found",
                                       ": execvp: No such file or directory",
                                       ": No such file or directory"};
    const struct tool *found = NULL;
    for (size_t e = 0; e < GP_ARRAY_LEN(ends) && !found; e++) {
        const char *end = strstr(error, ends[e]);
        while (end && end > error && strchr(quotes, end[-1]))
            end--;
        found = end ? tool_before(error, end) : NULL;
        while (end && end > error && strchr("-.0123456789", end[-1])) /* "gcc-12", "g++-9.2" */
            end--;
        found = end && !found ? tool_before(error, end) : found;
    }
    return found;
}

bool gp_driver_lacks_tool(const char *error)
{
    return missing_tool(error) != NULL;
}

/* The compiler that a line names, with its version: "clang-17"; "": none. */
static const char *named_compiler(struct gp_exam *exam, const char *line)
{
    static const char *const names[] = {"gcc-", "g++-", "clang-"};
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++) {
        const char *at = strstr(line, names[i]);
        size_t n = at ? strspn(at + strlen(names[i]), "0123456789") : 0;
        if (n > 0)
            return gp_exam_text(exam, "%s%.*s", names[i], (int)n, at + strlen(names[i]));
    }
    return "";
}

/* The kernel's build calls a compiler that is not there. */
static void fix_compiler(struct gp_exam *exam, const char *error)
{
    const char *name = named_compiler(exam, error);
    if (name[0] && gp_machine_has_apt(&exam->machine))
        gp_exam_command(exam, "install the compiler that the kernel was built with",
                        "sudo apt install %s make", name);
    else if (strstr(error, "clang"))
        gp_exam_advice(exam, "install clang and lld, with which the kernel was built");
    else
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_COMPILER, NULL, NULL);
}

void gp_driver_fix_tool(struct gp_exam *exam, const char *error)
{
    const struct tool *tool = missing_tool(error);
    if (!tool || !tool->packages[0]) {
        fix_compiler(exam, error);
        return;
    }
    const char *note = gp_exam_text(exam, "install %s, which the build calls", tool->name);
    enum gp_distro distro = exam->machine.distro;
    if (gp_machine_has_apt(&exam->machine))
        gp_exam_command(exam, note, "sudo apt install %s", tool->packages[DEBIAN]);
    else if (distro == GP_DISTRO_FEDORA || distro == GP_DISTRO_RHEL)
        gp_exam_command(exam, note, "sudo dnf install %s", tool->packages[FEDORA]);
    else if (distro == GP_DISTRO_ARCH)
        gp_exam_command(exam, note, "sudo pacman -S --needed %s", tool->packages[ARCH]);
    else if (distro == GP_DISTRO_SUSE)
        gp_exam_command(exam, note, "sudo zypper install %s", tool->packages[SUSE]);
    else
        gp_exam_advice(exam, "%s", note);
}
