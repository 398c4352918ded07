#include "doctor/machine.h"

#include "base/arena.h"
#include "doctor/files.h"
#include "doctor/tables.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- distribution ---- */

/* By the words in ID and ID_LIKE of os-release(5), in this order. Some derivatives have neither the
 * packages nor the repositories of their parent; earlier releases of CachyOS name none. */
static const struct {
    const char *id;
    enum gp_distro distro;
} families[] = {
    {"ubuntu", GP_DISTRO_UBUNTU},  {"debian", GP_DISTRO_DEBIAN}, {"rhel", GP_DISTRO_RHEL},
    {"centos", GP_DISTRO_RHEL},    {"rocky", GP_DISTRO_RHEL},    {"almalinux", GP_DISTRO_RHEL},
    {"mageia", GP_DISTRO_OTHER},   {"amzn", GP_DISTRO_OTHER},    {"ol", GP_DISTRO_RHEL},
    {"fedora", GP_DISTRO_FEDORA},  {"manjaro", GP_DISTRO_OTHER}, {"steamos", GP_DISTRO_OTHER},
    {"arch", GP_DISTRO_ARCH},      {"sles", GP_DISTRO_OTHER},    {"sled", GP_DISTRO_OTHER},
    {"sle", GP_DISTRO_OTHER},      {"opensuse", GP_DISTRO_SUSE}, {"suse", GP_DISTRO_SUSE},
    {"incus-os", GP_DISTRO_OTHER}, {"cachyos", GP_DISTRO_ARCH},
};

/* Systems with a way of their own, whatever family their os-release(5) names: by a file that only
 * they have, in this order. */
static const struct {
    enum gp_distro family; /* of os-release; GP_DISTRO__COUNT: any */
    const char *mark;      /* a file */
    const char *id;        /* for the table of remedies */
} systems[] = {
    {GP_DISTRO_FEDORA, "/usr/share/ublue-os", "ublue"},
    {GP_DISTRO_FEDORA, "/run/ostree-booted", "ostree"},
    {GP_DISTRO_SUSE, "/usr/sbin/transactional-update", "transactional"},
    {GP_DISTRO_OTHER, "/etc/eks", "eks"},
    {GP_DISTRO_DEBIAN, "/usr/bin/midclt", "truenas"},
    {GP_DISTRO_DEBIAN, "/usr/share/truenas", "truenas"},
    {GP_DISTRO_DEBIAN, "/run/ostree-booted", "endless"},
    {GP_DISTRO__COUNT, "/etc/unraid-version", "unraid"},
};

/* The value of KEY= in os-release, without quotes. */
static void release_value(const char *text, const char *key, char *ret, size_t size)
{
    size_t n = strlen(key);
    *ret = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) != 0 || line[n] != '=')
            continue;
        const char *value = line + n + 1;
        char quote = *value == '"' || *value == '\'' ? *value++ : '\0';
        size_t length = 0;
        while (value[length] && value[length] != '\n' && value[length] != '\r' &&
               value[length] != quote)
            length++;
        (void)snprintf(ret, size, "%.*s", (int)length, value);
        return;
    }
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = strstr(words, word); p; p = strstr(p + 1, word))
        if ((p == words || p[-1] == ' ') && (p[n] == '\0' || p[n] == ' ' || p[n] == '-'))
            return true;
    return false;
}

/* Debian's release below a derivative, which counts its own: "12" for LMDE 6 or Devuan 5; "": it
 * follows Debian's testing, as Kali does. */
static void read_debian_release(struct gp_machine *m, const struct gp_files *files,
                                const char *codename)
{
    static const struct {
        const char *codename, *release;
    } names[] = {{"bullseye", "11"}, {"bookworm", "12"},  {"trixie", "13"}, {"chimaera", "11"},
                 {"daedalus", "12"}, {"excalibur", "13"}, {"faye", "12"},   {"gigi", "13"}};
    char line[64];
    if (!gp_files_line(files, "/etc/debian_version", line, sizeof(line)) || line[0] < '0' ||
        line[0] > '9')
        line[0] = '\0';
    (void)snprintf(m->distro_version, sizeof(m->distro_version), "%.31s", line);
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && !line[0]; i++)
        if (strcmp(codename[0] ? codename : m->codename, names[i].codename) == 0)
            (void)snprintf(m->distro_version, sizeof(m->distro_version), "%s", names[i].release);
}

static void find_system(struct gp_machine *m, const struct gp_files *files)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(systems); i++) {
        if ((systems[i].family != m->distro && systems[i].family != GP_DISTRO__COUNT) ||
            !gp_files_exist(files, systems[i].mark))
            continue;
        m->distro = GP_DISTRO_OTHER;
        (void)snprintf(m->distro_id, sizeof(m->distro_id), "%s", systems[i].id);
        return;
    }
    if (strcmp(m->distro_id, "amzn") == 0 && strcmp(m->distro_version, "2") == 0)
        (void)snprintf(m->distro_id, sizeof(m->distro_id), "amzn2");
}

bool gp_machine_is_ostree(const struct gp_machine *machine)
{
    return strcmp(machine->distro_id, "ostree") == 0 || strcmp(machine->distro_id, "ublue") == 0;
}

bool gp_machine_has_apt(const struct gp_machine *machine)
{
    return machine->distro == GP_DISTRO_DEBIAN || machine->distro == GP_DISTRO_UBUNTU;
}

bool gp_machine_is_lxc(const struct gp_machine *machine)
{
    return machine->container && strcmp(machine->container, "lxc") == 0;
}

const char *gp_machine_image_update(const struct gp_files *files)
{
    static const char bootc[] = "/usr/bin/bootc", ublue[] = "/usr/share/ublue-os";
    static const char *const words[] = {"ostree=", "composefs="};
    char line[4096];
    bool is_booted = gp_files_exist(files, "/run/ostree-booted");
    if (gp_files_line(files, "/proc/cmdline", line, sizeof(line)))
        for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
            is_booted = is_booted || strstr(line, words[i]);
    if (!is_booted)
        return NULL; /* bootc is installed elsewhere, too, to build images */
    /* With rpm-ostree packages can be layered, which bootc does not update. */
    if (gp_files_exist(files, "/usr/bin/rpm-ostree"))
        return gp_files_exist(files, ublue) ? "sudo rpm-ostree upgrade" : NULL;
    return gp_files_exist(files, bootc) ? "sudo bootc upgrade" : NULL;
}

enum { FIRST_OF_FEDORA = 20 };

/* The name of a release: one plain word, as it becomes part of commands; "": the value is not. */
static void release_codename(const char *text, const char *key, char *ret, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    release_value(text, key, ret, size);
    if (ret[0] == '-' || ret[strspn(ret, plain)] != '\0')
        ret[0] = '\0';
}

/* Debian's releases before 10 have it only in their version: "9 (stretch)". */
static void read_codename(struct gp_machine *m, const char *text)
{
    char version[64];
    release_codename(text, "VERSION_CODENAME", m->codename, sizeof(m->codename));
    release_value(text, "VERSION", version, sizeof(version));
    const char *word = strchr(version, '(');
    size_t n = word ? strspn(word + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    if (!m->codename[0] && strcmp(m->distro_id, "debian") == 0 && n > 0 && word[n + 1] == ')')
        (void)snprintf(m->codename, sizeof(m->codename), "%.*s", (int)n, word + 1);
}

static void read_distro(struct gp_machine *m, const struct gp_files *files)
{
    char text[8192], like[128], codename[32];
    m->distro = GP_DISTRO_OTHER;
    if (gp_files_read(files, "/etc/os-release", text, sizeof(text)) < 0 &&
        gp_files_read(files, "/usr/lib/os-release", text, sizeof(text)) < 0)
        return;
    release_value(text, "PRETTY_NAME", m->distro_name, sizeof(m->distro_name));
    release_value(text, "ID", m->distro_id, sizeof(m->distro_id));
    release_value(text, "VERSION_ID", m->distro_version, sizeof(m->distro_version));
    release_codename(text, "UBUNTU_CODENAME", m->base_codename, sizeof(m->base_codename));
    read_codename(m, text);
    release_value(text, "ID_LIKE", like, sizeof(like));
    bool is_found = false;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < GP_ARRAY_LEN(families) && !is_found; i++) {
            is_found = has_word(pass == 0 ? m->distro_id : like, families[i].id);
            if (is_found)
                m->distro = families[i].distro;
        }
    /* Some Fedora derivatives list the whole family in ID_LIKE; the version number tells them
     * apart. */
    if (m->distro == GP_DISTRO_RHEL && strtoul(m->distro_version, NULL, 10) >= FIRST_OF_FEDORA)
        m->distro = GP_DISTRO_FEDORA;
    release_value(text, "DEBIAN_CODENAME", codename, sizeof(codename));
    if (m->distro == GP_DISTRO_DEBIAN && strcmp(m->distro_id, "debian") != 0)
        read_debian_release(m, files, codename);
    find_system(m, files);
}

const char *gp_distro_word(enum gp_distro distro)
{
    static const char *const words[] = {
#define X(id, word) word,
        GP_DISTROS(X)
#undef X
    };
    return words[distro];
}

/* ---- kernel, architecture, container ---- */

/* As `uname -m` calls them: a program, the kernel's version and the CPU's description show it. */
static const struct {
    unsigned machine; /* of programs */
    const char *word, *dpkg;
    const char *compiler; /* of the kernel, in /proc/version */
    const char *cpu;      /* in /proc/cpuinfo; NULL: 64 bits look the same */
} arches[] = {
    {EM_X86_64, "x86_64", "amd64", "x86_64-", " lm "},
    {EM_AARCH64, "aarch64", "arm64", "aarch64-", "CPU architecture: 8"},
    {EM_PPC64, "ppc64le", "ppc64el", "powerpc64le-", "POWER"},
    {EM_386, "i686", "i386", "i686-", NULL},
    {EM_RISCV, "riscv64", "riscv64", "riscv64-", "rv64"},
    {EM_ARM, "armv7l", "armhf", "arm-linux-gnueabihf-", "CPU architecture: 7"},
};

/* Whether the compiler that built the kernel is this one: "(aarch64-poky-linux-gcc". What comes
 * before may name the machine that built it, "(builder@x86_64-ci-07)", and tells nothing. */
static bool is_compiled_by(const char *version, const char *compiler)
{
    for (const char *at = version; (at = strstr(at, compiler)); at += strlen(compiler)) {
        const char *word = at + strcspn(at, " )");
        const char *gcc = strstr(at, "gcc"), *clang = strstr(at, "clang");
        if (at > version && strchr(" (", at[-1]) &&
            ((gcc && gcc < word) || (clang && clang < word)))
            return true;
    }
    return false;
}

static bool set_arch(struct gp_machine *m, const char *word)
{
    (void)snprintf(m->arch, sizeof(m->arch), "%s", word);
    return true;
}

/* The one that a file of the kernel tells of; the CPU's description is the surer one. */
static bool read_arch_of_kernel(struct gp_machine *m, const struct gp_files *files)
{
    char version[512] = "", cpu[2048] = "";
    (void)gp_files_read(files, "/proc/version", version, sizeof(version));
    (void)gp_files_read(files, "/proc/cpuinfo", cpu, sizeof(cpu));
    for (size_t i = 0; i < GP_ARRAY_LEN(arches); i++)
        if (arches[i].cpu && strstr(cpu, arches[i].cpu))
            return set_arch(m, arches[i].word);
    for (size_t i = 0; i < GP_ARRAY_LEN(arches); i++)
        if (is_compiled_by(version, arches[i].compiler))
            return set_arch(m, arches[i].word);
    return false;
}

/* From a program of the machine, as the kernel running here may differ from the root's and from its
 * programs; otherwise, where none can be read, from what the kernel says. */
static void read_arch(struct gp_machine *m, const struct gp_files *files)
{
    static const char *const programs[] = {"/bin/sh", "/usr/bin/env", "/sbin/init",
                                           "/sbin/ldconfig", "/usr/bin/dpkg"};
    char head[64];
    for (size_t i = 0; i < GP_ARRAY_LEN(programs); i++) {
        if (gp_files_read(files, programs[i], head, sizeof(head)) < 20 ||
            memcmp(head, ELFMAG, SELFMAG) != 0)
            continue;
        unsigned machine = (unsigned char)head[18] | (unsigned)(unsigned char)head[19] << 8;
        for (size_t w = 0; w < GP_ARRAY_LEN(arches); w++)
            if (arches[w].machine == machine)
                (void)snprintf(m->arch, sizeof(m->arch), "%s", arches[w].word);
        return;
    }
    if (!read_arch_of_kernel(m, files))
        (void)snprintf(m->arch, sizeof(m->arch), "x86_64");
}

const char *gp_machine_dpkg_arch(const struct gp_machine *machine)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(arches); i++)
        if (strcmp(arches[i].word, machine->arch) == 0)
            return arches[i].dpkg;
    return machine->arch;
}

static void read_container(struct gp_machine *m, const struct gp_files *files)
{
    static const struct {
        const char *value; /* the variable "container" of the first process */
        const char *word;
    } values[] = {{"podman", "podman"},
                  {"docker", "docker"},
                  {"lxc", "lxc"},
                  {"systemd-nspawn", "systemd-nspawn"},
                  {"oci", "an OCI container"}};
    char line[64]; /* systemd passes on the first process's variable */
    const char *variable = gp_machine_variable(m, "container");
    if (!variable && gp_files_line(files, "/run/systemd/container", line, sizeof(line)))
        variable = line;
    if (gp_machine_variable(m, "KUBERNETES_SERVICE_HOST"))
        m->container = "kubernetes";
    else if (gp_files_exist(files, "/.singularity.d"))
        m->container = "apptainer";
    else if (gp_files_exist(files, "/.dockerenv"))
        m->container = "docker";
    else if (gp_files_exist(files, "/run/.containerenv"))
        m->container = "podman";
    for (size_t i = 0; variable && !m->container && i < GP_ARRAY_LEN(values); i++)
        if (strcmp(variable, values[i].value) == 0)
            m->container = values[i].word;
}

static void read_surroundings(struct gp_machine *m, const struct gp_files *files)
{
    char text[512];
    /* it becomes part of paths and commands */
    static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._+~-";
    if (!gp_files_line(files, "/proc/sys/kernel/osrelease", m->kernel, sizeof(m->kernel)) ||
        m->kernel[strspn(m->kernel, signs)])
        m->kernel[0] = '\0';
    m->is_wsl = strstr(m->kernel, "icrosoft") || gp_files_exist(files, "/usr/lib/wsl/lib");
    /* The device tree holds a list of NUL-terminated names. */
    long n = gp_files_read(files, "/proc/device-tree/compatible", text, sizeof(text));
    m->is_apple = n > 0 && strncmp(text, "apple,", 6) == 0;
    m->is_jetson = gp_files_exist(files, "/etc/nv_tegra_release") ||
                   (n > 0 && memmem(text, (size_t)n, "nvidia,tegra", 12));
    read_arch(m, files);
    read_container(m, files);
}

const char *gp_machine_variable(const struct gp_machine *machine, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = machine->environment; p && *p; p += strlen(p) + 1)
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            return p + n + 1;
    return NULL;
}

/* ---- PCI ---- */

/* Whether the machine's case is one of these types of SMBIOS. */
static bool has_chassis(const struct gp_files *files, const unsigned *types, size_t count)
{
    char line[16];
    if (!gp_files_line(files, "/sys/class/dmi/id/chassis_type", line, sizeof(line)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strtoul(line, NULL, 10) == types[i])
            return true;
    return false;
}

bool gp_machine_is_laptop(const struct gp_files *files)
{
    static const unsigned types[] = {8, 9, 10, 14, 31, 32}; /* portable, laptop, … */
    return has_chassis(files, types, GP_ARRAY_LEN(types));
}

bool gp_machine_is_server(const struct gp_files *files)
{
    static const unsigned types[] = {17, 23, 28, 29}; /* server, rack, blade, its enclosure */
    return has_chassis(files, types, GP_ARRAY_LEN(types));
}

bool gp_machine_is_live(const struct gp_files *files)
{
    static const char *const words[] = {"boot=casper", "boot=live", "rd.live.image",
                                        "archisobasedir="};
    char line[4096];
    if (!gp_files_line(files, "/proc/cmdline", line, sizeof(line)))
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

bool gp_is_bus_id(const char *name)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    size_t domain = strspn(name, hex);
    const char *p = name + domain;
    return domain >= 4 && p[0] == ':' && strspn(p + 1, hex) == 2 && p[3] == ':' &&
           strspn(p + 4, hex) == 2 && p[6] == '.' && p[7] >= '0' && p[7] <= '7' && !p[8];
}

static unsigned hex_file(const struct gp_files *files, const char *bus_id, const char *name)
{
    char path[128], line[32];
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", bus_id, name);
    return gp_files_line(files, path, line, sizeof(line)) ? (unsigned)strtoul(line, NULL, 16) : 0;
}

enum { CLASS_DISPLAY = 0x03, CLASS_ACCELERATOR = 0x12, CLASS_OTHER_BRIDGE = 0x0680 };

static void add_gpu(struct gp_machine *m, const struct gp_files *files, struct gp_pci_gpu *gpu)
{
    char path[128], link[GP_PATH_SIZE];
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", gpu->bus_id);
    if (gp_files_link(files, path, link)) {
        const char *slash = strrchr(link, '/');
        (void)snprintf(gpu->driver, sizeof(gpu->driver), "%.31s", slash ? slash + 1 : link);
    }
    gpu->shows_screen = hex_file(files, gpu->bus_id, "boot_vga") == 1;
    gpu->chip = gp_chip_find(gpu->vendor, gpu->device);
    m->nvidia_count += gpu->vendor == GP_PCI_NVIDIA;
    m->amd_count += gpu->vendor == GP_PCI_AMD;
    m->intel_count += gpu->vendor == GP_PCI_INTEL;
    m->gpus[m->gpu_count++] = *gpu;
}

static bool is_virtual_function(const struct gp_files *files, const char *bus_id)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/physfn", bus_id);
    return gp_files_exist(files, path);
}

static void read_pci(struct gp_machine *m, const struct gp_files *files, struct gp_arena *arena)
{
    char **names;
    long n = gp_files_list(files, arena, "/sys/bus/pci/devices", &names);
    m->is_pci_readable = n >= 0;
    for (long i = 0; i < n; i++) {
        struct gp_pci_gpu gpu = {0};
        if (!gp_is_bus_id(names[i]) || strlen(names[i]) >= sizeof(gpu.bus_id))
            continue;
        gpu.vendor = hex_file(files, names[i], "vendor");
        if (gpu.vendor != GP_PCI_NVIDIA && gpu.vendor != GP_PCI_AMD && gpu.vendor != GP_PCI_INTEL)
            continue;
        (void)snprintf(gpu.bus_id, sizeof(gpu.bus_id), "%s", names[i]);
        gpu.class = hex_file(files, names[i], "class");
        gpu.device = hex_file(files, names[i], "device");
        if (gpu.vendor == GP_PCI_NVIDIA && gpu.class >> 8 == CLASS_OTHER_BRIDGE)
            m->nvswitch_count++;
        if (is_virtual_function(files, gpu.bus_id))
            continue; /* a virtual function of a GPU */
        if (gpu.class >> 16 != CLASS_DISPLAY && gpu.class >> 16 != CLASS_ACCELERATOR)
            continue;
        if (m->gpu_count < GP_MACHINE_GPUS)
            add_gpu(m, files, &gpu);
        else
            m->gpus_left_out++;
    }
}

/* ---- processes ---- */

bool gp_machine_runs(const struct gp_files *files, const char *program)
{
    enum { KEPT = 15 }; /* the kernel's limit for a process name */
    struct gp_arena scratch = {0};
    char **names, path[64], name[32];
    bool is_found = false;
    long n = gp_files_list(files, &scratch, "/proc", &names);
    for (long i = 0; i < n && !is_found; i++) {
        (void)snprintf(path, sizeof(path), "/proc/%.20s/comm", names[i]);
        is_found = names[i][0] >= '1' && names[i][0] <= '9' &&
                   gp_files_line(files, path, name, sizeof(name)) &&
                   strncmp(name, program, KEPT) == 0;
    }
    gp_arena_fini(&scratch);
    return is_found;
}

/* ---- driver ---- */

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build …" */
static void read_driver(struct gp_machine *m, const struct gp_files *files)
{
    char text[1024] = "";
    static const char mark[] = "Kernel Module";
    m->is_driver_loaded = gp_files_exist(files, "/sys/module/nvidia");
    if (gp_files_read(files, "/proc/driver/nvidia/version", text, sizeof(text)) > 0) {
        m->is_driver_loaded = true;
        m->is_driver_open = strstr(text, "Open Kernel Module");
        m->is_flavour_known = strstr(text, "Kernel Module");
    }
    static const char signs[] = "0123456789.";
    if (gp_files_line(files, "/sys/module/nvidia/version", m->driver, sizeof(m->driver)) &&
        m->driver[0] && !m->driver[strspn(m->driver, signs)])
        return;
    m->driver[0] = '\0';
    const char *p = strstr(text, mark);
    for (p = p ? p + sizeof(mark) - 1 : ""; *p && *p != '\n'; p++) {
        size_t n = strspn(p, signs);
        if (p[-1] == ' ' && n >= 5 && memchr(p, '.', n)) {
            (void)snprintf(m->driver, sizeof(m->driver), "%.*s", (int)n, p);
            return;
        }
    }
}

void gp_machine_read(struct gp_machine *m, const struct gp_files *files, struct gp_arena *arena)
{
    static char none[1];
    *m = (struct gp_machine){0};
    m->environment = gp_files_text(files, arena, "/proc/self/environ", 1 << 20, NULL);
    if (!m->environment)
        m->environment = none;
    read_distro(m, files);
    read_surroundings(m, files);
    read_pci(m, files, arena);
    read_driver(m, files);
}

/* Makers of virtual machines; not those whose real machines have the same name. */
static bool is_virtual_vendor(const char *vendor)
{
    static const char *const vendors[] = {"QEMU",    "VMware",    "Xen",     "OpenStack",
                                          "innotek", "Parallels", "Nutanix", "oVirt"};
    for (size_t i = 0; i < GP_ARRAY_LEN(vendors); i++)
        if (strncmp(vendor, vendors[i], strlen(vendors[i])) == 0)
            return true;
    return false;
}

bool gp_machine_is_virtual(const struct gp_files *files)
{
    char text[8192], vendor[64];
    return (gp_files_read(files, "/proc/cpuinfo", text, sizeof(text)) > 0 &&
            strstr(text, " hypervisor")) ||
           (gp_files_line(files, "/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor)) &&
            is_virtual_vendor(vendor));
}

const char *gp_machine_release(const struct gp_machine *m)
{
    static const struct {
        const char *codename, *release;
    } names[] = {{"trusty", "14.04"}, {"xenial", "16.04"}, {"bionic", "18.04"},  {"focal", "20.04"},
                 {"jammy", "22.04"},  {"noble", "24.04"},  {"resolute", "26.04"}};
    bool is_derived = m->distro == GP_DISTRO_UBUNTU && strcmp(m->distro_id, "ubuntu") != 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && is_derived; i++)
        if (strcmp(m->base_codename, names[i].codename) == 0)
            return names[i].release;
    return m->distro_version;
}
