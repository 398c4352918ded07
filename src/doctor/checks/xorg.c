/* Xorg: GPUs that its configuration names, and why it could not start, by its log. */
#include "doctor/checks/xorg.h"

#include "doctor/checks/system.h"
#include "doctor/exam.h"
#include "doctor/explain/explain_line.h"
#include "doctor/lines.h"
#include "doctor/readers/boot.h"
#include "doctor/readers/homes.h"
#include "doctor/readers/install.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 64, MOST_BYTES = 1 << 20, DISPLAYS = 10, LOGS = 32 };

static const char *const files[] = {"/etc/X11/xorg.conf", "/etc/X11/nvidia-xorg.conf",
                                    "/etc/bumblebee/xorg.conf.nvidia"};
static const char *const folders[] = {"/etc/X11/xorg.conf.d", "/etc/X11/nvidia-xorg.conf.d"};

/* ---- the configuration ---- */

/* How a line BusID names a GPU; FORM_DOMAIN: by four decimal numbers, the first the domain. */
enum form { FORM_DECIMAL, FORM_HEX, FORM_LSPCI, FORM_DOMAIN };

/* A line BusID "PCI:1@0:0:0" of a file. */
struct bus_id {
    const char *where, *text;
    unsigned long domain, bus, device, function;
    enum form form; /* FORM_HEX: it has letters, or only as hexadecimal numbers names a GPU */
};

static bool has_gpu_at(const struct gp_machine *m, const char *address)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if (strcmp(m->gpus[i].bus_id, address) == 0)
            return true;
    return false;
}

/* What follows "PCI:", which may be left out before a digit; NULL: it is on another bus. */
static const char *pci_part(const char *text)
{
    if (strncasecmp(text, "PCI:", 4) == 0 || strncasecmp(text, "AGP:", 4) == 0)
        text += 4;
    else if (!isdigit((unsigned char)text[0]))
        return NULL;
    return isxdigit((unsigned char)text[0]) ? text : NULL;
}

/* Reads the numbers of "BUS[@DOMAIN]:DEVICE[:FUNCTION]"; false: it is of another form. Like Xorg,
 * it ignores a number after them. */
static bool read_numbers(const char *text, int base, struct bus_id *id)
{
    char *end;
    *id = (struct bus_id){.form = base == 10 ? FORM_DECIMAL : FORM_HEX};
    id->bus = strtoul(text, &end, base);
    if (*end == '@')
        id->domain = strtoul(end + 1, &end, base);
    if (*end != ':' || !isxdigit((unsigned char)end[1]))
        return false;
    id->device = strtoul(end + 1, &end, base);
    if (*end == ':' && isxdigit((unsigned char)end[1]))
        id->function = strtoul(end + 1, &end, base);
    return *end == '"' || *end == ':';
}

/* Reads "[DOMAIN:]BUS:DEVICE.FUNCTION", as lspci writes it, or with a domain and ":FUNCTION", as
 * nobody does. Xorg cannot read the first, and takes the domain of the second for the bus. */
static bool read_lspci(const char *text, struct bus_id *id)
{
    unsigned long numbers[4];
    char *end = NULL, last = ':';
    size_t n = 0;
    for (; n < GP_ARRAY_LEN(numbers) && isxdigit((unsigned char)*text); text = end + 1) {
        numbers[n++] = strtoul(text, &end, 16);
        if (*end == '"')
            break;
        if (last == '.' || (*end != ':' && *end != '.'))
            return false;
        last = *end;
    }
    if (n < 3 || *end != '"' || (n == 3 && last != '.'))
        return false;
    *id = (struct bus_id){.domain = n == 4 ? numbers[0] : 0,
                          .bus = numbers[n - 3],
                          .device = numbers[n - 2],
                          .function = numbers[n - 1],
                          .form = FORM_LSPCI};
    return true;
}

static const char *address_of(struct gp_exam *exam, const struct bus_id *id)
{
    return gp_exam_text(exam, "%04lx:%02lx:%02lx.%lx", id->domain, id->bus, id->device,
                        id->function);
}

/* Whether Xorg finds no GPU by the line: there is none, or it cannot read the form, or reads it as
 * another device; its meaning is then in `ret`. */
static bool is_wrong(struct gp_exam *exam, const char *line, struct bus_id *ret)
{
    const char *quote = strchr(line, '"');
    line += strspn(line, " \t");
    const char *text = strncasecmp(line, "BusID", 5) == 0 && quote ? pci_part(quote + 1) : NULL;
    if (!text)
        return false;
    struct bus_id decimal, hex;
    bool is_decimal = read_numbers(text, 10, &decimal);
    if (is_decimal && has_gpu_at(&exam->machine, address_of(exam, &decimal)))
        return false;
    if (read_lspci(text, ret)) {
        ret->form = is_decimal ? FORM_DOMAIN : FORM_LSPCI;
        return true;
    }
    bool is_hex =
        read_numbers(text, 16, &hex) && has_gpu_at(&exam->machine, address_of(exam, &hex));
    *ret = is_hex ? hex : decimal;
    return is_hex || is_decimal;
}

static bool find_in_file(struct gp_exam *exam, const char *path, struct bus_id *ret)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, 1 << 16, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    while (gp_lines_next(&lines, &line, &n)) {
        const char *words = gp_exam_text(exam, "%.*s", n < 200 ? (int)n : 200, line);
        if (!is_wrong(exam, words, ret))
            continue;
        ret->where = gp_exam_text(exam, "%s:%zu", path, (size_t)lines.number);
        ret->text = words + strspn(words, " \t");
        return true;
    }
    return false;
}

/* The files of the configuration. */
static size_t list_files(struct gp_exam *exam, const char *ret[MOST_FILES])
{
    char **names;
    size_t count = 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++)
        ret[count++] = files[i];
    for (size_t f = 0; f < GP_ARRAY_LEN(folders); f++) {
        long n = gp_files_list(&exam->files, &exam->arena, folders[f], &names);
        for (long i = 0; i < n && count < MOST_FILES; i++) {
            size_t length = strlen(names[i]);
            if (length > 5 && strcmp(names[i] + length - 5, ".conf") == 0)
                ret[count++] = gp_exam_text(exam, "%s/%s", folders[f], names[i]);
        }
    }
    return count;
}

static bool find_wrong(struct gp_exam *exam, struct bus_id *ret)
{
    const char *paths[MOST_FILES];
    size_t count = list_files(exam, paths);
    for (size_t i = 0; i < count; i++)
        if (find_in_file(exam, paths[i], ret))
            return true;
    return false;
}

/* A form that Xorg reads, with the domain where it is not 0. */
static const char *words_for_xorg(struct gp_exam *exam, const struct bus_id *id)
{
    const char *domain = id->domain > 0 ? gp_exam_text(exam, "@%lu", id->domain) : "";
    return gp_exam_text(exam, "PCI:%lu%s:%lu:%lu", id->bus, domain, id->device, id->function);
}

static void report_bus_id(struct gp_exam *exam, const struct bus_id *id, bool is_failed)
{
    static const struct {
        const char *words, *why;
    } rows[] = {
        [FORM_DECIMAL] = {"a GPU that does not exist",
                          "A card was moved or removed, or the firmware counts the buses "
                          "differently now; Xorg then ends with \"no screens found\"."},
        [FORM_HEX] = {"the GPU by a hexadecimal bus id",
                      "lspci shows hexadecimal numbers, Xorg reads decimal ones: it finds no such "
                      "device, and ends with \"no screens found\"."},
        [FORM_LSPCI] = {"the GPU by a bus id that Xorg cannot read",
                        "lspci writes BUS:DEVICE.FUNCTION in hexadecimal numbers, Xorg reads "
                        "PCI:BUS:DEVICE:FUNCTION in decimal ones: it finds no such device, and "
                        "ends with \"no screens found\"."},
        [FORM_DOMAIN] = {"the GPU by a bus id that Xorg reads as another device",
                         "Xorg reads PCI:BUS:DEVICE:FUNCTION, and takes the domain for the bus: "
                         "it finds no such device, and ends with \"no screens found\"."},
    };
    bool is_there = has_gpu_at(&exam->machine, address_of(exam, id));
    gp_exam_report(exam, is_failed ? GP_VERDICT_FAIL : GP_VERDICT_WARN,
                   "Xorg's configuration names %s", rows[id->form].words);
    gp_exam_evidence(exam, id->where, "%s", id->text);
    if (!is_there)
        gp_exam_evidence(exam, "/sys/bus/pci/devices", "no GPU at %s", address_of(exam, id));
    gp_exam_why(exam, "%s", rows[id->form].why);
    if (is_there)
        gp_exam_advice(exam, "write BusID \"%s\" there, for %s", words_for_xorg(exam, id),
                       address_of(exam, id));
    else
        gp_exam_advice(exam, "correct the line, in decimal numbers, or remove it: with one GPU "
                             "Xorg needs none");
}

/* NVIDIA's driver for X leaves external GPUs alone unless its section allows them. */
static void fix_external(struct gp_exam *exam)
{
    static const char option[] = "Option \"AllowExternalGpus\" \"true\"";
    const char *paths[MOST_FILES];
    size_t count = list_files(exam, paths);
    for (size_t i = 0; i < count; i++) {
        const char *text = gp_files_text(&exam->files, &exam->arena, paths[i], 1 << 16, NULL);
        const char *driver = text ? strcasestr(text, "Driver") : NULL;
        for (; driver && strncmp(driver + 6 + strspn(driver + 6, " \t"), "\"nvidia\"", 8) != 0;)
            driver = strcasestr(driver + 6, "Driver");
        if (!driver)
            continue;
        gp_exam_evidence(exam, paths[i], "Driver \"nvidia\", without %s", option);
        gp_exam_command(exam, "allow it, if it is not unplugged while X runs",
                        "sudo sed -i.before '/Driver[[:space:]]*\"nvidia\"/a %s' %s", option,
                        gp_exam_quoted(exam, paths[i]));
        return;
    }
    gp_exam_command(exam, "allow it, if it is not unplugged while X runs",
                    "printf 'Section \"OutputClass\"\\nIdentifier \"egpu\"\\nMatchDriver "
                    "\"nvidia-drm\"\\nDriver \"nvidia\"\\n%s\\nEndSection\\n' | sudo tee "
                    "/etc/X11/xorg.conf.d/20-egpu.conf",
                    option);
}

/* ---- the log ---- */

/* Errors, and the one warning that is the reason of one. */
static bool is_reason(const char *line)
{
    return strstr(line, "(EE)") || strstr(line, "external GPUs have not");
}

/* Why the last start failed: the first error that is known, rather than that there is no screen,
 * which follows from it. False: it did not fail, or for an unknown reason. */
static bool find_failure(struct gp_exam *exam, const char *path, struct gp_explanation *ret,
                         const char **ret_where)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_tail(&exam->files, &exam->arena, path, MOST_BYTES, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    bool is_fatal = false, is_general = false;
    ret->id = "";
    while (gp_lines_next(&lines, &line, &n)) {
        const char *words = gp_exam_text(exam, "%.*s", n < 400 ? (int)n : 400, line);
        struct gp_explanation found;
        is_fatal = is_fatal || strstr(words, "Fatal server error") ||
                   strstr(words, "no screens found(EE)");
        if (!is_reason(words) || (ret->id[0] && !is_general) ||
            !gp_explain_line(&exam->arena, words, &found))
            continue;
        bool is_screen = strcmp(found.id, "x.no-screens") == 0;
        if (ret->id[0] && is_screen)
            continue;
        *ret = found;
        ret->details = words;
        is_general = is_screen;
        *ret_where = gp_exam_text(exam, "%s:%zu", path, (size_t)lines.number);
    }
    return is_fatal && ret->id[0];
}

/* The logs of Xorg: the system's, and those of users who start it themselves. */
static size_t list_logs(struct gp_exam *exam, const char *ret[LOGS])
{
    const struct gp_homes *homes = gp_homes_of_all(exam);
    size_t count = 0;
    for (int i = 0; i < DISPLAYS; i++)
        ret[count++] = gp_exam_text(exam, "/var/log/Xorg.%d.log", i);
    for (size_t i = 0; i < homes->count && count < LOGS; i++)
        ret[count++] = gp_exam_text(exam, "%s/.local/share/xorg/Xorg.0.log", homes->list[i]);
    return count;
}

/* A start of Xorg that failed. */
struct failed {
    struct gp_explanation reason;
    const char *where;
    bool is_current; /* by a log of the system, of this boot; others may be old, or not Xorg's */
};

static bool find_failed(struct gp_exam *exam, struct failed *ret)
{
    const char *logs[LOGS];
    size_t count = list_logs(exam, logs);
    for (size_t i = 0; i < count; i++)
        if (find_failure(exam, logs[i], &ret->reason, &ret->where)) {
            ret->is_current = i < DISPLAYS && gp_boot_is_before(exam, logs[i]);
            return true;
        }
    return false;
}

bool gp_xorg_is_there(struct gp_exam *exam)
{
    const char *logs[LOGS];
    if (exam->machine.gpu_count == 0 || exam->machine.container || exam->machine.is_wsl)
        return false;
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++)
        if (gp_files_exist(&exam->files, files[i]))
            return true;
    for (size_t i = 0; i < GP_ARRAY_LEN(folders); i++)
        if (gp_files_exist(&exam->files, folders[i]))
            return true;
    size_t count = list_logs(exam, logs);
    for (size_t i = 0; i < count; i++)
        if (gp_files_exist(&exam->files, logs[i]))
            return true;
    return gp_xorg_has_devices(exam);
}

/* The GPU for the screen, if it is AMD's or Intel's and no driver is bound to it, which is reported
 * by itself, with the reason; NULL: it has one. */
static const struct gp_pci_gpu *undriven_screen(const struct gp_machine *m)
{
    for (size_t i = 0; i < m->gpu_count; i++)
        if ((m->gpus[i].vendor == GP_PCI_AMD || m->gpus[i].vendor == GP_PCI_INTEL) &&
            !m->gpus[i].driver[0] && (m->gpus[i].shows_screen || m->gpu_count == 1))
            return &m->gpus[i];
    return NULL;
}

static void report_failure(struct gp_exam *exam, const struct gp_explanation *failure,
                           const char *where)
{
    const struct gp_pci_gpu *gpu = undriven_screen(&exam->machine);
    gp_exam_report(exam, gpu ? GP_VERDICT_INFO : GP_VERDICT_WARN, "Xorg could not start: %s",
                   failure->words);
    gp_exam_evidence(exam, where, "%s", failure->details);
    if (gpu) {
        gp_exam_evidence(exam, gp_exam_text(exam, "/sys/bus/pci/devices/%s/driver", gpu->bus_id),
                         "no driver is bound");
        gp_exam_why(exam, "Xorg draws on what the kernel's driver of the GPU offers: it starts "
                          "once that is loaded.");
        return;
    }
    if (strcmp(failure->id, "x.external") == 0) {
        fix_external(exam);
        return;
    }
    if (failure->check[0])
        gp_exam_advice(exam, "to tell: %s", failure->check);
    gp_exam_advice(exam, "%s", failure->advice);
}

/* Whether Xorg did not start in this boot, by the error of a configuration that fits no GPU. */
static bool is_without_gpu(const struct failed *failed)
{
    return failed->is_current && (strcmp(failed->reason.id, "x.no-devices") == 0 ||
                                  strcmp(failed->reason.id, "x.no-screens") == 0);
}

bool gp_xorg_is_misled(struct gp_exam *exam)
{
    struct bus_id id;
    struct failed failed;
    return find_wrong(exam, &id) && find_failed(exam, &failed) && is_without_gpu(&failed);
}

void gp_xorg_check(struct gp_exam *exam)
{
    struct bus_id id;
    struct failed failed = {.reason = {.words = ""}, .where = ""};
    bool is_failed = find_failed(exam, &failed);
    bool is_wrong_id = find_wrong(exam, &id);
    if (is_wrong_id)
        report_bus_id(exam, &id, is_failed && is_without_gpu(&failed));
    if (is_wrong_id || gp_xorg_check_devices(exam)) {
        if (is_failed)
            gp_exam_evidence(exam, failed.where, "%s", failed.reason.details);
    } else if (is_failed) {
        report_failure(exam, &failed.reason, failed.where);
    } else {
        gp_xorg_check_overdrive(exam);
        gp_xorg_check_glx(exam);
    }
}
