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
    static const char *const words[] = {"-liquorix-", "-surface", "-xanmod", "-zabbly"};
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

bool gp_kernels_is_home_made(struct gp_exam *exam)
{
    static const char *const builders[] = {"(buildd@", "(debian-kernel@", "(build@", "(jenkins@"};
    const struct gp_machine *m = &exam->machine;
    char line[1024];
    if ((strcmp(m->distro_id, "debian") != 0 && strcmp(m->distro_id, "ubuntu") != 0) ||
        m->container || gp_kernels_is_proxmox(m->kernel) ||
        !gp_files_line(&exam->files, "/proc/version", line, sizeof(line)) || !strchr(line, '@'))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(builders); i++)
        if (strstr(line, builders[i]))
            return false;
    return true;
}

/* Whether a release ends like those of the kernels of Debian and Ubuntu, which are not for a cloud:
 * "6.17.0-14-generic", "6.12.9+deb13-amd64". */
static bool is_of_distribution(const char *kernel)
{
    static const char *const ends[] = {"-generic", "-lowlatency", "-oem", "-amd64", "-arm64"};
    const char *end = strrchr(kernel, '-');
    for (size_t i = 0; i < GP_ARRAY_LEN(ends) && end; i++)
        if (strcmp(end, ends[i]) == 0)
            return !gp_kernels_is_of_others(kernel);
    return false;
}

const char *gp_kernels_of_distribution(struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    const char *found = "";
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, gp_install_of(exam)->modules, &names);
    for (long i = 0; i < n; i++)
        if (gp_version_compare(names[i], m->kernel) < 0 &&
            gp_version_compare(names[i], found) > 0 && is_of_distribution(names[i]) &&
            gp_files_exist(&exam->files, gp_exam_text(exam, "/boot/vmlinuz-%s", names[i])))
            found = names[i];
    return found;
}

bool gp_kernels_has_built_in(struct gp_exam *exam, const char *module)
{
    const char *path = gp_exam_text(exam, "%s/%s/modules.builtin", gp_install_of(exam)->modules,
                                    exam->machine.kernel);
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 18, NULL);
    return text && strstr(text, gp_exam_text(exam, "/%s.ko", module));
}
