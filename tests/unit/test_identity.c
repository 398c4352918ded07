/* Who a process is, on thirty machines: each is a root directory with one process in it, as the
 * kernel and the container runtimes leave their files, and what is to be said of that process. The
 * lines of control groups are those of real machines (tests/unit/test_container.c has their
 * sources). */
#include "unit.h"

#include "proc/proc.h"
#include "proc_tree.h"

#include <unistd.h>

enum { PID = 4711 };

#define POD "121157b5-c67d-4c3e-9052-cb27bbb711fb"
#define POD_ "121157b5_c67d_4c3e_9052_cb27bbb711fb"
#define ID_1 "1cd3449e930b8a28c7595240fa32ba20c84f36d059e5fbe63104ad40057992d1"
#define ID_2 "ba7b10d15d16e10e3de7a2dcd408a3d971169ae303f46cfad4c5453c6326fee2"
#define ID_3 "3f084b4c7b789c1a0f174da3fcd339e31125d3096b3ff46a0bef4fad71d09362"
#define ID_4 "ec08435e04266c5ba381fccbb829f626d11d8ddf5f8f547263c7a2d79ab4787a"

/* An empty text, or NULL, is what is not there. */
struct machine {
    const char *title;
    const char *cgroup;
    const char *environment; /* variables with blanks between */
    struct {
        const char *path, *text;
    } files[2];
    unsigned uid;
    const char *ns_pids; /* of the line NSpid */
    /* what is said of it */
    const char *user, *container, *name, *origin;
    unsigned ns_pid;
};

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                             "alice:x:1000:1000:Alice:/home/alice:/bin/sh\n"
                             "bob:x:20821:100::/home/bob:/bin/sh\n";

/* clang-format off */
static const struct machine machines[] = {
    {"a terminal on a workstation",
     "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n", "TMUX_PANE=%3",
     {{0}}, 1000, "4711", "alice", "", NULL, "tmux %3", 4711},
    {"a login of a cluster", "0::/user.slice/user-20821.slice/session-157.scope\n",
     "SSH_CONNECTION=192.0.2.7 51234 192.0.2.1 22", {{0}}, 20821, "4711", "bob", "", NULL,
     "ssh 192.0.2.7", 4711},
    {"nothing at all", "0::/\n", "", {{0}}, 0, "4711", "root", "", NULL, "", 4711},
    {"a user that passwd does not know", "0::/\n", "", {{0}}, 55555, "4711", "55555", "", NULL, "",
     4711},
    {"a step of Slurm", "0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0\n",
     "SLURM_PROCID=3 SLURM_NTASKS=8", {{0}}, 1000, "4711", "alice", "slurm:1392969.0", NULL,
     "rank 3/8", 4711},
    {"its batch script",
     "0::/system.slice/gpu01_slurmstepd.scope/job_77/step_batch/user/task_special\n", "", {{0}},
     20821, "4711", "bob", "slurm:77.batch", NULL, "", 4711},
    {"who came in by ssh", "0::/system.slice/slurmstepd.scope/job_42/step_extern/user\n",
     "SSH_CONNECTION=192.0.2.9 1 2 3", {{0}}, 1000, "4711", "alice", "slurm:42.extern", NULL,
     "ssh 192.0.2.9", 4711},
    {"Slurm with its new names", "0::/system.slice/slurmstepd.scope/s8FXKTA79XAR00/step_batch\n",
     "", {{0}}, 1000, "4711", "alice", "slurm:s8FXKTA79XAR00.batch", NULL, "", 4711},
    {"Slurm on version 1",
     "11:memory:/slurm/uid_1000/job_211\n10:cpuset:/slurm/uid_1000/job_211\n",
     "RANK=0 WORLD_SIZE=4", {{0}}, 1000, "4711", "alice", "slurm:211", NULL, "rank 0/4", 4711},
    {"Slurm on version 1, an interactive step",
     "10:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n", "", {{0}}, 1000, "4711",
     "alice", "slurm:280678.interactive", NULL, "", 4711},
    {"PBS", "5:memory:/pbs_jobs.service/jobid/2404743.opbs\n", "", {{0}}, 1000, "4711", "alice",
     "pbs:2404743", NULL, "", 4711},
    {"a pod whose name the node tells",
     "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
     ".slice/cri-containerd-" ID_1 ".scope\n", "",
     {{"/var/log/pods/ml_train-0_" POD "/trainer/0.log", "x"}}, 1000, "4711\t12", "alice",
     "pod:121157b5/1cd3449e930b", "ml/train-0", "", 12},
    {"a pod of another node's logs",
     "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
     ".slice/cri-containerd-" ID_1 ".scope\n", "",
     {{"/var/log/pods/ml_train-0_ffffffff-c67d-4c3e-9052-cb27bbb711fb/trainer/0.log", "x"}}, 1000,
     "4711\t12", "alice", "pod:121157b5/1cd3449e930b", NULL, "", 12},
    {"a static pod on version 2 without systemd",
     "0::/kubepods/burstable/pod9729a196c4723b60ab401eaff722982d/"
     "d166c6190614efc91956b78e96d74c3fbc96ca8e91948c36de3bc5b0e7b27d48\n", "",
     {{"/var/log/pods/kube-system_dcgm_9729a196c4723b60ab401eaff722982d/x/0.log", "x"}}, 0,
     "4711\t1", "root", "pod:9729a196/d166c6190614", "kube-system/dcgm", "", 1},
    {"a pod, seen from another namespace of control groups",
     "0::/../../pode039200acb850c82bb901653cc38ff6e/"
     "58452031ab6dcaa4fe3ff91f8a46fd41a4a2405586f3cf3d5cb9c93b5bcf62cc\n", "", {{0}}, 0, "4711",
     "root", "pod:e039200a/58452031ab6d", NULL, "", 4711},
    {"Docker with systemd", "0::/system.slice/docker-" ID_2 ".scope\n", "",
     {{"/var/lib/docker/containers/" ID_2 "/config.v2.json", "{\"Name\": \"/quiet_hopper\"}"}}, 0,
     "4711\t7", "root", "docker:ba7b10d15d16", "quiet_hopper", "", 7},
    {"Docker whose files may not be read", "0::/system.slice/docker-" ID_2 ".scope\n",
     "RANK=1 WORLD_SIZE=2", {{0}}, 1000, "4711\t7", "alice", "docker:ba7b10d15d16", NULL,
     "rank 1/2", 7},
    {"Docker on version 1", "12:name=systemd:/docker/" ID_2 "\n4:memory:/docker/" ID_2 "\n", "",
     {{"/var/lib/docker/containers/" ID_2 "/config.v2.json", "{\"Name\": \"/serve\"}"}}, 0,
     "4711\t31", "root", "docker:ba7b10d15d16", "serve", "", 31},
    {"Docker in Docker: the inner one", "8:memory:/docker/" ID_2 "/docker/" ID_4 "\n", "", {{0}},
     0, "4711\t90\t3", "root", "docker:ec08435e0426", NULL, "", 3},
    {"rootless Podman", "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_3
     ".scope/container\n", "",
     {{"/home/alice/.local/share/containers/storage/overlay-containers/containers.json",
       "[{\"id\": \"" ID_3 "\", \"names\": [\"train\"]}]"}}, 1000, "4711\t2", "alice",
     "podman:3f084b4c7b78", "train", "", 2},
    {"rootless Podman of somebody else",
     "0::/user.slice/user-20821.slice/user@20821.service/user.slice/libpod-" ID_3
     ".scope/container\n", "",
     {{"/home/alice/.local/share/containers/storage/overlay-containers/containers.json",
       "[{\"id\": \"" ID_3 "\", \"names\": [\"train\"]}]"}}, 20821, "4711\t2", "bob",
     "podman:3f084b4c7b78", NULL, "", 2},
    {"Podman without control groups",
     "0::/user.slice/user-10000.slice/user@10000.service/user.slice/podman-239302.scope\n", "",
     {{0}}, 10000, "4711\t2", "10000", "", NULL, "", 2},
    {"ECS", "1:name=systemd:/ecs/03752a671e744971a862edcee6195646/"
     "03752a671e744971a862edcee6195646-4015103728\n", "", {{0}}, 0, "4711\t1", "root",
     "ecs:03752a671e74", NULL, "", 1},
    {"LXC", "0::/lxc.payload.first\n", "", {{0}}, 0, "4711\t55", "root", "lxc:first", NULL, "",
     55},
    {"a virtual machine",
     "0::/machine.slice/machine-qemu\\x2d2\\x2dinstance\\x2d00000001.scope/libvirt/emulator\n", "",
     {{0}}, 0, "4711", "root", "machine:qemu-2-instance-00000001", NULL, "", 4711},
    {"a service", "0::/system.slice/ollama.service\n", "", {{0}}, 0, "4711", "root",
     "unit:ollama.service", NULL, "", 4711},
    {"a service on a hybrid machine",
     "1:name=systemd:/system.slice/ollama.service\n4:memory:/\n0::/\n", "", {{0}}, 0, "4711",
     "root", "unit:ollama.service", NULL, "", 4711},
    {"Slurm's own daemon is no job", "0::/system.slice/slurmstepd.scope/system\n", "", {{0}}, 0,
     "4711", "root", "unit:slurmstepd.scope", NULL, "", 4711},
    {"a kernel of Jupyter", "0::/user.slice/user-1000.slice/session-3.scope\n",
     "JPY_SESSION_NAME=/home/alice/notes/train.ipynb JPY_PARENT_PID=7", {{0}}, 1000, "4711",
     "alice", "", NULL, "notebook train.ipynb", 4711},
    {"a worker of Ray in Slurm", "0::/system.slice/slurmstepd.scope/job_4/step_0/user/task_0\n",
     "RAY_JOB_ID=01000000", {{0}}, 20821, "4711", "bob", "slurm:4.0", NULL, "ray 01000000", 4711},
    {"text that tells nothing is not guessed at",
     "9:name=systemd:/\n8:pids:/\n4:memory:/process_api/d6dcb68a7d22cc6d01ab109bd21b91cc\n0::/\n",
     "RANK=three WORLD_SIZE=8", {{0}}, 0, "4711", "root", "", NULL, "", 4711},
    {"text of no shape", "\001\002 no line of a control group \377", "=", {{0}}, 1000, "x", "alice",
     "", NULL, "", 0},
};
/* clang-format on */

static void write_machine(const struct machine *m)
{
    char text[1024];
    char path[128];
    write_text("/etc/passwd", passwd);
    write_text("/proc/4711/cgroup", m->cgroup);
    write_text("/proc/4711/cmdline", "python");
    write_stat(PID, "python", 0, 1000, 5);
    int n = snprintf(text, sizeof(text), "Name:\tpython\nUid:\t%u\t%u\nNSpid:\t%s\nThreads:\t1\n",
                     m->uid, m->uid, m->ns_pids);
    write_file("/proc/4711/status", text, (size_t)n);
    n = snprintf(text, sizeof(text), "%s", m->environment);
    for (char *p = text; *p; p++) /* but not the blanks within SSH_CONNECTION */
        if (*p == ' ' && (p[1] < '0' || p[1] > '9'))
            *p = '\0';
    write_file("/proc/4711/environ", text, n > 0 ? (size_t)n + 1 : 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(m->files) && m->files[i].path; i++)
        write_text(m->files[i].path, m->files[i].text);
    (void)snprintf(path, sizeof(path), "%s/proc/4711/cwd", tree_root);
    assert_int_equal(symlink("/home/alice/train", path), 0);
    (void)snprintf(path, sizeof(path), "%s/proc/4711", tree_root);
    /* the folder belongs to the process's user where this test may say so */
    (void)!chown(path, m->uid, (gid_t)-1);
}

static void is_said(const struct machine *m, const char *what, const char *text,
                    const char *expected)
{
    if ((text != NULL) != (expected != NULL) || (text && strcmp(text, expected) != 0))
        fail_msg("%s: the %s is '%s', not '%s'", m->title, what, text ? text : "(not known)",
                 expected ? expected : "(not known)");
}

static void check_machine(const struct machine *m)
{
    const uint32_t pid = PID;
    void *none = NULL;
    assert_int_equal(set_up(&none), 0);
    write_machine(m);
    struct gp_proc_reader *reader = gp_proc_reader_new(tree_root);
    const struct gp_proc_infos *infos =
        gp_proc_read(reader,
                     GP_PROC_USER | GP_PROC_STAT | GP_PROC_COMMAND | GP_PROC_CONTAINER |
                         GP_PROC_ORIGIN | GP_PROC_CWD | GP_PROC_NS_PID,
                     &pid, 1);
    assert_non_null(infos);
    const struct gp_proc_texts *texts = infos->infos[0].texts;
    if (geteuid() == 0) /* else all folders are this user's */
        is_said(m, "user", texts->user, m->user);
    is_said(m, "container", texts->container, m->container);
    if (geteuid() == 0 || m->uid == 0)
        is_said(m, "name", texts->container_name, m->name);
    is_said(m, "origin", texts->origin, m->origin);
    is_said(m, "directory", texts->cwd, "/home/alice/train");
    if (texts->ns_pid != m->ns_pid)
        fail_msg("%s: it calls itself %u, not %u", m->title, texts->ns_pid, m->ns_pid);
    gp_proc_reader_free(reader);
    assert_int_equal(tear_down(&none), 0);
}

static void each_process_is_named(void **state)
{
    (void)state;
    assert_true(GP_ARRAY_LEN(machines) >= 30);
    for (size_t i = 0; i < GP_ARRAY_LEN(machines); i++)
        check_machine(&machines[i]);
}

/* As root this test looks as nobody does. */
static void what_may_not_be_read(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    static const char *const files[] = {"cmdline", "cgroup", "environ"};
    const unsigned want =
        GP_PROC_USER | GP_PROC_STAT | GP_PROC_COMMAND | GP_PROC_CONTAINER | GP_PROC_ORIGIN;
    const uint32_t pid = PID;
    char path[128];
    write_machine(&machines[0]);
    assert_int_equal(chmod(tree_root, 0755), 0);
    for (size_t i = 0; i < GP_ARRAY_LEN(files); i++) {
        (void)snprintf(path, sizeof(path), "%s/proc/%d/%s", tree_root, PID, files[i]);
        assert_int_equal(chmod(path, 0), 0);
    }
    bool is_root = geteuid() == 0;
    struct gp_proc_reader *reader = gp_proc_reader_new(tree_root);
    if (is_root)
        assert_int_equal(seteuid(NOBODY), 0);
    const struct gp_proc_infos *infos = gp_proc_read(reader, want, &pid, 1);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_true(infos->infos[0].exists);
    const struct gp_proc_texts *texts = infos->infos[0].texts;
    assert_int_equal(texts->denied, GP_PROC_COMMAND | GP_PROC_CONTAINER | GP_PROC_ORIGIN);
    assert_null(texts->command);
    assert_null(texts->container);
    assert_null(texts->origin);
    assert_non_null(texts->user);
    gp_proc_reader_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_is_named),
        TEST(what_may_not_be_read),
    };
    return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
