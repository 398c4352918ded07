#include "unit.h"

#include "proc/pci.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- a machine by hand ---- */

static char root[64];

#define SWITCH "/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0"

/* Devices and their NUMA nodes, in the directories that the kernel would put them in. */
static const struct {
    const char *path;
    const char *node;
} machine[] = {
    {SWITCH "/0000:19:00.0/0000:1a:00.0", "0\n"},
    {SWITCH "/0000:19:01.0/0000:1b:00.0", "0\n"},
    {SWITCH "/0000:19:01.0/0000:1b:00.1", "0\n"},
    {SWITCH "/0000:19:02.0/0000:1c:00.0/0000:1d:00.0/0000:1e:00.0", "0\n"},
    {"/sys/devices/pci0000:17/0000:17:02.0/0000:20:00.0", "0\n"},
    {"/sys/devices/pci0000:30/0000:30:01.0/0000:31:00.0", "0\n"},
    {"/sys/devices/platform/141a0000.pcie/pci0001:80/0001:80:01.0/0001:81:00.0", "1\n"},
    {"/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0", NULL},
};

static const struct {
    const char *name, *device;
} networks[] = {
    {"mlx5_10", "0001:81:00.0"},
    {"mlx5_2", "0000:1b:00.1"},
    {"mlx5_0", "0000:1b:00.0"},
    {"mlx5_1", NULL},
};

static void make_folders(const char *path)
{
    char all[512];
    (void)snprintf(all, sizeof(all), "%s%s", root, path);
    for (char *p = all + strlen(root) + 1; p; p = strchr(p + 1, '/')) {
        char c = *p;
        *p = '\0';
        (void)mkdir(all, 0755);
        *p = c;
    }
    (void)mkdir(all, 0755);
}

static void make_link(const char *name, const char *target)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s%s", root, name);
    assert_int_equal(symlink(target, path), 0);
}

static void make_device(const char *path, const char *node)
{
    char link[512];
    char target[512];
    char file[512];
    make_folders(path);
    (void)snprintf(link, sizeof(link), "/sys/bus/pci/devices%s", strrchr(path, '/'));
    (void)snprintf(target, sizeof(target), "../../..%s", path + strlen("/sys"));
    make_link(link, target);
    if (!node)
        return;
    (void)snprintf(file, sizeof(file), "%s%s/numa_node", root, path);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_true(fputs(node, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    (void)state;
    temporary_name(root, sizeof(root), "pci");
    if (!mkdtemp(root))
        return -1;
    make_folders("/sys/bus/pci/devices");
    for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
        make_device(machine[i].path, machine[i].node);
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
        char folder[256];
        char target[256];
        (void)snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s", networks[i].name);
        make_folders(folder);
        (void)snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/device", networks[i].name);
        (void)snprintf(target, sizeof(target), "../../../bus/pci/devices/%s", networks[i].device);
        if (networks[i].device)
            make_link(folder, target);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command); /* NOLINT(cert-env33-c): a path of our own */
}

/* ---- looking at it ---- */

static const char *level(const char *a, const char *b)
{
    struct gp_pci_place one = gp_pci_find(root, a);
    struct gp_pci_place other = gp_pci_find(root, b);
    const char *there = gp_pci_level(&one, &other);
    assert_ptr_equal(there, gp_pci_level(&other, &one));
    return there;
}

static void test_place(void **state)
{
    (void)state;
    struct gp_pci_place place = gp_pci_find(root, "00000000:1A:00.0");
    assert_string_equal(place.path, "pci0000:17/0000:17:01.0/0000:18:00.0/0000:19:00.0/"
                                    "0000:1a:00.0");
    assert_int_equal(place.node, 0);
    place = gp_pci_find(root, "00000001:81:00.0");
    assert_string_equal(place.path, "pci0001:80/0001:80:01.0/0001:81:00.0");
    assert_int_equal(place.node, 1);
    assert_int_equal(gp_pci_find(root, "00000000:41:00.0").node, -1);
    assert_string_equal(gp_pci_find(root, "00000000:77:00.0").path, "");
    assert_string_equal(gp_pci_find(root, "").path, "");
}

static void test_levels(void **state)
{
    (void)state;
    static const char gpu[] = "00000000:1A:00.0";
    assert_string_equal(level(gpu, "00000000:1B:00.0"), "PIX");
    assert_string_equal(level("00000000:1B:00.0", "00000000:1B:00.1"), "PIX");
    assert_string_equal(level(gpu, "00000000:1E:00.0"), "PXB");
    assert_string_equal(level(gpu, "00000000:20:00.0"), "PHB");
    assert_string_equal(level(gpu, "00000000:31:00.0"), "NODE");
    assert_string_equal(level(gpu, "00000001:81:00.0"), "SYS");
    assert_string_equal(level(gpu, "00000000:41:00.0"), "SYS");
    assert_null(level(gpu, "00000000:77:00.0"));
}

static void test_networks(void **state)
{
    (void)state;
    struct gp_pci_network found[4];
    assert_int_equal(gp_pci_networks(root, found, 4), 4);
    assert_string_equal(found[0].name, "mlx5_0");
    assert_string_equal(found[1].name, "mlx5_1");
    assert_string_equal(found[2].name, "mlx5_2");
    assert_string_equal(found[3].name, "mlx5_10");
    assert_string_equal(found[1].place.path, "");
    assert_int_equal(found[3].place.node, 1);
    assert_int_equal(gp_pci_networks(root, found, 2), 2);
    assert_int_equal(gp_pci_networks("/nowhere", found, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_networks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
