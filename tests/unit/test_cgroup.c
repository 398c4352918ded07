/* What control groups allow: main memory, and memory of devices. */
#include "unit.h"

#include "base/err.h"
#include "proc/cgroup.h"
#include "proc_tree.h"

enum { PID = 77, MIB = 1 << 20 };

/* ---- CPUs ---- */

static void expect_cpus(double cpus)
{
    double got = gp_cgroup_cpus(tree_root, PID);
    assert_true(got > cpus - 1e-6 && got < cpus + 1e-6);
}

static void quotas_of_version_2(void **state)
{
    (void)state;
    static const char cgroup[] = "0::/pods/job\n";
    expect_cpus(0);
    write_pid(PID, "cgroup", cgroup, sizeof(cgroup) - 1);
    expect_cpus(0);
    write_text("/sys/fs/cgroup/pods/job/cpu.max", "max 100000\n");
    expect_cpus(0);
    write_text("/sys/fs/cgroup/pods/cpu.max", "250000 100000\n");
    expect_cpus(2.5);
    write_text("/sys/fs/cgroup/pods/job/cpu.max", "50000 100000\n");
    expect_cpus(0.5);
    write_text("/sys/fs/cgroup/pods/job/cpu.max", "50000 0\n"); /* no kernel writes that */
    expect_cpus(2.5);
    write_text("/sys/fs/cgroup/pods/job/cpu.max", "50000\n");
    expect_cpus(2.5);
}

static void quotas_of_version_1(void **state)
{
    (void)state;
    static const char cgroup[] = "5:cpuset:/x\n4:cpu,cpuacct:/slurm/job_1\n0::/x\n";
    write_pid(PID, "cgroup", cgroup, sizeof(cgroup) - 1);
    write_text("/sys/fs/cgroup/cpu/slurm/job_1/cpu.cfs_quota_us", "-1\n");
    write_text("/sys/fs/cgroup/cpu/slurm/job_1/cpu.cfs_period_us", "100000\n");
    expect_cpus(0);
    write_text("/sys/fs/cgroup/cpu/slurm/cpu.cfs_quota_us", "400000\n");
    write_text("/sys/fs/cgroup/cpu/slurm/cpu.cfs_period_us", "100000\n");
    expect_cpus(4);
}

/* ---- main memory ---- */

static uint64_t room_mib(void)
{
    return gp_cgroup_memory_room(tree_root, PID) / MIB;
}

static void room_of_the_machine(void **state)
{
    (void)state;
    assert_true(gp_cgroup_memory_room(tree_root, PID) == UINT64_MAX); /* unknown */
    write_text("/proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable:    2097152 kB\n");
    assert_int_equal(room_mib(), 2048);
    write_pid(PID, "cgroup", "0::/\n", 5);
    assert_int_equal(room_mib(), 2048);
}

static void room_in_groups_of_version_2(void **state)
{
    (void)state;
    static const char cgroup[] = "0::/system.slice/job.scope/task\n";
    write_text("/proc/meminfo", "MemAvailable: 2097152 kB\n");
    write_pid(PID, "cgroup", cgroup, sizeof(cgroup) - 1);
    write_text("/sys/fs/cgroup/system.slice/job.scope/task/memory.max", "max\n");
    write_text("/sys/fs/cgroup/system.slice/job.scope/task/memory.current", "104857600\n");
    assert_int_equal(room_mib(), 2048);
    write_text("/sys/fs/cgroup/system.slice/job.scope/memory.max", "1073741824\n");
    write_text("/sys/fs/cgroup/system.slice/job.scope/memory.current", "524288000\n");
    assert_int_equal(room_mib(), 524);
    /* what it keeps of files can go */
    write_text("/sys/fs/cgroup/system.slice/job.scope/memory.stat",
               "anon 1\ninactive_file 104857600\n");
    assert_int_equal(room_mib(), 624);
    write_text("/sys/fs/cgroup/system.slice/memory.max", "1000\n");
    write_text("/sys/fs/cgroup/system.slice/memory.current", "2000\n");
    assert_int_equal(gp_cgroup_memory_room(tree_root, PID), 0); /* full */
}

static void room_in_groups_of_version_1(void **state)
{
    (void)state;
    static const char cgroup[] =
        "5:cpu,cpuacct:/a\n4:memory:/slurm/job_1\n1:name=systemd:/x\n0::/x\n";
    write_text("/proc/meminfo", "MemAvailable: 2097152 kB\n");
    write_pid(PID, "cgroup", cgroup, sizeof(cgroup) - 1);
    write_text("/sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "9223372036854771712\n");
    write_text("/sys/fs/cgroup/memory/slurm/job_1/memory.usage_in_bytes", "104857600\n");
    assert_int_equal(room_mib(), 2048);
    write_text("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "314572800\n");
    write_text("/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "209715200\n");
    assert_int_equal(room_mib(), 100);
    write_text("/sys/fs/cgroup/memory/slurm/memory.stat", "total_inactive_file 104857600\n");
    assert_int_equal(room_mib(), 200);
}

/* The path is that of the host, where the container's own group is the top. */
static void room_in_a_container(void **state)
{
    (void)state;
    static const char cgroup[] = "4:memory:/docker/0123\n";
    write_text("/proc/meminfo", "MemAvailable: 2097152 kB\n");
    write_pid(PID, "cgroup", cgroup, sizeof(cgroup) - 1);
    write_text("/sys/fs/cgroup/memory/memory.limit_in_bytes", "314572800\n");
    write_text("/sys/fs/cgroup/memory/memory.usage_in_bytes", "209715200\n");
    assert_int_equal(room_mib(), 100);
}

static void a_path_that_leads_out_is_not_followed(void **state)
{
    (void)state;
    static const char cgroup[] = "0::/../../x\n";
    write_text("/proc/meminfo", "MemAvailable: 2097152 kB\n");
    write_pid(PID, "cgroup", cgroup, sizeof(cgroup) - 1);
    write_text("/sys/x/memory.max", "1000\n");
    write_text("/sys/x/memory.current", "1000\n");
    assert_int_equal(room_mib(), 2048);
}

/* ---- memory of devices ---- */

#define GPU "nvidia/0000:53:00.0/vidmem"
#define OTHER "nvidia/0000:54:00.0/vidmem"

static struct gp_cgroup_regions read_regions(const char *cgroup)
{
    struct gp_cgroup_regions regions = {NULL, 0};
    write_pid(PID, "cgroup", cgroup, strlen(cgroup));
    assert_int_equal(gp_cgroup_add_regions(tree_root, PID, &regions), 0);
    /* it is the same group still */
    assert_int_equal(gp_cgroup_add_regions(tree_root, PID, &regions), 0);
    return regions;
}

static void is_region(const struct gp_cgroup_region *region, const char *group, const char *name,
                      uint64_t current, uint64_t max)
{
    assert_string_equal(region->group, group);
    assert_string_equal(region->region, name);
    assert_int_equal(region->current, current);
    assert_int_equal(region->max, max);
}

static void devices_of_a_group(void **state)
{
    (void)state;
    struct gp_cgroup_regions regions = read_regions("0::/job_1/step_0\n");
    assert_int_equal(regions.count, 0); /* an older kernel */
    write_text("/sys/fs/cgroup/job_1/step_0/dmem.current", GPU " 1048576\n" OTHER " 0\n");
    write_text("/sys/fs/cgroup/job_1/step_0/dmem.max", GPU " max\n" OTHER " max\n");
    regions = read_regions("0::/job_1/step_0\n");
    assert_int_equal(regions.count, 2);
    is_region(&regions.items[0], "/job_1/step_0", GPU, MIB, UINT64_MAX);
    is_region(&regions.items[1], "/job_1/step_0", OTHER, 0, UINT64_MAX);
    gp_cgroup_regions_fini(&regions);
}

static void the_group_that_limits_is_shown(void **state)
{
    (void)state;
    write_text("/sys/fs/cgroup/job_1/step_0/dmem.current", GPU " 1048576\n");
    write_text("/sys/fs/cgroup/job_1/step_0/dmem.max", GPU " max\n");
    write_text("/sys/fs/cgroup/job_1/dmem.current", GPU " 3145728\n");
    write_text("/sys/fs/cgroup/job_1/dmem.max", GPU " 4194304\n");
    struct gp_cgroup_regions regions = read_regions("0::/job_1/step_0\n");
    assert_int_equal(regions.count, 1);
    is_region(&regions.items[0], "/job_1", GPU, 3 * MIB, 4 * MIB);
    gp_cgroup_regions_fini(&regions);
}

static void what_is_no_number_counts_for_nothing(void **state)
{
    (void)state;
    write_text("/sys/fs/cgroup/a/dmem.current", GPU " many\n\n" OTHER "\n");
    write_text("/sys/fs/cgroup/a/dmem.max", "");
    struct gp_cgroup_regions regions = read_regions("0::/a\n");
    assert_int_equal(regions.count, 0);
    regions = read_regions("no line");
    assert_int_equal(regions.count, 0);
    regions = read_regions("0::/../a\n");
    assert_int_equal(regions.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(quotas_of_version_2),
        TEST(quotas_of_version_1),
        TEST(room_of_the_machine),
        TEST(room_in_groups_of_version_2),
        TEST(room_in_groups_of_version_1),
        TEST(room_in_a_container),
        TEST(a_path_that_leads_out_is_not_followed),
        TEST(devices_of_a_group),
        TEST(the_group_that_limits_is_shown),
        TEST(what_is_no_number_counts_for_nothing),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
