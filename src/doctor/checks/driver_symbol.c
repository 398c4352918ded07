/* A build of the module that fails since the kernel does not have what the module uses: not the
 * driver is at fault then, and no other release of it helps. */
#include "doctor/checks/driver_fix.h"
#include "doctor/exam.h"
#include "doctor/readers/install.h"

#include <string.h>

/* Parts of the kernel that no user can choose: other drivers select them. */
static const struct {
    const char *start, *option, *selected;
} parts[] = {{"drm_fbdev_ttm_", "CONFIG_DRM_TTM_HELPER",
              "a driver with TTM selects it, such as CONFIG_DRM_NOUVEAU=m or CONFIG_DRM_QXL=m"},
             {"drm_client_setup", "CONFIG_DRM_CLIENT_LIB",
              "a driver with a console selects it, such as CONFIG_DRM_SIMPLEDRM"}};

/* A file of the headers of a kernel. */
static const char *of_headers(struct gp_exam *exam, const char *kernel, const char *name)
{
    return gp_exam_text(exam, "%s/%s/build/%s", gp_install_of(exam)->modules, kernel, name);
}

/* Whether a kernel's list of symbols has this one; −1: there is no list, or not all of it. */
static int has_symbol(struct gp_exam *exam, const char *path, const char *symbol)
{
    enum { MOST = 16 << 20 };
    size_t size = 0;
    struct gp_arena scratch = {0};
    const char *text = gp_files_text(&exam->files, &scratch, path, MOST, &size);
    bool is_whole = text && size > 0 && size < MOST;
    int ret = is_whole ? strstr(text, gp_exam_text(exam, "\t%s\t", symbol)) != NULL : -1;
    gp_arena_fini(&scratch);
    return ret;
}

/* Whether both are of one series, "6.11": what one has, the other could have. Not so with RHEL and
 * SUSE, whose kernels keep their number for years and take parts of newer ones. */
static bool is_of_series(struct gp_exam *exam, const char *a, const char *b)
{
    enum gp_distro distro = exam->machine.distro;
    if (distro == GP_DISTRO_RHEL || distro == GP_DISTRO_SUSE)
        return false;
    const char *dot = strchr(a, '.');
    size_t n = dot ? (size_t)(dot - a) + 1 + strspn(dot + 1, "0123456789") : 0;
    return n > 0 && strncmp(a, b, n) == 0 && !(b[n] >= '0' && b[n] <= '9');
}

/* The symbol of 'modpost: "drm_fbdev_ttm_setup" [….ko] undefined!'; "": the line is another one. */
static const char *symbol_of(struct gp_exam *exam, const char *error)
{
    static const char mark[] = "modpost: \"";
    const char *at = strstr(error, "undefined!") ? strstr(error, mark) : NULL;
    at = at ? at + sizeof(mark) - 1 : "";
    return gp_exam_text(exam, "%.*s", (int)strcspn(at, "\""), at);
}

static size_t part_of(const char *symbol)
{
    size_t i = 0;
    while (i < GP_ARRAY_LEN(parts) && strncmp(symbol, parts[i].start, strlen(parts[i].start)) != 0)
        i++;
    return i;
}

/* Whether a configuration sets an option; −1: it cannot be read. */
static int is_enabled(struct gp_exam *exam, const char *path, const char *option)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 20, NULL);
    return text ? strstr(text, gp_exam_text(exam, "\n%s=", option)) != NULL : -1;
}

struct gp_lost_symbol gp_driver_lost_symbol(struct gp_exam *exam,
                                            const struct gp_failed_build *build, const char *kernel)
{
    const char *other = gp_install_of(exam)->other_kernel;
    struct gp_lost_symbol ret = {.name = symbol_of(exam, build->error)};
    if (ret.name[0] &&
        has_symbol(exam, of_headers(exam, kernel, "Module.symvers"), ret.name) == 0) {
        ret.has_other = other[0] && is_of_series(exam, kernel, other) &&
                        has_symbol(exam, of_headers(exam, other, "Module.symvers"), ret.name) == 1;
        if (ret.has_other || part_of(ret.name) < GP_ARRAY_LEN(parts))
            return ret;
    }
    return (struct gp_lost_symbol){.name = ""};
}

bool gp_driver_fix_lost_symbol(struct gp_exam *exam, const struct gp_lost_symbol *lost,
                               const char *kernel)
{
    const char *symbol = lost->name, *other = gp_install_of(exam)->other_kernel;
    if (!symbol[0])
        return false;
    size_t part = part_of(symbol);
    const char *config = of_headers(exam, kernel, ".config");
    int enabled = part < GP_ARRAY_LEN(parts) ? is_enabled(exam, config, parts[part].option) : -1;
    gp_exam_evidence(exam, of_headers(exam, kernel, "Module.symvers"), "does not have %s", symbol);
    if (enabled == 0)
        gp_exam_evidence(exam, config, "%s is not set", parts[part].option);
    if (lost->has_other)
        gp_exam_evidence(exam, of_headers(exam, other, "Module.symvers"), "has it");
    gp_exam_why(exam,
                "The headers declare %s, so that the module uses it, and the kernel %s: another "
                "release of the driver does not help.",
                symbol,
                enabled == 0 ? "was built without it" : "does not offer it, as if built in part");
    if (enabled == 0)
        gp_exam_advice(exam, "if the kernel is one of your own: enable %s: %s", parts[part].option,
                       parts[part].selected);
    gp_exam_advice(exam,
                   "build the kernel and its headers again, from clean sources%s, and install "
                   "both; or install a kernel that the distribution has built",
                   gp_files_exist(&exam->files, "/usr/bin/ccache")
                       ? " and without what ccache kept (ccache -C)"
                       : "");
    return true;
}
