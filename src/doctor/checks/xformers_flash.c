/* xformers beside a flash-attn that it does not take. */
#include "doctor/checks/framework.h"
#include "doctor/checks/pyinstall.h"
#include "doctor/checks/python.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/pyenv.h"
#include "doctor/readers/pypackage.h"
#include "doctor/version.h"

#include <string.h>

static const char file[] = "xformers/ops/fmha/flash.py",
                  ignore[] = "XFORMERS_IGNORE_FLASH_VERSION_CHECK",
                  oldest[] = "FLASH_VER_MIN = ", newest[] = "FLASH_VER_LAST = ";

/* The versions of flash-attn that it takes. */
struct window {
    const char *first, *last;
    bool has_posts; /* of the last, the post-releases, too */
};

/* "(2, 7, 4)", of which only three numbers are compared, or "parse_version("2.8.2")", which is
 * compared as pip does; "": another form. */
static const char *limit_of(struct gp_exam *exam, const char *text, const char *name,
                            bool *ret_is_numbers)
{
    const char *at = strstr(text, name), *ret = "";
    at = at ? at + strlen(name) : "";
    *ret_is_numbers = *at == '(';
    const char *quote = strchr(at, '"');
    if (!*ret_is_numbers)
        return strncmp(at, "parse_version(\"", 15) == 0
                   ? gp_exam_text(exam, "%.*s", (int)strspn(quote + 1, "0123456789."), quote + 1)
                   : "";
    for (at++; *at >= '0' && *at <= '9'; at += strspn(at, ", ")) {
        size_t n = strspn(at, "0123456789");
        ret = gp_exam_text(exam, "%s%s%.*s", ret, *ret ? "." : "", (int)n, at);
        at += n;
    }
    return ret;
}

/* Whether a line before this place begins an attempt, whose error is then caught: PyTorch's own
 * kernels take over. */
static bool is_caught(const char *text, const char *end)
{
    struct gp_lines lines = gp_lines_of(text, (size_t)(end - text));
    const char *line;
    size_t n;
    while (gp_lines_next(&lines, &line, &n)) {
        size_t blank = strspn(line, " \t");
        if (n >= blank + 4 && strncmp(line + blank, "try:", 4) == 0)
            return true;
    }
    return false;
}

/* Its own kernels come first, if it was built with them. */
static bool has_own(struct gp_exam *exam, const struct gp_pyenv *env)
{
    static const char stem[] = "_C_flashattention.";
    char path[GP_PATH_SIZE], **names;
    long n = gp_pyenv_path(env, "xformers", path)
                 ? gp_files_list(&exam->files, &exam->arena, path, &names)
                 : 0;
    for (long i = 0; i < n; i++)
        if (strncmp(names[i], stem, sizeof(stem) - 1) == 0)
            return true;
    return false;
}

/* False: it takes any, or does without. */
static bool read_window(struct gp_exam *exam, const struct gp_pyenv *env, struct window *ret)
{
    const char *text = gp_pyenv_text(exam, env, file);
    const char *at = strstr(text, newest);
    if (!at || !strstr(at, "raise ImportError(") || is_caught(text, at) || has_own(exam, env))
        return false;
    bool is_numbers;
    ret->first = limit_of(exam, text, oldest, &is_numbers);
    ret->last = limit_of(exam, text, newest, &is_numbers);
    ret->has_posts = is_numbers;
    return ret->first[0] && ret->last[0];
}

static bool is_inside(const struct window *window, const char *version)
{
    int to_last = gp_version_compare(version, window->last);
    bool is_post = strstr(version, "post");
    return gp_version_compare(version, window->first) >= 0 &&
           (to_last < 0 || (to_last == 0 && (window->has_posts || !is_post)));
}

/* The version that flash-attn itself gives, which the check goes by; NULL: it is not installed. */
static const char *flash_version(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "flash-attn");
    char own[GP_PYPACKAGE_VERSION] = "";
    const char *text = package ? gp_pyenv_text(exam, env, "flash_attn/__init__.py") : "";
    if (!package)
        return NULL;
    (void)gp_python_version(text, "__version__", own, sizeof(own));
    return own[0]
               ? gp_exam_text(exam, "%s", own)
               : gp_exam_text(exam, "%.*s", (int)strcspn(package->version, "+"), package->version);
}

void gp_check_xformers_flash(struct gp_exam *exam, const struct gp_pyenv *env)
{
    const struct gp_pypackage *package = gp_pyenv_package(env, "xformers");
    const char *flash = package ? flash_version(exam, env) : NULL;
    const char *ignored = gp_machine_variable(&exam->machine, ignore);
    struct window window;
    if (!flash || (ignored && strcmp(ignored, "1") == 0) || !read_window(exam, env, &window) ||
        is_inside(&window, flash))
        return;
    gp_exam_report(exam, gp_pyenv_verdict(env, false),
                   "xformers %s in %s takes flash-attn %s to %s only, but %s is installed",
                   package->version, env->prefix, window.first, window.last, flash);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s", env->site, file),
                     "FLASH_VER_MIN %s, FLASH_VER_LAST %s", window.first, window.last);
    gp_exam_evidence(exam, env->site, "%s", gp_pyenv_package(env, "flash-attn")->entry);
    gp_exam_why(exam,
                "The import of xformers.ops fails, and with it that of diffusers and others: "
                "\"Requires Flash-Attention version >=%s,<=%s but got %s\".",
                window.first, window.last, flash);
    gp_exam_pip(exam, env, GP_PIP_ADD,
                "a version that it takes; it may be compiled, which needs nvcc",
                gp_exam_text(exam, "--no-deps --no-build-isolation 'flash-attn==%s%s'", window.last,
                             window.has_posts ? ".*" : ""));
    gp_exam_advice(exam, "or, if no other program needs flash-attn, remove it: xformers then uses "
                         "PyTorch's own");
    gp_exam_advice(exam, "or start the program with %s=1, if the versions are close to each other",
                   ignore);
    gp_exam_link(exam, "https://github.com/facebookresearch/xformers/issues/1267");
}
