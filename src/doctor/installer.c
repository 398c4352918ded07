#include "doctor/installer.h"

#include "doctor/driver_fix.h"
#include "doctor/exam.h"
#include "doctor/install.h"
#include "doctor/version.h"

#include <string.h>

const char gp_installer_log[] = "/var/log/nvidia-installer.log";

/* Whether a text names this kernel, and not a longer name: "/lib/modules/6.1.0-18-amd64/build". */
static bool names_kernel(const char *text, size_t size, const char *kernel)
{
    size_t n = strlen(kernel);
    const char *end = text + size;
    for (const char *at = text; n > 0 && at && (at = memmem(at, (size_t)(end - at), kernel, n));
         at += n)
        if (at + n == end || strchr("/'\" \t\n:)", at[n]))
            return true;
    return false;
}

static bool has_failed(const char *text, size_t size)
{
    static const char *const marks[] = {
        "kernel module was not created",
        "performing the step: \"Building kernel modules\"",
        "Unable to build the NVIDIA kernel module",
    };
    static const char done[] = "is now complete";
    bool is_failed = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++)
        is_failed = is_failed || memmem(text, size, marks[i], strlen(marks[i]));
    return is_failed && !memmem(text, size, done, sizeof(done) - 1);
}

/* "installer version: 525.125.06" */
static const char *version_of(struct gp_exam *exam, const char *text, size_t size)
{
    static const char mark[] = "installer version: ";
    const char *at = memmem(text, size, mark, sizeof(mark) - 1);
    at = at ? at + sizeof(mark) - 1 : "";
    return gp_exam_text(exam, "%.*s", (int)strspn(at, "0123456789."), at);
}

bool gp_installer_read(struct gp_exam *exam, struct gp_failed_build *ret)
{
    enum { MOST = 8 << 20, LINE = 400 };
    static const char begin[] = "Building kernel module";
    const char *line;
    size_t size, n;
    struct gp_arena scratch = {0};
    const char *text = gp_files_text(&exam->files, &scratch, gp_installer_log, MOST, &size);
    bool is_one = text && has_failed(text, size) && names_kernel(text, size, exam->machine.kernel);
    if (is_one) {
        /* what was tried out before it may have failed without harm */
        const char *start = memmem(text, size, begin, sizeof(begin) - 1);
        const char *at = start ? start : text;
        size_t number = gp_modules_first_error(at, size - (size_t)(at - text), &line, &n);
        *ret = (struct gp_failed_build){
            .log = gp_installer_log, .error = "", .missing = "", .refused = ""};
        ret->kernel = exam->machine.kernel;
        ret->version = version_of(exam, text, size);
        ret->line = number;
        for (const char *c = text; number > 0 && c < at; c++)
            ret->line += *c == '\n';
        if (number > 0)
            ret->error = gp_exam_text(exam, "%.*s", n < LINE ? (int)n : LINE, line);
    }
    gp_arena_fini(&scratch);
    return is_one && ret->line > 0;
}

/* Symbols that a kernel update offers only to modules under the GPL, and the first release of each
 * branch that no longer uses them; branches in between were never changed. */
static const struct {
    const char *symbol, *cause;
    const char *releases[4];
} symbols[] = {{"'__rcu_read_",
                "pfn_valid() uses it since 6.1.76, and in other branches since early 2024",
                {"470.239.06", "535.161.07", "550.54.14"}}};

static size_t symbol_in(const char *error)
{
    size_t i = 0;
    while (i < GP_ARRAY_LEN(symbols) && !strstr(error, symbols[i].symbol))
        i++;
    return i;
}

static bool is_refused_symbol(const char *error)
{
    return strstr(error, "GPL-only symbol") || strstr(error, "GPL-incompatible module");
}

bool gp_installer_explain_symbol(struct gp_exam *exam, const char *error, const char *version)
{
    size_t i = symbol_in(error);
    if (!is_refused_symbol(error))
        return false;
    if (i < GP_ARRAY_LEN(symbols))
        gp_exam_why(exam,
                    "This kernel offers the symbol only to modules under the GPL: %s. Driver %s is "
                    "older, and fails at each build.",
                    symbols[i].cause, version);
    else
        gp_exam_why(exam,
                    "This kernel offers the symbol only to modules under the GPL: driver %s is "
                    "older than the kernel, or the kernel was built for debugging or realtime.",
                    version);
    return true;
}

/* "535.161.07 (of branch 535), 550.54.14": those for these GPUs; "": not known. */
static const char *releases_for(struct gp_exam *exam, const char *error, const char *version)
{
    struct gp_wish wish = gp_driver_wish(exam);
    const char *found = "";
    size_t i = is_refused_symbol(error) ? symbol_in(error) : GP_ARRAY_LEN(symbols);
    for (size_t k = 0; i < GP_ARRAY_LEN(symbols) && symbols[i].releases[k]; k++) {
        const char *release = symbols[i].releases[k];
        unsigned branch = gp_version_major(release);
        if (gp_version_compare(release, version) > 0 && gp_wish_fits(&wish, branch))
            found = gp_exam_text(exam, "%s%s%s or later of branch %u", found, found[0] ? ", " : "",
                                 release, branch);
    }
    return found;
}

void gp_installer_fix_build(struct gp_exam *exam, const struct gp_failed_build *build)
{
    struct gp_wish wish = gp_driver_wish(exam);
    const char *releases = releases_for(exam, build->error, build->version);
    unsigned newest = wish.last > 0 ? wish.last : gp_driver_long_term()->branch;
    if (!gp_installer_explain_symbol(exam, build->error, build->version))
        gp_exam_why(exam,
                    "The source of driver %s does not compile for this kernel: it is older than "
                    "the kernel, or than the compiler.",
                    build->version);
    if (releases[0])
        gp_exam_advice(exam,
                       "run the .run installer of a release that builds, with --dkms: %s, or one "
                       "of a newer branch that supports the GPU, such as %u",
                       releases, newest);
    else if (gp_version_major(build->version) < newest)
        gp_exam_advice(exam,
                       "run the .run installer of a newer release that supports the GPU, as of "
                       "branch %u, with --dkms",
                       newest);
    else
        gp_exam_advice(exam,
                       "run the .run installer of the newest release of branch %u, with --dkms: "
                       "it may be adapted to this kernel",
                       newest);
}
