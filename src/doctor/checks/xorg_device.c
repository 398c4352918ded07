/* The drivers that Xorg's configuration chooses. A section "Device" keeps Xorg from choosing one
 * itself. */
#include "doctor/checks/xorg.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <stdio.h>
#include <string.h>

enum { MOST_FILES = 64, MOST_SECTIONS = 16 };

struct device {
    const char *path, *identifier, *driver;
    size_t line; /* of its driver */
};

struct sections {
    struct device devices[MOST_SECTIONS];
    size_t device_count;
    const char *chosen[MOST_SECTIONS]; /* the devices that sections "Screen" name */
    size_t chosen_count;
    bool class_is_nvidia, class_is_primary; /* of the section "OutputClass" that is read */
    bool is_nvidia_primary;
};

/* Drivers of Xorg that draw only on the GPUs of one vendor, with the driver of the kernel that they
 * need. */
static const struct drawer {
    const char *driver;
    unsigned vendor;
    const char *kernel_driver, *vendor_words;
    bool may_be_elsewhere; /* packages have it in a directory that another file names */
} drawers[] = {
    {"nvidia", GP_PCI_NVIDIA, "nvidia", "NVIDIA", true},
    {"nouveau", GP_PCI_NVIDIA, "nouveau", "NVIDIA", false},
    {"amdgpu", GP_PCI_AMD, "amdgpu", "AMD", false},
    {"radeon", GP_PCI_AMD, "radeon", "AMD", false},
    {"fglrx", GP_PCI_AMD, "fglrx_pci", "AMD", true},
    {"intel", GP_PCI_INTEL, "i915", "Intel", false},
};

static const struct drawer *drawer_of(const struct device *device)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(drawers); i++)
        if (strcasecmp(device->driver, drawers[i].driver) == 0)
            return &drawers[i];
    return NULL;
}

/* ---- reading ---- */

/* The value of a line such as "    Driver  "intel""; NULL: it has another key. */
static const char *value_of(struct gp_exam *exam, const char *line, const char *key)
{
    size_t n = strlen(key);
    line += strspn(line, " \t");
    if (strncasecmp(line, key, n) != 0)
        return NULL;
    line += n + strspn(line + n, " \t");
    return line[0] == '"' ? gp_exam_text(exam, "%.*s", (int)strcspn(line + 1, "\""), line + 1)
                          : NULL;
}

/* Option "PrimaryGPU" "yes"; without a value it is on, too. */
static bool is_primary_on(const char *option, const char *words)
{
    const char *value = strstr(words, option) + strlen(option);
    value += strcspn(value, " \t");
    value += strspn(value, " \t\"");
    return !*value || strchr("yYtT1", value[0]) || strncasecmp(value, "on", 2) == 0;
}

/* A line of a section "OutputClass". */
static void read_class(struct gp_exam *exam, struct sections *sections, const char *words)
{
    const char *driver = value_of(exam, words, "Driver"), *option = value_of(exam, words, "Option");
    if (driver)
        sections->class_is_nvidia = strcasecmp(driver, "nvidia") == 0;
    if (option && strcasecmp(option, "PrimaryGPU") == 0)
        sections->class_is_primary = is_primary_on(option, words);
    sections->is_nvidia_primary =
        sections->is_nvidia_primary || (sections->class_is_nvidia && sections->class_is_primary);
}

/* A line of a section "Device", "Screen" or "OutputClass". */
static void read_line(struct gp_exam *exam, struct sections *sections, const char *section,
                      const char *words, size_t number)
{
    const char *value;
    if (strcasecmp(section, "Screen") == 0 && sections->chosen_count < MOST_SECTIONS &&
        (value = value_of(exam, words, "Device")))
        sections->chosen[sections->chosen_count++] = value;
    if (strcasecmp(section, "OutputClass") == 0)
        read_class(exam, sections, words);
    if (strcasecmp(section, "Device") != 0 || sections->device_count == 0)
        return;
    struct device *device = &sections->devices[sections->device_count - 1];
    if ((value = value_of(exam, words, "Identifier")))
        device->identifier = value;
    if ((value = value_of(exam, words, "Driver"))) {
        device->driver = value;
        device->line = number;
    }
}

static void read_file(struct gp_exam *exam, struct sections *sections, const char *path)
{
    size_t size = 0, n;
    const char *line, *value, *section = "";
    const char *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *words = gp_exam_text(exam, "%.*s", n < 200 ? (int)n : 200, line);
        if (!(value = value_of(exam, words, "Section"))) {
            read_line(exam, sections, section, words, lines.number);
            section = strstr(words, "EndSection") ? "" : section;
            continue;
        }
        section = value;
        sections->class_is_nvidia = sections->class_is_primary = false;
        if (strcasecmp(section, "Device") == 0 && sections->device_count < MOST_SECTIONS)
            sections->devices[sections->device_count++] =
                (struct device){.path = path, .identifier = "", .driver = ""};
    }
}

static struct sections read_sections(struct gp_exam *exam)
{
    static const char *const folders[] = {"/etc/X11/xorg.conf.d", "/usr/share/X11/xorg.conf.d"};
    struct sections sections = {0};
    char **names;
    read_file(exam, &sections, "/etc/X11/xorg.conf");
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n && i < MOST_FILES; i++) {
            const char *end = strrchr(names[i], '.');
            if (end && strcmp(end, ".conf") == 0)
                read_file(exam, &sections, gp_exam_text(exam, "%s/%s", folders[f], names[i]));
        }
    }
    return sections;
}

bool gp_xorg_has_devices(struct gp_exam *exam)
{
    return read_sections(exam).device_count > 0;
}

/* ---- judging ---- */

/* Without sections "Screen", Xorg uses the first device. */
static bool is_used(const struct sections *sections, const struct device *device)
{
    bool is_chosen = sections->chosen_count == 0 && device == sections->devices;
    for (size_t i = 0; i < sections->chosen_count; i++)
        is_chosen = is_chosen || strcasecmp(sections->chosen[i], device->identifier) == 0;
    return is_chosen;
}

static bool has_gpu(const struct gp_machine *m, const struct drawer *drawer)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == drawer->vendor)
            return true;
    return false;
}

static bool has_bound_gpu(const struct gp_machine *m, const struct drawer *drawer)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == drawer->vendor &&
            (!m->gpus[i].driver[0] || strcmp(m->gpus[i].driver, drawer->kernel_driver) == 0))
            return true;
    return false;
}

/* The directory of Xorg's drivers, if this one is not there; NULL: it is, or may be elsewhere. */
static const char *lacking_folder(struct gp_exam *exam, const struct drawer *drawer)
{
    static const char *const folders[] = {"/usr/lib/xorg/modules/drivers",
                                          "/usr/lib64/xorg/modules/drivers"};
    const char *folder = NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++) {
        if (gp_files_exist(&exam->files,
                           gp_exam_text(exam, "%s/%s_drv.so", folders[i], drawer->driver)))
            return NULL;
        if (gp_files_exist(&exam->files, folders[i]))
            folder = folders[i];
    }
    return drawer->may_be_elsewhere ? NULL : folder;
}

/* "prime-select nvidia", and Pop!_OS's "system76-power graphics nvidia". */
static bool is_nvidia_selected(struct gp_exam *exam)
{
    char line[64];
    return exam->machine.nvidia_count > 0 && exam->machine.gpu_count > exam->machine.nvidia_count &&
           gp_files_line(&exam->files, "/etc/prime-discrete", line, sizeof(line)) &&
           strcmp(line, "on") == 0;
}

bool gp_xorg_draws_on_nvidia(struct gp_exam *exam)
{
    const struct sections sections = read_sections(exam);
    for (size_t i = 0; i < sections.device_count; i++)
        if (is_used(&sections, &sections.devices[i]) &&
            strcasecmp(sections.devices[i].driver, "nvidia") == 0)
            return true;
    return sections.is_nvidia_primary || is_nvidia_selected(exam);
}

/* A session of this kind shows the screen: "x11", "wayland". */
static bool is_session(const struct gp_exam *exam, const char *kind)
{
    const char *type = gp_machine_variable(&exam->machine, "XDG_SESSION_TYPE");
    return type && strcmp(type, kind) == 0;
}

static void begin(struct gp_exam *exam, const struct device *device, const char *problem)
{
    gp_exam_report(exam, is_session(exam, "wayland") ? GP_VERDICT_INFO : GP_VERDICT_WARN,
                   "Xorg's configuration chooses the driver %s%s", device->driver, problem);
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:%zu", device->path, device->line),
                     "Driver \"%s\"", device->driver);
}

static void end(struct gp_exam *exam, const struct device *device)
{
    gp_exam_command(exam, "Xorg then chooses the drivers itself; the file is kept",
                    "sudo mv %s %s.before", gp_exam_quoted(exam, device->path),
                    gp_exam_quoted(exam, device->path));
    gp_exam_command(exam, "", "sudo reboot");
}

/* Another GPU's driver, while NVIDIA's GPU is to draw all. */
static bool report_unselected(struct gp_exam *exam, const struct device *device,
                              const struct drawer *drawer)
{
    if (strcmp(device->path, "/etc/X11/xorg.conf") == 0 || drawer->vendor == GP_PCI_NVIDIA)
        return false;
    begin(exam, device, ", though NVIDIA's GPU is selected");
    gp_exam_evidence(exam, "/etc/prime-discrete", "on");
    gp_exam_why(exam,
                "The file is for %s's GPU alone. With it and the NVIDIA GPU as the one that "
                "draws, the screen stays black instead of the login.",
                drawer->vendor_words);
    end(exam, device);
    return true;
}

static bool report_useless(struct gp_exam *exam, const struct device *device,
                           const struct drawer *drawer)
{
    static const char pci[] = "/sys/bus/pci/devices";
    const struct gp_machine *m = &exam->machine;
    const char *folder = lacking_folder(exam, drawer);
    if (!has_gpu(m, drawer)) {
        begin(exam, device,
              gp_exam_text(exam, ", without a GPU of %s in this machine", drawer->vendor_words));
        gp_exam_evidence(exam, pci, "no GPU of %s", drawer->vendor_words);
    } else if (!has_bound_gpu(m, drawer)) {
        begin(exam, device, ", which does not fit the kernel's driver of the GPU");
        gp_exam_evidence(exam, pci, "no GPU uses the driver %s", drawer->kernel_driver);
    } else if (folder) {
        begin(exam, device, ", which is not installed");
        gp_exam_evidence(exam, gp_exam_text(exam, "%s/%s_drv.so", folder, drawer->driver),
                         "missing");
    } else {
        return false;
    }
    gp_exam_why(exam, "A section \"Device\" keeps Xorg from trying another driver: it ends with "
                      "\"no screens found\", and the screen stays black.");
    end(exam, device);
    return true;
}

bool gp_xorg_check_devices(struct gp_exam *exam)
{
    struct sections sections = read_sections(exam);
    bool is_selected = is_nvidia_selected(exam), is_running = is_session(exam, "x11");
    for (size_t i = 0; i < sections.device_count && !is_running; i++) {
        const struct device *device = &sections.devices[i];
        const struct drawer *drawer = drawer_of(device);
        if (drawer && ((is_selected && report_unselected(exam, device, drawer)) ||
                       (is_used(&sections, device) && report_useless(exam, device, drawer))))
            return true;
    }
    return false;
}
