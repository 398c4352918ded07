#include "doctor/readers/libvirt.h"

#include "doctor/exam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char folder[] = "/etc/libvirt/qemu";

/* A number of an attribute, " bus='0x01'", in a part of a definition; 0: it is not there. */
static unsigned attribute(const char *text, size_t n, const char *name)
{
    const char *found = memmem(text, n, name, strlen(name));
    return found ? (unsigned)strtoul(found + strlen(name) + 1, NULL, 16) : 0;
}

/* Whether a <hostdev>, which ends at `last`, is a GPU. The address after its <source> is that in
 * the virtual machine, and the only one where a part of a GPU (mdev) is given. */
static bool is_gpu(const struct gp_machine *m, const char *text, const char *last)
{
    static const char type[] = " type='pci'", place[] = "<source", end[] = "</source>";
    const char *tag = memchr(text, '>', (size_t)(last - text));
    if (!tag || !memmem(text, (size_t)(tag - text), type, strlen(type)))
        return false;
    const char *source = memmem(tag, (size_t)(last - tag), place, strlen(place));
    const char *rest = source ? memmem(source, (size_t)(last - source), end, strlen(end)) : NULL;
    size_t n = rest ? (size_t)(rest - source) : 0;
    if (!rest || !memmem(source, n, " bus=", 5))
        return false;
    char address[40];
    (void)snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", attribute(source, n, " domain="),
                   attribute(source, n, " bus="), attribute(source, n, " slot="),
                   attribute(source, n, " function="));
    for (size_t i = 0; i < m->gpu_count; i++)
        if (strcmp(address, m->gpus[i].bus_id) == 0)
            return true;
    return false;
}

static bool has_gpu(struct gp_exam *exam, const char *path)
{
    enum { MOST_TEXT = 1 << 17 };
    static const char start[] = "<hostdev ", end[] = "</hostdev>";
    const char *last, *p = gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, NULL);
    for (; p && (p = strstr(p, start)) && (last = strstr(p, end)); p = last)
        if (is_gpu(&exam->machine, p, last))
            return true;
    return false;
}

bool gp_libvirt_has_gpu(struct gp_exam *exam, const char *name)
{
    return has_gpu(exam, gp_exam_text(exam, "%s/%s.xml", folder, name));
}

/* "": none. */
static const char *find_machine(struct gp_exam *exam)
{
    enum { MOST = 64 };
    char **names;
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < MOST; i++) {
        const char *path = gp_exam_text(exam, "%s/%s", folder, names[i]);
        if (strstr(names[i], ".xml") && has_gpu(exam, path))
            return path;
    }
    return "";
}

const char *gp_libvirt_machine(struct gp_exam *exam)
{
    if (!exam->libvirt)
        exam->libvirt = find_machine(exam);
    return exam->libvirt[0] ? exam->libvirt : NULL;
}

bool gp_libvirt_is_autostarted(struct gp_exam *exam, const char *path)
{
    return gp_files_exist(&exam->files,
                          gp_exam_text(exam, "%s/autostart%s", folder, strrchr(path, '/')));
}
