#include "doctor/readers/installer.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"
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

unsigned gp_installer_warned_gcc(struct gp_exam *exam, const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    const char *line = at ? gp_exam_text(exam, "%.*s", (int)strcspn(at, "\n"), at) : "";
    const char *last = strrchr(line, ' ');
    return last && (strstr(line, "gcc") || strstr(line, " cc (")) ? gp_version_major(last + 1) : 0;
}

bool gp_installer_read(struct gp_exam *exam, struct gp_failed_build *ret)
{
    enum { MOST = 8 << 20, LINE = 400 };
    static const char begin[] = "Building kernel module",
                      told[] = "failed with the following output", step[] = "performing the step";
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
        /* newer installers say first that the step failed, and then how */
        const char *output = number > 0 && memmem(line, n, step, sizeof(step) - 1)
                                 ? memmem(at, size - (size_t)(at - text), told, sizeof(told) - 1)
                                 : NULL;
        if (output) {
            at = output;
            number = gp_modules_first_error(at, size - (size_t)(at - text), &line, &n);
        }
        *ret = (struct gp_failed_build){
            .log = gp_installer_log, .error = "", .missing = "", .refused = ""};
        ret->kernel = exam->machine.kernel;
        ret->version = version_of(exam, text, size);
        ret->kernel_gcc = gp_installer_warned_gcc(exam, text, "The kernel was built by:");
        ret->used_gcc = gp_installer_warned_gcc(exam, text, "You are using:");
        ret->line = number;
        for (const char *c = text; number > 0 && c < at; c++)
            ret->line += *c == '\n';
        if (number > 0)
            ret->error = gp_exam_text(exam, "%.*s", n < LINE ? (int)n : LINE, line);
    }
    gp_arena_fini(&scratch);
    return is_one && ret->line > 0;
}

size_t gp_installer_option(struct gp_exam *exam, const char *version, const char *option)
{
    enum { MOST = 8 << 20 };
    const char *line;
    size_t size, n, found = 0;
    struct gp_arena scratch = {0};
    const char *text = gp_files_text(&exam->files, &scratch, gp_installer_log, MOST, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    bool is_same = text && strcmp(version_of(exam, text, size), version) == 0;
    while (is_same && !found && gp_lines_next(&lines, &line, &n)) {
        size_t start = 0;
        while (start < n && (line[start] == ' ' || line[start] == '\t'))
            start++;
        if (start > 0 && gp_lines_is(line + start, n - start, option))
            found = lines.number;
    }
    gp_arena_fini(&scratch);
    return found;
}
