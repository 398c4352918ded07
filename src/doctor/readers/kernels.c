#include "doctor/readers/kernels.h"

#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/install.h"
#include "doctor/version.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

/* The next letter of the flavour, the part from the first "-letter" on; 0: none. */
static char next_letter(const char **p)
{
    while (**p && !isalpha((unsigned char)**p))
        ++*p;
    return **p ? *(*p)++ : '\0';
}

static const char *flavour_of(const char *kernel)
{
    const char *p = kernel;
    while ((p = strchr(p, '-')) && !isalpha((unsigned char)p[1]))
        p++;
    return p ? p : "";
}

bool gp_kernels_are_alike(const char *a, const char *b)
{
    const char *p = flavour_of(a), *q = flavour_of(b);
    char letter;
    while ((letter = next_letter(&p)) && letter == next_letter(&q))
        ;
    return !letter && !next_letter(&q);
}

const char *gp_kernels_package(struct gp_exam *exam, const char *kernel)
{
    static const struct {
        const char *mark, *package;
    } kinds[] = {{"-lts", "linux-lts"},
                 {"-zen", "linux-zen"},
                 {"-hardened", "linux-hardened"},
                 {"-cachyos", "linux-cachyos"},
                 {"-rt", "linux-rt"}};
    char name[96];
    const char *path = gp_exam_text(exam, "%s/%s/pkgbase", gp_install_of(exam)->modules, kernel);
    if (gp_files_line(&exam->files, path, name, sizeof(name)) && name[0])
        return gp_exam_text(exam, "%s", name);
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++)
        if (strstr(kernel, kinds[i].mark))
            return kinds[i].package;
    return "linux";
}

const char *gp_kernels_holder(struct gp_exam *exam, const char *package)
{
    static const char path[] = "/etc/pacman.conf", key[] = "IgnorePkg", blanks[] = " \t\r=";
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 17, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *whole = gp_exam_text(exam, "%.*s", n < 1024 ? (int)n : 1024, line);
        whole += strspn(whole, blanks);
        if (strncmp(whole, key, sizeof(key) - 1) != 0)
            continue;
        const char *word = whole + sizeof(key) - 1;
        while (word += strspn(word, blanks), *word) {
            size_t length = strcspn(word, blanks);
            if (fnmatch(gp_exam_text(exam, "%.*s", (int)length, word), package, 0) == 0)
                return whole;
            word += length;
        }
    }
    return NULL;
}

bool gp_kernels_is_proxmox(const char *kernel)
{
    size_t n = strlen(kernel);
    return n > 4 && strcmp(kernel + n - 4, "-pve") == 0;
}

bool gp_kernels_is_mainline(const char *kernel)
{
    enum { DIGITS = 6 };
    const char *build = strchr(kernel, '-');
    return build && build[1] == '0' && strspn(build + 1, "0123456789") == DIGITS &&
           (strstr(build, "-generic") || strstr(build, "-lowlatency"));
}

bool gp_kernels_is_of_others(const char *kernel)
{
    static const char *const words[] = {"-liquorix-", "-xanmod", "-zabbly"};
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strstr(kernel, words[i]))
            return true;
    return gp_kernels_is_mainline(kernel);
}

bool gp_kernels_is_own(struct gp_exam *exam, const char *kernel)
{
    static const char *const of_repositories[] = {"linux",          "linux-lts", "linux-zen",
                                                  "linux-hardened", "linux-rt",  "linux-rt-lts"};
    static const char cachyos[] = "linux-cachyos";
    const char *package = gp_kernels_package(exam, kernel);
    for (size_t i = 0; i < GP_ARRAY_LEN(of_repositories); i++)
        if (strcmp(package, of_repositories[i]) == 0)
            return false;
    return exam->machine.distro == GP_DISTRO_ARCH &&
           strncmp(package, cachyos, sizeof(cachyos) - 1) != 0;
}

bool gp_kernels_fix_package(struct gp_exam *exam)
{
    static const struct {
        const char *package, *kernel;
        bool is_open;
    } packages[] = {{"nvidia", "linux", false},
                    {"nvidia-open", "linux", true},
                    {"nvidia-lts", "linux-lts", false},
                    {"nvidia-open-lts", "linux-lts", true}};
    const struct gp_install *in = gp_install_of(exam);
    enum { FIRST_WITHOUT_PROPRIETARY = 590 };
    bool is_manjaro = strcmp(exam->machine.distro_id, "manjaro") == 0;
    if ((exam->machine.distro != GP_DISTRO_ARCH && !is_manjaro) || in->source[0])
        return false;
    const char *kernel = gp_kernels_package(exam, exam->machine.kernel);
    if (is_manjaro && strcmp(kernel, "linux") != 0) {
        gp_exam_command(exam, "install the modules for this kernel", "sudo pacman -Syu %s-nvidia",
                        gp_exam_quoted(exam, kernel));
        gp_exam_command(exam, "", "sudo reboot");
        return true;
    }
    bool is_other = false, is_open = gp_version_major(in->version) >= FIRST_WITHOUT_PROPRIETARY;
    for (size_t i = 0; i < in->package_count; i++)
        for (size_t k = 0; k < GP_ARRAY_LEN(packages); k++)
            if (strcmp(in->packages[i].name, packages[k].package) == 0) {
                if (strcmp(packages[k].kernel, kernel) == 0)
                    return false;
                is_other = true;
                is_open = is_open || packages[k].is_open;
            }
    if (!is_other)
        return false;
    gp_exam_command(exam, "the installed package has modules for another kernel only: build them",
                    "sudo pacman -Syu %s %s", is_open ? "nvidia-open-dkms" : "nvidia-dkms",
                    gp_exam_quoted(exam, gp_exam_text(exam, "%s-headers", kernel)));
    gp_exam_command(exam, "", "sudo reboot");
    return true;
}

bool gp_kernels_has_built_in(struct gp_exam *exam, const char *module)
{
    const char *path = gp_exam_text(exam, "%s/%s/modules.builtin", gp_install_of(exam)->modules,
                                    exam->machine.kernel);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 18, NULL);
    return text && strstr(text, gp_exam_text(exam, "/%s.ko", module));
}
