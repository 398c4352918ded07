#include "doctor/checks/module_keys.h"

#include "doctor/exam.h"
#include "doctor/readers/install.h"
#include "doctor/readers/kernel_config.h"
#include "doctor/readers/packages.h"
#include "doctor/version.h"

#include <errno.h>
#include <string.h>

enum { KEYS_MAX = 1 << 18 };

#define EFIVARS "/sys/firmware/efi/efivars/"
#define SHIM "-605dab50-e046-4300-abb6-3dd810dd8b23"

/* Shim's list of enrolled keys, the firmware's own, and whether shim has the kernel trust the first
 * for modules, too. */
static const char list_path[] = EFIVARS "MokListRT" SHIM,
                  db_path[] = EFIVARS "db-d719b2cb-3d3a-4596-a3bc-dad00e67656f",
                  shim_tables[] = "/sys/firmware/efi/mok-variables",
                  trusted_path[] = EFIVARS "MokListTrustedRT" SHIM;

/* What builds modules on this machine signs them with these. */
static const char shim_key[] = "/var/lib/shim-signed/mok/MOK.der",
                  dkms_key[] = "/var/lib/dkms/mok.pub",
                  akmods_key[] = "/etc/pki/akmods/certs/public_key.der";
static const char *const local_keys[] = {shim_key, dkms_key, akmods_key};

/* Where packages put the keys of their modules. openSUSE's create one at each installation, earlier
 * below /var. The distribution's own may be part of the kernel, unknown to the firmware. */
static const struct {
    const char *path;
    bool is_in_kernel;
} folders[] = {{"/usr/share/nvidia-pubkeys", false},
               {"/var/lib/nvidia-pubkeys", false},
               {"/etc/pki/elrepo", false},
               {"/etc/uefi/certs", true}};

/* The serial number in a certificate, with its DER header; a signature names its key by it. 0: none
 * that is long enough to be recognized. */
static size_t serial_of(const char *key, size_t size, const char **ret)
{
    /* SEQUENCE, SEQUENCE, [0] version 3: those of RSA keys have lengths of two bytes */
    enum { AT = 13, LEAST = 4, MOST = 20 };
    const unsigned char *bytes = (const unsigned char *)key;
    if (size < AT + 2 + MOST || bytes[0] != 0x30 || bytes[4] != 0x30 || bytes[8] != 0xa0 ||
        bytes[AT] != 0x02 || bytes[AT + 1] < LEAST || bytes[AT + 1] > MOST)
        return 0;
    *ret = key + AT;
    return 2 + (size_t)bytes[AT + 1];
}

/* Whether the signature at the end of a module, which is not compressed, was made with this key. */
static bool has_signed(struct gp_exam *exam, const char *module, const char *path)
{
    enum { SIGNATURE_MAX = 1 << 13 };
    size_t key_size = 0, size = 0;
    const char *serial = NULL;
    const char *key = gp_files_text(&exam->files, &exam->arena, path, KEYS_MAX, &key_size);
    size_t length = key ? serial_of(key, key_size, &serial) : 0;
    const char *end =
        length > 0 ? gp_files_tail(&exam->files, &exam->arena, module, SIGNATURE_MAX, &size) : NULL;
    return end && memmem(end, size, serial, length);
}

/* The key of the module in these folders; NULL: none of them has it. */
static const char *packaged_key(struct gp_exam *exam, const char *module, bool with_kernel)
{
    char **names;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        long n = !folders[i].is_in_kernel || with_kernel
                     ? gp_files_list(&exam->files, &exam->arena, folders[i].path, &names)
                     : 0;
        for (long k = 0; k < n && k < 64; k++) {
            const char *path = gp_exam_text(exam, "%s/%s", folders[i].path, names[k]);
            if (has_signed(exam, module, path))
                return path;
        }
    }
    return NULL;
}

/* The key that this module is signed with, or that locally built modules are, and its bytes; NULL:
 * unknown. The signature of a compressed module does not show its key. */
static const char *key_of(struct gp_exam *exam, const char *module, const char **ret, size_t *size)
{
    const char *path = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(local_keys) && gp_install_of(exam)->source[0]; i++) {
        const char *key = gp_files_text(&exam->files, &exam->arena, local_keys[i], KEYS_MAX, size);
        bool is_of_module = has_signed(exam, module, local_keys[i]);
        if (key && *size > 0 && (!path || is_of_module))
            path = local_keys[i];
        if (is_of_module)
            break;
    }
    if (!path)
        path = packaged_key(exam, module, false);
    *ret = path ? gp_files_text(&exam->files, &exam->arena, path, KEYS_MAX, size) : NULL;
    return *ret ? path : NULL;
}

/* The list, of shim's or of the firmware's, that has the key; NULL: none. The first of shim's is
 * incomplete if it is long. */
static const char *list_with(struct gp_exam *exam, const char *key, size_t size)
{
    const char *const lists[] = {list_path, gp_exam_text(exam, "%s/MokListRT", shim_tables),
                                 db_path};
    for (size_t i = 0; i < GP_ARRAY_LEN(lists); i++) {
        size_t length;
        const char *text = gp_files_text(&exam->files, &exam->arena, lists[i], KEYS_MAX, &length);
        if (text && memmem(text, length, key, size))
            return lists[i];
    }
    return NULL;
}

const char *gp_module_keys_unknown(struct gp_exam *exam, const char *module)
{
    const char *key;
    size_t size;
    if (!gp_files_text(&exam->files, &exam->arena, list_path, KEYS_MAX, &size) && errno != ENOENT)
        return NULL;
    const char *path = key_of(exam, module, &key, &size);
    return path && !list_with(exam, key, size) ? path : NULL;
}

/* ---- enrolled, but not used ---- */

/* The line of a keyring in /proc/keys, which shows root "….machine: empty"; NULL: none. */
static const char *keyring(struct gp_exam *exam, const char *name)
{
    const char *text = gp_files_text(&exam->files, &exam->arena, "/proc/keys", KEYS_MAX, NULL);
    const char *at = text ? strstr(text, gp_exam_text(exam, " %s: ", name)) : NULL;
    return at ? gp_exam_text(exam, "%.*s", (int)strcspn(at + 1, "\n"), at + 1) : NULL;
}

/* Whether kernels of this distribution use only .machine for modules. Those of Debian, Ubuntu,
 * Fedora, RHEL and Amazon are patched to use .platform, too. */
static bool is_machine_only(const struct gp_machine *m)
{
    return m->distro == GP_DISTRO_ARCH || strcmp(m->distro_id, "pop") == 0;
}

/* Whether shim's variable, by which it has the kernel trust its keys, can be seen to be missing. */
static bool lacks_trust(struct gp_exam *exam)
{
    return gp_files_exist(&exam->files, shim_tables) &&
           !gp_files_exist(&exam->files, gp_exam_text(exam, "%s/MokListTrustedRT", shim_tables)) &&
           !gp_files_exist(&exam->files, trusted_path);
}

/* Why the kernel does not use shim's keys for modules. */
enum disuse { DISUSE_NONE, DISUSE_NO_KEYRING, DISUSE_NOT_TRUSTED };

static enum disuse disuse_of(struct gp_exam *exam, const char **ret_where, const char **ret_text)
{
    const char *ring = keyring(exam, ".machine");
    *ret_text = "CONFIG_INTEGRITY_MACHINE_KEYRING is not set";
    if (gp_kernel_lacks(exam, "CONFIG_INTEGRITY_MACHINE_KEYRING",
                        "CONFIG_INTEGRITY_PLATFORM_KEYRING", ret_where))
        return DISUSE_NO_KEYRING;
    *ret_where = "/proc/keys";
    *ret_text = "has .platform, and no .machine";
    if (!ring && keyring(exam, ".platform"))
        return DISUSE_NO_KEYRING;
    *ret_where = shim_tables;
    *ret_text = "no MokListTrustedRT: shim does not have the kernel trust its keys";
    return (!ring || strcmp(ring, ".machine: empty") == 0) && lacks_trust(exam) ? DISUSE_NOT_TRUSTED
                                                                                : DISUSE_NONE;
}

/* Whether the module may have been signed with a local key that is not enrolled. */
static bool may_have_other_key(struct gp_exam *exam, const char *module, const char *path)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(local_keys) && !has_signed(exam, module, path); i++) {
        size_t size = 0;
        const char *key = gp_files_text(&exam->files, &exam->arena, local_keys[i], KEYS_MAX, &size);
        if (key && size > 0 && !list_with(exam, key, size))
            return true;
    }
    return false;
}

/* A key that is enrolled, and the list that has it, where the kernel does not use that list for
 * modules; NULL: there is none. */
static const char *unused_key(struct gp_exam *exam, const char **ret_list)
{
    const struct gp_install *in = gp_install_of(exam);
    const char *module =
        gp_exam_text(exam, "%s/%s/%s", in->modules, exam->machine.kernel, in->module);
    const char *key, *where, *text;
    size_t size;
    bool is_known = in->module[0] && is_machine_only(&exam->machine);
    const char *path = is_known ? key_of(exam, module, &key, &size) : NULL;
    *ret_list = path ? list_with(exam, key, size) : NULL;
    if (!*ret_list || may_have_other_key(exam, module, path))
        return NULL;
    return *ret_list == db_path || disuse_of(exam, &where, &text) != DISUSE_NONE ? path : NULL;
}

bool gp_module_keys_are_unused(struct gp_exam *exam)
{
    const char *list;
    return unused_key(exam, &list) != NULL;
}

/* Whether the system partition can be read, and has no shim: "shimx64.efi", openSUSE's "shim.efi".
 */
static bool is_without_shim(struct gp_exam *exam, const char **ret_top)
{
    static const char *const tops[] = {"/boot/efi/EFI", "/efi/EFI", "/boot/EFI"};
    *ret_top = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(tops); i++) {
        char **names, **files;
        long n = gp_files_list(&exam->files, &exam->arena, tops[i], &names);
        for (long k = 0; k < n; k++) {
            long count = gp_files_list(&exam->files, &exam->arena,
                                       gp_exam_text(exam, "%s/%s", tops[i], names[k]), &files);
            for (long f = 0; f < count; f++)
                if (strncasecmp(files[f], "shim", 4) == 0)
                    return false;
        }
        *ret_top = n > 0 ? tops[i] : *ret_top;
    }
    return *ret_top != NULL;
}

static void fix_unused_of_shim(struct gp_exam *exam)
{
    const char *where, *text;
    enum disuse disuse = disuse_of(exam, &where, &text);
    gp_exam_evidence(exam, where, "%s", text);
    gp_exam_why(exam, "The key is enrolled, so enrolling it again changes nothing: the kernel has "
                      "it only in its keyring .platform, which is not for modules. Enrolled keys "
                      "get into .machine, which is, if the kernel was built with that keyring and "
                      "shim says that they are trusted.");
    if (disuse == DISUSE_NO_KEYRING) {
        gp_exam_advice(exam, "boot a kernel that was built with CONFIG_INTEGRITY_MACHINE_KEYRING "
                             "(Linux 5.18 or newer), such as another one of the distribution");
        return;
    }
    const char *top;
    if (is_without_shim(exam, &top))
        gp_exam_advice(exam, "if the firmware starts systemd-boot or a unified kernel image "
                             "itself: install shim, let the firmware start it, and install what "
                             "it started before as shim's grubx64.efi; only shim has keys put into "
                             ".machine");
    gp_exam_command(exam, "have shim tell the kernel to trust its keys; it asks for a password",
                    "sudo mokutil --trust-mok");
    gp_exam_command(exam, "on the blue screen confirm the change with that password",
                    "sudo reboot");
}

bool gp_module_keys_fix_unused(struct gp_exam *exam)
{
    const char *list, *key = unused_key(exam, &list);
    if (!key)
        return false;
    gp_exam_evidence(exam, list, "has the key %s: it is enrolled", key);
    if (list == db_path) {
        gp_exam_why(exam, "The key is in the firmware's list (db), which is for boot loaders and "
                          "kernels: this kernel does not use it for modules.");
        gp_exam_advice(exam,
                       "boot through shim, and enroll the key in its list, too (sudo mokutil "
                       "--import %s; sudo mokutil --trust-mok)",
                       gp_exam_quoted(exam, key));
    } else {
        fix_unused_of_shim(exam);
    }
    gp_exam_advice(exam, "or use a kernel and modules that the distribution has signed; for a "
                         "kernel of your own: build the key into it (CONFIG_SYSTEM_TRUSTED_KEYS)");
    gp_exam_advice(exam, "or turn Secure Boot off in the firmware settings");
    return true;
}

/* ---- without shim ---- */

/* Shim leaves these at each boot, an old one only the first; what it may be started as by another
 * name. */
bool gp_module_keys_are_without_shim(struct gp_exam *exam, const char **ret_top)
{
    static const char loader[] = EFIVARS "LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
                      level[] = EFIVARS "SbatLevelRT" SHIM;
    return gp_files_exist(&exam->files, loader) && !gp_files_exist(&exam->files, list_path) &&
           !gp_files_exist(&exam->files, level) && !gp_files_exist(&exam->files, shim_tables) &&
           is_without_shim(exam, ret_top);
}

void gp_module_keys_fix_without_shim(struct gp_exam *exam, const char *top)
{
    static const char wish[] = EFIVARS "MokNew" SHIM;
    gp_exam_evidence(exam, top,
                     "no shim: the firmware starts the boot loader or a unified kernel "
                     "image itself");
    gp_exam_evidence(exam, list_path, "missing: shim did not run at this boot");
    if (gp_files_exist(&exam->files, wish))
        gp_exam_evidence(exam, wish, "an enrollment of mokutil, which nothing carries out");
    gp_exam_why(exam, "Keys of mokutil are read by shim alone. Without it no blue screen asks for "
                      "them, and the kernel gets only the firmware's own keys.");
    gp_exam_advice(exam, "turn Secure Boot off in the firmware settings");
    gp_exam_advice(exam,
                   "or have the firmware start shim again, with the boot loader that the "
                   "distribution has signed for it%s; then run gpulse doctor again, which "
                   "shows how to enroll the key",
                   exam->machine.distro == GP_DISTRO_FEDORA
                       ? " (sudo dnf install shim-x64 grub2-efi-x64)"
                       : "");
    if (!is_machine_only(&exam->machine))
        gp_exam_advice(exam,
                       "or, with Secure Boot keys of your own: add the certificate that signs "
                       "the modules to the firmware's list db, which this distribution's "
                       "kernel uses for modules, too");
}

/* ---- how to enroll them ---- */

/* A key that openSUSE's packages created for this version of the driver, where the signature of a
 * compressed module does not show it: "MOK-nvidia-driver-G06-570.169-1.1-default.der". */
static const char *key_by_name(struct gp_exam *exam)
{
    const char *version = gp_install_of(exam)->version, *found = NULL;
    char **names;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders) && !found; i++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[i].path, &names);
        for (long k = 0; k < n; k++)
            if (version[0] && strncmp(names[k], "MOK-nvidia", 10) == 0 &&
                strstr(names[k], gp_exam_text(exam, "-%s-", version)))
                found = gp_exam_text(exam, "%s/%s", folders[i].path, names[k]);
    }
    return found;
}

/* Whether the installed dkms signs modules only if a key is set for it. */
static bool is_dkms_without_key(struct gp_exam *exam)
{
    enum { FIRST_WITH_KEY = 3 };
    const struct gp_package *dkms = gp_packages_installed(&exam->files, &exam->arena, "dkms");
    return dkms && gp_version_major(dkms->version) < FIRST_WITH_KEY;
}

/* Debian's package with the source of the module, "nvidia-kernel-dkms". */
static const char *package_of_dkms(struct gp_exam *exam)
{
    static const char end[] = "-kernel-dkms";
    const struct gp_install *in = gp_install_of(exam);
    for (size_t i = 0; i < in->package_count; i++) {
        size_t n = strlen(in->packages[i].name);
        if (n > sizeof(end) && strcmp(in->packages[i].name + n - (sizeof(end) - 1), end) == 0 &&
            strcmp(in->packages[i].state, "installed") == 0)
            return in->packages[i].name;
    }
    return "nvidia-kernel-dkms";
}

/* The files are those that the helper of dkms expects. */
static void sign_with_own_key(struct gp_exam *exam)
{
    gp_exam_command(exam, "this dkms has no key: create one",
                    "sudo mkdir -p /root/.mok && sudo openssl req -new -x509 -nodes -newkey "
                    "rsa:2048 -days 36500 -subj '/CN=DKMS modules/' -outform DER -keyout "
                    "/root/.mok/client.priv -out /root/.mok/client.der");
    gp_exam_command(exam, "have dkms sign with it, by the helper that it comes with",
                    "echo 'sign_tool=\"/etc/dkms/sign_helper.sh\"' | sudo tee -a "
                    "/etc/dkms/framework.conf");
    gp_exam_command(exam, gp_remedies[GP_REMEDY_ENROLL_KEY].note,
                    "sudo mokutil --import /root/.mok/client.der");
    gp_exam_command(exam, "build the module again, signed", "sudo dpkg-reconfigure %s",
                    package_of_dkms(exam));
}

void gp_module_keys_enroll(struct gp_exam *exam)
{
    const struct gp_install *in = gp_install_of(exam);
    const struct gp_machine *m = &exam->machine;
    const char *module = gp_exam_text(exam, "%s/%s/%s", in->modules, m->kernel, in->module);
    const char *key = in->module[0] ? packaged_key(exam, module, true) : NULL;
    const bool is_of_dkms = strncmp(in->source, "/var/lib/dkms/", 14) == 0;
    const char *const of_dkms[] = {dkms_key, shim_key, NULL};
    key = key || m->distro != GP_DISTRO_SUSE ? key : key_by_name(exam);
    /* Ubuntu's program knows its own. */
    if (!key && is_of_dkms && m->distro != GP_DISTRO_UBUNTU)
        key = gp_files_first(&exam->files, of_dkms);
    if (!key && m->distro == GP_DISTRO_RHEL && strstr(in->source, "akmods"))
        key = akmods_key;
    if (key)
        gp_exam_command(exam, gp_remedies[GP_REMEDY_ENROLL_KEY].note, "sudo mokutil --import %s%s",
                        gp_exam_quoted(exam, key), m->distro == GP_DISTRO_SUSE ? " --root-pw" : "");
    else if (m->distro == GP_DISTRO_DEBIAN && is_of_dkms && is_dkms_without_key(exam))
        sign_with_own_key(exam);
    else
        gp_exam_remedy(exam, GP_REMEDY_ENROLL_KEY, NULL, NULL);
}
