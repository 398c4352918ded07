/* Texts of /proc/PID/cgroup as they are found on machines, and what they tell. */
#include "unit.h"

#include "proc/container.h"

#define HEX_1 "1cd3449e930b8a28c7595240fa32ba20c84f36d059e5fbe63104ad40057992d1"
#define HEX_2 "ec08435e04266c5ba381fccbb829f626d11d8ddf5f8f547263c7a2d79ab4787a"
#define POD_DASHES "0d08203e-255a-11e9-8cd9-0007cb0b2cc8"
#define POD_LOW "121157b5_c67d_4c3e_9052_cb27bbb711fb"
#define KUBE "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_LOW ".slice"
#define LOGIN "/user.slice/user-1000.slice"

struct text {
    const char *cgroup;
    const char *container; /* "": none */
};

static void check(const struct text *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char container[GP_PROC_CONTAINER_SIZE] = "not touched";
        bool found = gp_proc_container(texts[i].cgroup, container);
        if (strcmp(container, texts[i].container) != 0)
            fail_msg("%s: '%s', not '%s'", texts[i].cgroup, container, texts[i].container);
        assert_int_equal(found, *texts[i].container != '\0');
    }
}

static void jobs_of_a_scheduler(void **state)
{
    (void)state;
    static const struct text texts[] = {
        {"0::/system.slice/slurmstepd.scope/job_4/step_0/user/task_0\n", "slurm:4.0"},
        {"0::/system.slice/slurmstepd.scope/job_42/step_extern/user\n", "slurm:42.extern"},
        {"0::/system.slice/slurmstepd.scope/job_77/step_batch/user/task_special\n",
         "slurm:77.batch"},
        {"0::/system.slice/node0_slurmstepd.scope/job_211/step_interactive\n",
         "slurm:211.interactive"},
        {"0::/system.slice/slurmstepd.scope/job_9\n", "slurm:9"},
        {"10:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n"
         "4:memory:/slurm/uid_2101171/job_280678\n",
         "slurm:280678.interactive"},
        {"11:memory:/slurm/uid_1000/job_211\n10:cpuset:/slurm/uid_1000/job_211\n", "slurm:211"},
        {"7:memory:/slurm_node0/uid_1000/job_9/step_3/task_1\n", "slurm:9.3"},
        /* since version 26.05: an id of its own */
        {"0::/system.slice/slurmstepd.scope/s8FXKTA79XAR00/step_batch\n",
         "slurm:s8FXKTA79XAR00.batch"},
        /* of these letters base 32 has no I, L, O, U */
        {"0::/system.slice/slurmstepd.scope/sIFXKTA79XAR00/step_batch\n", "unit:slurmstepd.scope"},
        /* the daemon's own processes */
        {"0::/system.slice/slurmstepd.scope/system\n", "unit:slurmstepd.scope"},
        {"0::/system.slice/slurmd.service\n", "unit:slurmd.service"},
        {"0::/system.slice/slurmstepd.scope/job_x/step_0\n", "unit:slurmstepd.scope"},
        {"0::/job_4/step_0\n", ""},
        /* a job in a cluster that runs in pods, and a container in a job */
        {"0::" KUBE "/cri-containerd-" HEX_1 ".scope/system.slice/slurmstepd.scope/job_4/step_1\n",
         "slurm:4.1"},
        {"0::/system.slice/slurmstepd.scope/job_4/step_1/user/task_0/docker/" HEX_1 "\n",
         "slurm:4.1"},
        {"5:memory:/pbs_jobs.service/jobid/2404743.opbs\n", "pbs:2404743"},
        {"0::/pbs_jobs.service/jobs/17[3].server\n", "pbs:17"},
        {"0::/jobid/17\n", ""},
    };
    check(texts, GP_ARRAY_LEN(texts));
}

static void pods(void **state)
{
    (void)state;
    static const struct text texts[] = {
        {"0::" KUBE "/cri-containerd-" HEX_1 ".scope\n", "pod:121157b5/1cd3449e930b"},
        {"1:name=systemd:" KUBE "/crio-" HEX_1 ".scope\n", "pod:121157b5/1cd3449e930b"},
        {"9:freezer:/kubepods.slice/kubepods-pod" POD_LOW ".slice/docker-" HEX_1 ".scope\n",
         "pod:121157b5/1cd3449e930b"},
        {"0::/kubepods/besteffort/pod" POD_DASHES "/" HEX_1 "\n", "pod:0d08203e/1cd3449e930b"},
        {"0::/kubepods/burstable/pod" POD_DASHES "/crio-" HEX_1 "\n", "pod:0d08203e/1cd3449e930b"},
        {"11:memory:/kubepods/pod" POD_DASHES "/" HEX_1 "/kube-proxy\n",
         "pod:0d08203e/1cd3449e930b"},
        /* a static pod is called after a digest */
        {"0::/kubepods/burstable/pod9729a196c4723b60ab401eaff722982d/" HEX_1 "\n",
         "pod:9729a196/1cd3449e930b"},
        /* crun goes one deeper */
        {"0::" KUBE "/crio-" HEX_1 ".scope/container\n", "pod:121157b5/1cd3449e930b"},
        /* containerd and the kubelet do not agree who makes the cgroups */
        {"0::/system.slice/containerd.service/kubepods-burstable-pod" POD_LOW
         ".slice:cri-containerd:" HEX_1 "\n",
         "pod:121157b5/1cd3449e930b"},
        /* a node that is a container itself */
        {"0::/docker/" HEX_2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable-pod"
         "b1e89a2fcc688644de3eb95aee8025ce.slice/cri-containerd-" HEX_1 ".scope\n",
         "pod:b1e89a2f/1cd3449e930b"},
        /* seen from another namespace */
        {"0::/../../pode039200acb850c82bb901653cc38ff6e/" HEX_1 "\n", "pod:e039200a/1cd3449e930b"},
        /* what watches a container is in the pod, but not in the container */
        {"0::" KUBE "/crio-conmon-" HEX_1 ".scope\n", "pod:121157b5"},
        {"0::" KUBE "\n", "pod:121157b5"},
        {"0::/kubepods.slice/kubepods-besteffort.slice\n", ""},
        {"0::/podium/podcast-pod1.slice\n", ""},
        {"1:name=systemd:/ecs/03752a671e744971a862edcee6195646/"
         "03752a671e744971a862edcee6195646-4015103728\n",
         "ecs:03752a671e74"},
        {"4:memory:/ecs/" POD_DASHES "/" HEX_1 "\n", "ecs:0d08203e-255/1cd3449e930b"},
    };
    check(texts, GP_ARRAY_LEN(texts));
}

static void containers(void **state)
{
    (void)state;
    static const struct text texts[] = {
        {"0::/system.slice/docker-" HEX_1 ".scope\n", "docker:1cd3449e930b"},
        {"12:name=systemd:/docker/" HEX_1 "\n4:memory:/docker/" HEX_1 "\n", "docker:1cd3449e930b"},
        {"10:devices:/system.slice/docker-" HEX_1 ".scope\n", "docker:1cd3449e930b"},
        /* in each other: the inner one */
        {"8:memory:/docker/" HEX_1 "/docker/" HEX_2 "\n", "docker:ec08435e0426"},
        {"0::/lxc.payload.first/system.slice/docker-" HEX_2 ".scope\n", "docker:ec08435e0426"},
        /* rootless */
        {"0::" LOGIN "/user@1000.service/user.slice/docker-" HEX_1 ".scope\n",
         "docker:1cd3449e930b"},
        {"0::" LOGIN "/user@1000.service/user.slice/libpod-" HEX_1 ".scope/container\n",
         "podman:1cd3449e930b"},
        {"0::/machine.slice/libpod-" HEX_1 ".scope\n", "podman:1cd3449e930b"},
        {"13:pids:/libpod_parent/libpod-" HEX_1 "\n", "podman:1cd3449e930b"},
        {"0::/system.slice/vllm.service/libpod-payload-" HEX_1 "\n", "podman:1cd3449e930b"},
        {"0::/machine.slice/libpod-conmon-" HEX_1 ".scope\n", ""},
        {"0::/system.slice/cri-containerd-" HEX_1 ".scope\n", "containerd:1cd3449e930b"},
        {"0::/system.slice:docker:" HEX_1 "\n", "docker:1cd3449e930b"},
        {"0::/system.slice/nerdctl-" HEX_1 ".scope\n", "nerdctl:1cd3449e930b"},
        {"0::/actions_job/" HEX_1 "\n", "container:1cd3449e930b"},
        {"0::/default/" HEX_1 " (deleted)\n", "container:1cd3449e930b"},
        /* digits that are no id */
        {"0::/process_api/d6dcb68a7d22cc6d01ab109bd21b91cc\n", ""},
        {"0::/system.slice/docker-1cd3449.scope\n", "unit:docker-1cd3449.scope"},
        {"0::/docker/" HEX_1 "0\n", ""},
        {"0::/docker/buildkit/tp8yxxs4xy6p0qvmpj4w0b6tz\n", ""},
    };
    check(texts, GP_ARRAY_LEN(texts));
}

static void machines(void **state)
{
    (void)state;
    static const struct text texts[] = {
        {"0::/lxc.payload.first\n", "lxc:first"},
        {"0::/lxc.payload/web/init.scope\n", "lxc:web"},
        {"4:memory:/lxc/101/ns/system.slice/ollama.service\n", "lxc:101"},
        {"0::/lxc.payload.web/user.slice/user-0.slice/session-1.scope\n", "lxc:web"},
        {"0::/incus.payload/web/system.slice/x.service\n", "incus:web"},
        {"0::/machine.slice/machine-qemu\\x2d2\\x2dinstance\\x2d00000001.scope/libvirt/emulator\n",
         "machine:qemu-2-instance-00000001"},
        {"0::/machine.slice/systemd-nspawn@fedora.service/payload/system.slice/a.service\n",
         "machine:fedora"},
        {"0::/lxc.monitor.web\n", ""},
        {"0::/lxc.payload.\n", ""},
    };
    check(texts, GP_ARRAY_LEN(texts));
}

static void services_of_the_system(void **state)
{
    (void)state;
    static const struct text texts[] = {
        {"0::/system.slice/ollama.service\n", "unit:ollama.service"},
        {"0::/system.slice/system-postgresql.slice/postgresql@9.4-main.service\n",
         "unit:postgresql@9.4-main.service"},
        {"0::/runtime.slice/kubelet.service\n", "unit:kubelet.service"},
        {"0::/system.slice/dbus-:1.2-org.example.service\n", "unit:dbus-:1.2-org.example.service"},
        {"0::/system.slice/a\\x2db\\x2.service/worker\n", "unit:a-b\\x2.service"},
        {"12:pids:/system.slice/a.service\n1:name=systemd:/system.slice/b.service\n0::/\n",
         "unit:b.service"},
        {"0::/system.slice/run-r1.scope\n", "unit:run-r1.scope"},
        /* a longer path that tells nothing */
        {"9:name=systemd:/system.slice/a.service\n"
         "4:memory:/process_api/e076aa0261765f7443155ab52e61f245\n3:cpuset:/\n0::/\n",
         "unit:a.service"},
        /* other hierarchies may hold what once was so */
        {"12:devices:/system.slice/ssh.service\n1:name=systemd:" LOGIN "/session-3.scope\n", ""},
    };
    check(texts, GP_ARRAY_LEN(texts));
}

static void sessions_of_users_tell_nothing(void **state)
{
    (void)state;
    static const struct text texts[] = {
        {"0::" LOGIN "/session-157.scope\n", ""},
        {"0::" LOGIN "/user@1000.service/app.slice/ollama.service\n", ""},
        {"0::" LOGIN "/user@1000.service/user.slice/podman-239302.scope\n", ""},
        {"1:name=systemd:" LOGIN "/user@1000.service/apps.slice/apps-org.gnome.Terminal.slice/"
         "vte-spawn-75bc72bd-6642-4cf5-b62c-0674e11bfc84.scope\n",
         ""},
        {"0::/init.scope\n", ""},
        {"0::/\n", ""},
        {"9:name=systemd:/\n8:pids:/\n4:memory:/process_api/d6dcb68a7d22cc6d01ab109bd21b91cc\n"
         "0::/\n",
         ""},
        {"14:name=dsystemd:/\n13:name=systemd:/\n5:memory:/\n", ""},
    };
    check(texts, GP_ARRAY_LEN(texts));
}

static void hostile_and_broken_texts(void **state)
{
    (void)state;
    static const struct text texts[] = {
        {"", ""},
        {"\n\n", ""},
        {"0", ""},
        {"0:", ""},
        {"0::", ""},
        {"::::::", ""},
        {"no colons/docker-" HEX_1 ".scope", ""},
        {"0::/a.service/.service", "unit:.service"},
        /* whoever may make cgroups may call them as he likes */
        {"0::/lxc.payload.a\033[2Jb\n", "lxc:a\\x1b[2Jb"},
        {"0::/system.slice/\\x1b[2J\\x0a.service\n", "unit:\\x1b[2J\\n.service"},
        {"0::/system.slice/\xff.service\n", "unit:\uFFFD.service"},
        {"0::/system.slice/x\\x\n", ""},
        {"0::/system.slice/x\\x2.scope\n", "unit:x\\x2.scope"},
    };
    check(texts, GP_ARRAY_LEN(texts));
}

static void long_names_are_cut_to_the_room(void **state)
{
    (void)state;
    static char text[4096] = "0::/lxc.payload.";
    memset(text + strlen(text), 'n', 3000);
    char container[GP_PROC_CONTAINER_SIZE];
    assert_true(gp_proc_container(text, container));
    assert_int_equal(strlen(container), 79 + strlen("…"));
    assert_string_equal(container + 79, "…");
    /* marks that take no column, and more bytes than there is room */
    for (size_t i = 16; i < 3000; i++)
        text[i] = i % 2 == 0 ? '\xcc' : '\x81'; /* U+0301 */
    assert_true(gp_proc_container(text, container));
    assert_true(strlen(container) < sizeof(container));
    assert_memory_equal(container, "lxc:\u0301\u0301", 8);
}

static void the_path_that_says_most(void **state)
{
    (void)state;
    static const struct text paths[] = {
        {"9:name=systemd:/\n4:memory:/docker/" HEX_1 "\n0::/\n", "/docker/" HEX_1},
        {"4:memory:/a/longer/path\n1:name=systemd:/system.slice/b.service\n0::/\n",
         "/system.slice/b.service"},
        {"1:name=systemd:/\n4:memory:/user.slice\n0::" LOGIN "/session-1.scope (deleted)\n",
         LOGIN "/session-1.scope"},
        {"0::/\n", "/"},
        {"", ""},
        {"nonsense", ""},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(paths); i++) {
        const char *start = NULL;
        size_t n = gp_proc_cgroup_path(paths[i].cgroup, &start);
        assert_int_equal(n, strlen(paths[i].container));
        assert_memory_equal(start, paths[i].container, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_a_scheduler),
        cmocka_unit_test(pods),
        cmocka_unit_test(containers),
        cmocka_unit_test(machines),
        cmocka_unit_test(services_of_the_system),
        cmocka_unit_test(sessions_of_users_tell_nothing),
        cmocka_unit_test(hostile_and_broken_texts),
        cmocka_unit_test(long_names_are_cut_to_the_room),
        cmocka_unit_test(the_path_that_says_most),
    };
    return cmocka_run_group_tests_name("container", tests, NULL, NULL);
}
