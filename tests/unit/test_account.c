/* Who holds what no listed process accounts for: small machines, each with what is to be said of
 * it. */
#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "jobs/account.h"
#include "model/snapshot.h"
#include "proc/holders.h"
#include "proc/proc.h"
#include "proc_tree.h"

#include <limits.h>
#include <unistd.h>

enum { MIB = 1 << 20, MOST = 8 };

/* A process of a machine; pid 0 ends the list. */
struct actor {
    unsigned pid, ppid, group;
    char state; /* 0: sleeps */
    const char *command;
    const char *fds[4]; /* what they stand for */
    const char *maps;
};

struct machine {
    const char *title;
    unsigned used_mib, listed_mib; /* listed_mib UNKNOWN: the driver does not tell */
    unsigned listed[MOST];         /* pids that the driver lists */
    struct actor actors[MOST];
    enum gp_account_verdict verdict;
    unsigned suspects[MOST];   /* pids, in their order */
    enum gp_suspect_kind kind; /* of the first */
};

#define UNKNOWN UINT_MAX

/* clang-format off */
static const struct machine machines[] = {
    {"nothing in use", 0, 0, {0}, {{0}}, GP_ACCOUNT_ACCOUNTED, {0}, 0},
    {"one listed process has all of it", 5000, 5000, {70},
     {{70, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL}}, GP_ACCOUNT_ACCOUNTED, {0}, 0},
    {"a remainder that needs no words", 5063, 5000, {70},
     {{70, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL}}, GP_ACCOUNT_ACCOUNTED, {0}, 0},
    {"a remainder of a megabyte more", 5064, 5000, {70},
     {{70, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL}}, GP_ACCOUNT_UNCOUNTED, {0}, 0},
    {"the driver does not tell", 5000, UNKNOWN, {70},
     {{70, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL}}, GP_ACCOUNT_UNKNOWN, {0}, 0},
    {"nobody has it open", 5000, 0, {0},
     {{70, 1, 70, 0, "bash", {"/dev/pts/0"}, NULL}}, GP_ACCOUNT_DRIVER, {0}, 0},
    {"a data loader whose job was killed", 5000, 0, {0},
     {{1, 0, 1, 0, "init", {NULL}, NULL},
      {71, 1, 70, 0, "pt_data_worker", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_LEFTOVERS, {71}, GP_SUSPECT_LEFTOVER},
    {"one that has closed the files but kept the mapping", 5000, 0, {0},
     {{71, 1, 70, 0, "pt_data_worker", {NULL},
       "7f00-7f10 rw-s 00000000 00:05 123      /dev/nvidia0\n"}},
     GP_ACCOUNT_LEFTOVERS, {71}, GP_SUSPECT_LEFTOVER},
    {"the mapping of another file", 5000, 0, {0},
     {{71, 1, 70, 0, "python", {NULL},
       "7f00-7f10 r-xp 00000000 08:01 123      /usr/bin/nvidia0\n"}},
     GP_ACCOUNT_DRIVER, {0}, 0},
    {"orphans taken in by a user's manager", 5000, 0, {0},
     {{900, 1, 900, 0, "systemd", {NULL}, NULL},
      {71, 900, 70, 0, "python", {"/dev/nvidia0"}, NULL},
      {72, 900, 70, 0, "python", {"/dev/nvidia0", "/dev/nvidia-uvm"}, NULL}},
     GP_ACCOUNT_LEFTOVERS, {71, 72}, GP_SUSPECT_LEFTOVER},
    {"whose leader is a zombie", 5000, 0, {0},
     {{70, 1, 70, 'Z', "python", {NULL}, NULL},
      {71, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_LEFTOVERS, {71}, GP_SUSPECT_LEFTOVER},
    {"a worker whose parent lives", 5000, 0, {0},
     {{70, 1, 70, 0, "python", {NULL}, NULL},
      {71, 70, 70, 0, "python", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_HOLDERS, {71}, GP_SUSPECT_OTHER},
    {"one below a script that still runs", 5000, 0, {0},
     {{70, 1, 70, 0, "bash", {NULL}, NULL},
      {71, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_HOLDERS, {71}, GP_SUSPECT_OTHER},
    {"a service, whose parent is the first process", 5000, 0, {0},
     {{71, 1, 71, 0, "ollama", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_HOLDERS, {71}, GP_SUSPECT_OTHER},
    {"a service beside a leftover", 5000, 0, {0},
     {{60, 1, 60, 0, "ollama", {"/dev/nvidia0"}, NULL},
      {71, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_LEFTOVERS, {71, 60}, GP_SUSPECT_LEFTOVER},
    {"a screen", 5000, 0, {0},
     {{60, 1, 60, 0, "Xorg", {"/dev/nvidia0", "/dev/dri/card0"}, NULL}},
     GP_ACCOUNT_DISPLAY, {60}, GP_SUSPECT_DISPLAY},
    {"a screen beside a listed process", 5000, 3000, {70},
     {{60, 1, 60, 0, "gnome-shell", {"/dev/nvidia0"}, NULL},
      {70, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_UNCOUNTED, {60}, GP_SUSPECT_DISPLAY},
    {"who keeps the driver loaded holds no memory", 5000, 0, {0},
     {{60, 1, 60, 0, "/usr/bin/nvidia-persistenced --user x", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_DRIVER, {60}, GP_SUSPECT_SERVICE},
    {"who watches neither", 5000, 0, {0},
     {{60, 1, 60, 0, "nvtop", {"/dev/nvidia0", "/dev/nvidiactl"}, NULL},
      {61, 1, 61, 0, "/usr/bin/nv-hostengine -n", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_DRIVER, {60, 61}, GP_SUSPECT_SERVICE},
    {"a container's service beside a watcher", 5000, 0, {0},
     {{60, 1, 60, 0, "nvtop", {"/dev/nvidia0"}, NULL},
      {61, 1, 61, 0, "vllm serve", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_HOLDERS, {61, 60}, GP_SUSPECT_OTHER},
    {"another GPU's process", 5000, 0, {0},
     {{71, 1, 71, 0, "python", {"/dev/nvidia1"}, NULL}}, GP_ACCOUNT_DRIVER, {0}, 0},
    {"one whose number begins alike", 5000, 0, {0},
     {{71, 1, 71, 0, "python", {"/dev/nvidia01x", "/dev/nvidia10"}, NULL}},
     GP_ACCOUNT_DRIVER, {0}, 0},
    {"only what belongs to no GPU", 5000, 0, {0},
     {{71, 1, 71, 0, "python", {"/dev/nvidiactl", "/dev/nvidia-uvm"}, NULL}},
     GP_ACCOUNT_DRIVER, {0}, 0},
    {"a listed process and its forked child", 5000, 3000, {70},
     {{70, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL},
      {71, 70, 70, 0, "python", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_HOLDERS, {71}, GP_SUSPECT_OTHER},
    {"a listed process that cannot be seen", 5000, 5000, {4711}, {{0}},
     GP_ACCOUNT_ACCOUNTED, {0}, 0},
    {"a listed process that cannot be seen, and more", 5000, 3000, {4711}, {{0}},
     GP_ACCOUNT_UNCOUNTED, {0}, 0},
    {"a leftover that has ended but for its parent", 5000, 0, {0},
     {{71, 1, 70, 'Z', "python", {NULL}, NULL}}, GP_ACCOUNT_DRIVER, {0}, 0},
    {"one that waits in the kernel", 5000, 0, {0},
     {{71, 1, 70, 'D', "python", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_LEFTOVERS, {71}, GP_SUSPECT_LEFTOVER},
    {"a pid that was given to another program", 5000, 0, {0},
     {{70, 1, 70, 0, "cron", {NULL}, NULL},
      {71, 70, 70, 0, "sleep", {"/dev/null"}, NULL}}, GP_ACCOUNT_DRIVER, {0}, 0},
    {"the server of MPS", 5000, 0, {0},
     {{60, 1, 60, 0, "nvidia-cuda-mps-server", {"/dev/nvidia0"}, NULL},
      {61, 1, 61, 0, "nvidia-cuda-mps-control -d", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_MPS, {60, 61}, GP_SUSPECT_MPS},
    {"the server of MPS beside a program", 5000, 0, {0},
     {{60, 1, 60, 0, "nvidia-cuda-mps-server", {"/dev/nvidia0"}, NULL},
      {70, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_HOLDERS, {70, 60}, GP_SUSPECT_OTHER},
    {"many of one job", 5000, 0, {0},
     {{71, 1, 70, 0, "a", {"/dev/nvidia0"}, NULL}, {72, 1, 70, 0, "b", {"/dev/nvidia0"}, NULL},
      {73, 1, 70, 0, "c", {"/dev/nvidia0"}, NULL}, {74, 1, 70, 0, "d", {"/dev/nvidia0"}, NULL}},
     GP_ACCOUNT_LEFTOVERS, {71, 72, 73, 74}, GP_SUSPECT_LEFTOVER},
};
/* clang-format on */

static void write_actor(const struct actor *a)
{
    char text[512];
    char path[256];
    int n = snprintf(text, sizeof(text),
                     "%u (x) %c %u %u 3 4 5 6 7 8 9 10 30 20 12 13 14 15 2 17 500 19 5 21\n",
                     a->pid, a->state ? a->state : 'S', a->ppid, a->group);
    write_pid(a->pid, "stat", text, (size_t)n);
    write_pid(a->pid, "cmdline", a->command, strlen(a->command) + 1);
    write_pid(a->pid, "maps", a->maps ? a->maps : "", a->maps ? strlen(a->maps) : 0);
    write_pid(a->pid, "fd/none", "", 0); /* makes the folder */
    (void)snprintf(path, sizeof(path), "%s/proc/%u/fd/none", tree_root, a->pid);
    assert_int_equal(unlink(path), 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(a->fds) && a->fds[i]; i++) {
        (void)snprintf(path, sizeof(path), "%s/proc/%u/fd/%zu", tree_root, a->pid, i + 3);
        assert_int_equal(symlink(a->fds[i], path), 0);
    }
}

static void set_bytes(struct gp_device *device, enum gp_metric m, unsigned mib)
{
    gp_value_set_int(&device->values[m - GP_DEVICE__FIRST], (int64_t)mib * MIB, 1);
}

/* The snapshot that a driver would give of it. */
struct seen {
    struct gp_snapshot snapshot;
    struct gp_device device;
    struct gp_process processes[MOST];
    struct gp_value cells[MOST][GP_PROCESS__COUNT];
};

static void see(struct seen *seen, const struct machine *m)
{
    *seen = (struct seen){.device = {.status = GP_STATUS_OK}};
    seen->snapshot.devices = &seen->device;
    seen->snapshot.device_count = 1;
    seen->snapshot.processes = seen->processes;
    set_bytes(&seen->device, GP_MEMORY_USED, m->used_mib);
    gp_value_set_int(&seen->device.values[GP_MINOR_NUMBER - GP_DEVICE__FIRST], 0, 1);
    if (m->listed_mib != UNKNOWN) {
        set_bytes(&seen->device, GP_MEMORY_PROCESSES, m->listed_mib);
        set_bytes(&seen->device, GP_MEMORY_UNATTRIBUTED, m->used_mib - m->listed_mib);
    }
    for (size_t i = 0; i < MOST && m->listed[i]; i++) {
        seen->processes[i].cells = seen->cells[i];
        gp_value_set_int(&seen->cells[i][GP_PID - GP_PROCESS__FIRST], m->listed[i], 1);
        seen->snapshot.process_count++;
    }
    seen->device.process_count = seen->snapshot.process_count;
}

static void check_machine(const struct machine *m)
{
    static struct seen seen;
    struct gp_holders holders;
    struct gp_account *accounts;
    size_t count;
    void *none = NULL;
    assert_int_equal(set_up(&none), 0);
    for (size_t i = 0; i < MOST && m->actors[i].pid; i++)
        write_actor(&m->actors[i]);
    see(&seen, m);
    assert_int_equal(gp_holders_read(tree_root, &holders), 0);
    assert_int_equal(gp_accounts_make(&seen.snapshot, &holders, &accounts, &count), 0);
    assert_int_equal(count, 1);
    if (accounts[0].verdict != m->verdict)
        fail_msg("%s: '%s' instead of '%s'", m->title, gp_account_verdict_word(accounts[0].verdict),
                 gp_account_verdict_word(m->verdict));
    for (size_t i = 0; i < MOST; i++) {
        unsigned pid = i < accounts[0].suspect_count ? accounts[0].suspects[i].holder->pid : 0;
        if (pid != m->suspects[i])
            fail_msg("%s: suspect %zu is %u instead of %u", m->title, i, pid, m->suspects[i]);
    }
    if (m->suspects[0] && accounts[0].suspects[0].kind != m->kind)
        fail_msg("%s: the first is of the kind '%s'", m->title,
                 gp_suspect_word(accounts[0].suspects[0].kind));
    gp_accounts_free(accounts, count);
    gp_holders_fini(&holders);
    assert_int_equal(tear_down(&none), 0);
}

static void each_machine_has_its_verdict(void **state)
{
    (void)state;
    assert_true(GP_ARRAY_LEN(machines) >= 30);
    for (size_t i = 0; i < GP_ARRAY_LEN(machines); i++)
        check_machine(&machines[i]);
}

static void a_gpu_that_does_not_answer(void **state)
{
    (void)state;
    static struct seen seen;
    struct gp_holders holders = {.list = NULL};
    struct gp_account *accounts;
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    size_t count;
    see(&seen, &machines[0]);
    seen.device.status = GP_STATUS_TIMEOUT;
    assert_int_equal(gp_accounts_make(&seen.snapshot, &holders, &accounts, &count), 0);
    assert_int_equal(accounts[0].verdict, GP_ACCOUNT_NO_ANSWER);
    gp_account_add(&sb, &accounts[0], false);
    assert_non_null(strstr(sb.buf, "The GPU does not respond"));
    gp_strbuf_fini(&sb);
    gp_accounts_free(accounts, count);
}

/* What is not seen is not said to be nobody. */
static void who_cannot_be_seen(void **state)
{
    (void)state;
    static struct seen seen;
    struct gp_account *accounts;
    size_t count;
    static const struct machine m = {"", 5000, 0, {0}, {{0}}, GP_ACCOUNT_DRIVER, {0}, 0};
    see(&seen, &m);
    struct gp_holders holders = {.hidden = 3};
    assert_int_equal(gp_accounts_make(&seen.snapshot, &holders, &accounts, &count), 0);
    assert_int_equal(accounts[0].verdict, GP_ACCOUNT_HIDDEN);
    gp_accounts_free(accounts, count);
    holders.is_inside = true;
    assert_int_equal(gp_accounts_make(&seen.snapshot, &holders, &accounts, &count), 0);
    assert_int_equal(accounts[0].verdict, GP_ACCOUNT_NAMESPACE);
    gp_accounts_free(accounts, count);
}

/* Files that a root prefix stands before are those of the machine below it. */
static void devices_below_a_root(void **state)
{
    (void)state;
    char device[128];
    struct gp_holders holders;
    (void)snprintf(device, sizeof(device), "%s/dev/nvidia3", tree_root);
    const struct actor a = {70, 1, 70, 0, "python", {device}, NULL};
    write_actor(&a);
    assert_int_equal(gp_holders_read(tree_root, &holders), 0);
    assert_int_equal(holders.count, 1);
    assert_true(gp_holder_has(&holders.list[0], 3));
    assert_false(gp_holder_has(&holders.list[0], 0));
    assert_false(gp_holder_has(&holders.list[0], 4000));
    gp_holders_fini(&holders);
}

/* The first thread has ended, another one goes on: the files are there only. */
static void threads_of_what_looks_like_a_zombie(void **state)
{
    (void)state;
    char path[256];
    struct gp_holders holders;
    const struct actor a = {70, 1, 70, 'Z', "python", {NULL}, NULL};
    write_actor(&a);
    write_pid(70, "task/70/fd/none", "", 0);
    write_pid(70, "task/72/fd/none", "", 0);
    (void)snprintf(path, sizeof(path), "%s/proc/70/task/72/fd/5", tree_root);
    assert_int_equal(symlink("/dev/nvidia1", path), 0);
    assert_int_equal(gp_holders_read(tree_root, &holders), 0);
    assert_int_equal(holders.count, 1);
    assert_true(gp_holder_has(&holders.list[0], 1));
    gp_holders_fini(&holders);
}

/* What the kernel counts of control groups stands by its GPU. */
static void limits_of_groups(void **state)
{
    (void)state;
    static struct seen seen;
    struct gp_holders holders;
    struct gp_account *accounts;
    struct gp_strbuf sb = GP_STRBUF_INIT(8192);
    size_t count;
    const struct actor a = {70, 1, 70, 0, "python", {"/dev/nvidia0"}, NULL};
    write_actor(&a);
    write_pid(70, "cgroup", "0::/job_7\n", 10);
    write_text("/sys/fs/cgroup/job_7/dmem.current",
               "nvidia/0000:53:00.0/vidmem 2147483648\nnvidia/0000:54:00.0/vidmem 7\n");
    write_text("/sys/fs/cgroup/job_7/dmem.max", "nvidia/0000:53:00.0/vidmem 4294967296\n");
    see(&seen, &machines[1]);
    gp_value_set_text(&seen.device.values[GP_PCI_BUS_ID - GP_DEVICE__FIRST], "00000000:53:00.0", 1);
    assert_int_equal(gp_holders_read(tree_root, &holders), 0);
    assert_int_equal(gp_accounts_make(&seen.snapshot, &holders, &accounts, &count), 0);
    gp_account_add(&sb, &accounts[0], false);
    assert_non_null(strstr(sb.buf, "\n    group /job_7: 2048 MiB of at most 4096 MiB\n"));
    assert_null(strstr(sb.buf, "of at most 0"));
    gp_strbuf_reset(&sb);
    gp_accounts_json(&sb, &seen.snapshot, accounts, count);
    assert_non_null(strstr(sb.buf, "\"limit\": 4294967296"));
    assert_null(strstr(sb.buf, "\"memory\": 7"));
    gp_strbuf_fini(&sb);
    gp_accounts_free(accounts, count);
    gp_holders_fini(&holders);
}

/* All that is said of a GPU, up to the line of its verdict. */
static void lines_of_a_gpu(void **state)
{
    (void)state;
    static struct seen seen;
    struct gp_holders holders;
    struct gp_account *accounts;
    struct gp_strbuf sb = GP_STRBUF_INIT(8192);
    size_t count;
    static const struct machine m = {
        "",
        5000,
        2000,
        {80, 81},
        {{71, 1, 70, 0, "pt_worker", {"/dev/nvidia0"}, NULL},
         {72, 1, 70, 0, "pt_other", {NULL}, "7f00-7f10 rw-s 00000000 00:05 1  /dev/nvidia0\n"}},
        GP_ACCOUNT_LEFTOVERS,
        {71, 72},
        GP_SUSPECT_LEFTOVER};
    write_actor(&m.actors[0]);
    write_actor(&m.actors[1]);
    see(&seen, &m);
    gp_value_set_text(&seen.device.values[GP_NAME - GP_DEVICE__FIRST], "T4", 1);
    set_bytes(&seen.device, GP_MEMORY_TOTAL, 16000);
    assert_int_equal(gp_holders_read(tree_root, &holders), 0);
    assert_int_equal(gp_accounts_make(&seen.snapshot, &holders, &accounts, &count), 0);
    accounts[0].hidden = 1;
    gp_account_add(&sb, &accounts[0], false);
    static const char *const expected[] = {
        "GPU 0: T4\n  16000 MiB = 5000 MiB used + an unknown amount reserved by the driver + "
        "an unknown amount free\n"
        "  2000 MiB held by 2 listed processes, 3000 MiB unattributed\n    71 ",
        " pt_worker: has the GPU open",
        " pt_other: has the GPU mapped",
        "\n    1 process cannot be inspected\n  ",
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(expected); i++)
        if (!strstr(sb.buf, expected[i]))
            fail_msg("'%s' does not say '%s'", sb.buf, expected[i]);
    assert_null(strstr(sb.buf, "has not taken notice"));
    gp_strbuf_reset(&sb);
    accounts[0].processes = 1;
    accounts[0].hidden = 2;
    gp_account_add(&sb, &accounts[0], false);
    assert_non_null(strstr(sb.buf, "by 1 listed process, "));
    assert_non_null(strstr(sb.buf, "\n    2 processes cannot be inspected\n"));
    /* nobody is looked for where all is accounted for */
    gp_strbuf_reset(&sb);
    accounts[0].verdict = GP_ACCOUNT_ACCOUNTED;
    gp_account_add(&sb, &accounts[0], false);
    assert_null(strstr(sb.buf, "cannot be inspected"));
    gp_strbuf_reset(&sb);
    accounts[0].verdict = GP_ACCOUNT_LEFTOVERS;
    accounts[0].hidden = 0;
    gp_account_add(&sb, &accounts[0], false);
    assert_null(strstr(sb.buf, "cannot be inspected"));
    assert_non_null(strstr(sb.buf, "has exited. To free it: gpulse reclaim -i "));
    gp_strbuf_reset(&sb);
    gp_account_add(&sb, &accounts[0], true);
    assert_non_null(strstr(sb.buf, "has exited.\n"));
    gp_strbuf_fini(&sb);
    gp_accounts_free(accounts, count);
    gp_holders_fini(&holders);
}

/* Root is not told to be root. */
static void what_may_not_be_looked_at(void **state)
{
    (void)state;
    static struct seen seen;
    struct gp_strbuf sb = GP_STRBUF_INIT(4096);
    see(&seen, &machines[0]);
    const struct gp_account account = {.device = &seen.device, .verdict = GP_ACCOUNT_HIDDEN};
    gp_account_add_verdict(&sb, &account);
    assert_int_equal(strstr(sb.buf, "CAP_SYS_PTRACE") != NULL, geteuid() == 0);
    gp_strbuf_fini(&sb);
}

static void without_a_proc(void **state)
{
    (void)state;
    struct gp_holders holders;
    struct gp_err err = {0};
    assert_int_equal(gp_holders_read("/nonexistent", &holders), GP_EIO);
    assert_int_equal(gp_account_find_holders("/nonexistent", GP_NS_PER_S, &holders, &err), GP_EIO);
    assert_string_equal(err.text, "/proc cannot be read");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_machine_has_its_verdict),
        cmocka_unit_test(a_gpu_that_does_not_answer),
        cmocka_unit_test(who_cannot_be_seen),
        TEST(devices_below_a_root),
        TEST(threads_of_what_looks_like_a_zombie),
        TEST(limits_of_groups),
        TEST(lines_of_a_gpu),
        cmocka_unit_test(what_may_not_be_looked_at),
        cmocka_unit_test(without_a_proc),
    };
    return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}
