/* Installing the driver on Debian: the components of its archive, the headers, and the package. */
#include "doctor/checks/driver_fix.h"

#include "doctor/checks/driver_wish.h"
#include "doctor/readers/install.h"
#include "doctor/readers/kernels.h"
#include "doctor/version.h"

#include <string.h>

enum { OLDEST_ONLINE = 11, NEWEST_DEBIAN = 13 };

static const char archive[] = "archive.debian.org"; /* of releases before the oldest online */

static const char apt_folder[] = "/etc/apt/sources.list.d", apt_list[] = "/etc/apt/sources.list",
                  apt_stanzas[] = "/etc/apt/sources.list.d/debian.sources";

/* Whether a source is of the distribution's archive: others have components of the same names. The
 * distribution's own files may name any mirror. */
static bool is_of_archive(const char *path, const char *source)
{
    static const char *const others[] = {"multimedia", "virtualbox", "mopidy"};
    static const char *const marks[] = {"debian.org",   "/debian/", "/debian ", "/debian\t",
                                        "/debian.list", "devuan",   "kali"};
    bool is = strcmp(path, apt_list) == 0 || strcmp(path, apt_stanzas) == 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++)
        is = is || strstr(source, marks[i]);
    for (size_t i = 0; i < GP_ARRAY_LEN(others); i++)
        is = is && !strstr(source, others[i]);
    return is;
}

/* Whether a line has the word before a comment. */
static bool has_word(const char *line, const char *word)
{
    static const char between[] = " \t\r";
    for (const char *p = line + strspn(line, between); *p && *p != '#';) {
        size_t n = strcspn(p, between);
        if (n == strlen(word) && strncmp(p, word, n) == 0)
            return true;
        p += n + strspn(p + n, between);
    }
    return false;
}

/* "deb https://deb.debian.org/debian bookworm main" */
static bool line_has(const char *path, const char *line, const char *component)
{
    line += strspn(line, " \t");
    return strncmp(line, "deb", 3) == 0 && line[3] && strchr(" \t", line[3]) &&
           is_of_archive(path, line) && has_word(line, component);
}

/* The newer format: a stanza. A component may be in a line that continues the field. */
static bool stanza_has(struct gp_exam *exam, const char *path, const char *stanza,
                       const char *component)
{
    bool is_deb = true, is_on = true, has = false;
    const char *uris = "";
    for (const char *line = stanza; *line;) {
        size_t n = strcspn(line, "\n");
        const char *text = gp_exam_text(exam, "%.*s ", (int)n, line);
        if (strncasecmp(text, "Types:", 6) == 0)
            is_deb = has_word(text + 6, "deb");
        else if (strncasecmp(text, "Enabled:", 8) == 0)
            is_on = !has_word(text + 8, "no");
        else if (strncasecmp(text, "URIs:", 5) == 0)
            uris = text;
        else
            has = has ||
                  has_word(strncasecmp(text, "Components:", 11) == 0 ? text + 11 : text, component);
        line += n + (line[n] == '\n');
    }
    return is_deb && is_on && has && is_of_archive(path, uris);
}

/* Whether a file of apt's sources has a component of the archive. */
static bool has_component(struct gp_exam *exam, const char *path, const char *component)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, NULL);
    bool is_list = strcmp(path + strlen(path) - 5, ".list") == 0, has = false;
    while (text && *text && !has) {
        const char *end = is_list ? strchr(text, '\n') : strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        const char *source = gp_exam_text(exam, "%.*s", (int)n, text);
        has =
            is_list ? line_has(path, source, component) : stanza_has(exam, path, source, component);
        text += n + strspn(text + n, "\n");
    }
    return has;
}

static bool is_enabled(struct gp_exam *exam, const char *component)
{
    char **names;
    bool is_on = has_component(exam, apt_list, component);
    long n = gp_files_list(&exam->files, &exam->arena, apt_folder, &names);
    for (long i = 0; i < n && i < 100 && !is_on; i++) {
        const char *end = strrchr(names[i], '.');
        is_on = end && (strcmp(end, ".list") == 0 || strcmp(end, ".sources") == 0) &&
                has_component(exam, gp_exam_text(exam, "%s/%s", apt_folder, names[i]), component);
    }
    return is_on;
}

static void enable_components(struct gp_exam *exam)
{
    enum { BOOKWORM = 12 }; /* the first release with a separate component for firmware */
    bool is_new = gp_version_major(exam->machine.distro_version) >= BOOKWORM ||
                  !exam->machine.distro_version[0];
    const char *parts =
        is_new ? "main contrib non-free non-free-firmware" : "main contrib non-free";
    if (gp_files_exist(&exam->files, apt_stanzas))
        gp_exam_remedy(exam, GP_REMEDY_ENABLE_NON_FREE, parts, apt_stanzas);
    else
        gp_exam_remedy(exam, GP_REMEDY_ENABLE_NON_FREE_LINES, parts, apt_list);
}

void gp_driver_fix_non_free(struct gp_exam *exam)
{
    if (!is_enabled(exam, "non-free"))
        enable_components(exam);
}

bool gp_driver_has_open_package(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count; i++)
        if (strcmp(in->packages[i].name, "nvidia-open-kernel-dkms") == 0 &&
            strcmp(in->packages[i].state, "config-files") != 0)
            return true;
    return false;
}

/* Debian's package, which is content with either kind of modules; with the proprietary ones if the
 * GPUs need them, or in place of the open ones (the last word removes those). */
static const char *package_of_debian(struct gp_exam *exam, const struct gp_offer_choice *choice)
{
    const char *package = choice->row->package;
    if (strcmp(package, "nvidia-driver") != 0)
        return package;
    if (gp_driver_has_open_package(exam))
        return "nvidia-driver nvidia-kernel-dkms nvidia-open-kernel-dkms-";
    return gp_driver_wish(exam).needs_proprietary ? "nvidia-driver nvidia-kernel-dkms" : package;
}

/* Debian's packages of two branches can be installed together; it uses the newer one. */
static void prefer_older(struct gp_exam *exam, const struct gp_offer_choice *choice)
{
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count; i++)
        if (strcmp(in->packages[i].name, "nvidia-driver") == 0 &&
            strcmp(in->packages[i].state, "installed") == 0 &&
            strncmp(choice->row->package, "nvidia-tesla-", 13) == 0)
            gp_exam_command(exam, "use it instead of the newer one that is installed",
                            "sudo update-alternatives --set nvidia /usr/lib/nvidia/tesla-%u",
                            choice->branch);
}

/* Fermi and older; nvidia-smi is a package of its own. */
static const char *legacy_package(struct gp_exam *exam, unsigned branch)
{
    enum { FIRST_WITH_SMI = 340 };
    const char *name = gp_exam_text(exam, "nvidia-legacy-%uxx", branch);
    return branch < FIRST_WITH_SMI ? gp_exam_text(exam, "%s-driver", name)
                                   : gp_exam_text(exam, "%s-driver %s-smi", name, name);
}

void gp_driver_fix_archived(struct gp_exam *exam, const char *host)
{
    gp_exam_advice(exam,
                   "if apt does not find it: the archive of this release is now at %s, as it is no "
                   "longer supported",
                   host);
}

/* Whether apt fetches packages from this host. */
static bool is_fetched_from(struct gp_exam *exam, const char *host)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, apt_list, 1 << 16, NULL);
    return text && strstr(text, host);
}

/* With the components of the archive that have it, and the headers for its module. */
static void install_package(struct gp_exam *exam, const char *package)
{
    const char *kernel = exam->machine.kernel;
    gp_driver_fix_non_free(exam);
    if (gp_driver_wish(exam).needs_proprietary && exam->machine.is_driver_open)
        gp_exam_advice(exam, "with the proprietary kernel modules (nvidia-kernel-dkms) instead "
                             "of the open ones:");
    if (gp_kernels_is_proxmox(kernel))
        gp_exam_command(exam, "install Debian's driver, and the headers of Proxmox' kernels",
                        "sudo apt install %s %s", gp_driver_headers_of_proxmox(exam, kernel),
                        package);
    else
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_DRIVER_DEBIAN, gp_machine_dpkg_arch(&exam->machine),
                       package);
    unsigned release = gp_version_major(exam->machine.distro_version);
    if (release > 0 && release < OLDEST_ONLINE && !is_fetched_from(exam, archive))
        gp_driver_fix_archived(exam, archive);
}

void gp_driver_fix_debian_legacy(struct gp_exam *exam, unsigned branch)
{
    install_package(exam, legacy_package(exam, branch));
}

/* The packages of NVIDIA's repository need one of Debian's component contrib. Their dkms has apt
 * install the headers of Debian's kernels, but not those of Proxmox. */
static void prepare_for_nvidia(struct gp_exam *exam)
{
    const char *kernel = exam->machine.kernel;
    if (is_enabled(exam, "main") && !is_enabled(exam, "contrib"))
        enable_components(exam);
    if (gp_kernels_is_proxmox(kernel))
        gp_exam_command(exam, "install the headers of Proxmox' kernels", "sudo apt install %s",
                        gp_driver_headers_of_proxmox(exam, kernel));
}

/* The installed packages of branches that are too new for a GPU, "a b"; "": there are none. Their
 * names have no branch: apt keeps them, since they are newer than those that it could install. */
static const char *too_new_packages(struct gp_exam *exam, unsigned last)
{
    enum { NEWEST = 2000 }; /* nvidia-kernel-common has a date */
    const struct gp_install *in = gp_install_of(exam);
    const char *names = "";
    for (size_t i = 0; i < in->package_count; i++) {
        const struct gp_package *package = &in->packages[i];
        unsigned branch = gp_version_major(package->version);
        if (branch > last && branch < NEWEST && strcmp(package->state, "installed") == 0)
            names = gp_exam_text(exam, "%s%s%s", names, names[0] ? " " : "", package->name);
    }
    return names;
}

void gp_driver_fix_debian(struct gp_exam *exam, const struct gp_offer_choice *choice)
{
    enum { PINNED = 580 }; /* the branch of GP_REMEDY_INSTALL_DRIVER_580 */
    unsigned last = gp_driver_wish(exam).last;
    const char *newer = last == PINNED ? too_new_packages(exam, last) : "";
    unsigned number = gp_version_major(exam->machine.distro_version);
    const char *release = gp_exam_text(exam, "debian%u", number > 0 ? number : NEWEST_DEBIAN);
    if (choice->from == GP_OFFER_DISTRO && !newer[0]) {
        install_package(exam, package_of_debian(exam, choice));
        prefer_older(exam, choice);
        return;
    }
    prepare_for_nvidia(exam);
    if (newer[0])
        gp_exam_remedy(exam, GP_REMEDY_REMOVE_PACKAGES, newer, NULL);
    gp_exam_remedy(
        exam, choice->branch == 0 ? GP_REMEDY_INSTALL_DRIVER_NVIDIA : GP_REMEDY_INSTALL_DRIVER_580,
        release, NULL);
}
