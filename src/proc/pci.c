#include "proc/pci.h"

#include "base/io.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES "/sys/bus/pci/devices"
#define NETWORKS "/sys/class/infiniband"

/* The part of a resolved path that starts with the root complex: "pci0000:17/0000:17:01.0". */
static const char *behind_root_complex(const char *path)
{
    for (const char *p = strstr(path, "/pci"); p; p = strstr(p + 1, "/pci"))
        if (isxdigit((unsigned char)p[4]))
            return p + 1;
    return NULL;
}

/* `link` leads to the device's directory, which is below those of its bridges. */
static struct gp_pci_place place_of(const char *root, const char *link)
{
    struct gp_pci_place place = {.node = -1};
    char path[GP_PATH_SIZE];
    char real[GP_PATH_SIZE];
    char text[32];
    if (!gp_io_path(path, root, link) || !realpath(path, real))
        return place;
    const char *start = behind_root_complex(real);
    if (!start || strlen(start) >= sizeof(place.path))
        return place;
    (void)snprintf(place.path, sizeof(place.path), "%s", start);
    if (gp_io_path(path, real, "/numa_node") && gp_io_read(path, text, sizeof(text)) > 0)
        place.node = (int)strtol(text, NULL, 10);
    return place;
}

struct gp_pci_place gp_pci_find(const char *root, const char *bus_id)
{
    char link[64];
    char *end;
    unsigned long domain = strtoul(bus_id, &end, 16);
    int n = snprintf(link, sizeof(link), DEVICES "/%04lx%s", domain, end);
    for (int i = (int)strlen(DEVICES); i < n && i < (int)sizeof(link); i++)
        link[i] = (char)tolower((unsigned char)link[i]);
    return place_of(root, link);
}

/* ---- the path between two devices ---- */

static size_t steps_in(const char *path)
{
    size_t count = 1;
    while ((path = strchr(path, '/'))) {
        path++;
        count++;
    }
    return count;
}

/* The number of steps that two paths share, starting at the root complex. */
static size_t common_steps(const char *a, const char *b)
{
    size_t count = 0;
    for (; *a == *b && *a; a++, b++)
        count += *a == '/';
    bool ends_here = (*a == '\0' || *a == '/') && (*b == '\0' || *b == '/');
    return count + ends_here;
}

const char *gp_pci_level(const struct gp_pci_place *a, const struct gp_pci_place *b)
{
    if (!*a->path || !*b->path)
        return NULL;
    size_t common = common_steps(a->path, b->path);
    size_t a_steps = steps_in(a->path);
    size_t b_steps = steps_in(b->path);
    if (common == 0)
        return a->node == b->node ? "NODE" : "SYS";
    if (common == 1)
        return "PHB";
    /* Two ports of the same switch are two bridges in each path, of which only the last is not
     * shared. */
    return common + 2 >= (a_steps > b_steps ? a_steps : b_steps) ? "PIX" : "PXB";
}

/* ---- network cards ---- */

static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

size_t gp_pci_networks(const char *root, struct gp_pci_network *ret, size_t max)
{
    char dir[GP_PATH_SIZE];
    char link[GP_PATH_SIZE];
    struct dirent **entries = NULL;
    size_t found = 0;
    int count = gp_io_path(dir, root, NETWORKS) ? scandir(dir, &entries, is_name, versionsort) : 0;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (found < max && strlen(name) < sizeof(ret->name)) {
            struct gp_pci_network *network = &ret[found++];
            (void)snprintf(network->name, sizeof(network->name), "%s", name);
            (void)snprintf(link, sizeof(link), NETWORKS "/%s/device", name);
            network->place = place_of(root, link);
        }
        free(entries[i]);
    }
    free(entries);
    return found;
}
