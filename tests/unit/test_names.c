/* Names of pods and containers, from files as runtimes leave them. */
#include "unit.h"

#include "proc/names.h"
#include "proc_tree.h"

#define ID_1 "ba7b10d15d16e10e3de7a2dcd408a3d971169ae303f46cfad4c5453c6326fee2"
#define ID_2 "3f084b4c7b789c1a0f174da3fcd339e31125d3096b3ff46a0bef4fad71d09362"
#define STORAGE "/containers/storage/overlay-containers/containers.json"

enum { ALICE = 1234, BOB = 1235 };

static void is_called(const char *container, uid_t uid, const char *expected)
{
    char name[GP_PROC_NAME_SIZE] = "not touched";
    struct gp_proc_names names = {NULL, 0};
    bool found = gp_proc_container_name(&names, tree_root, container, uid, name);
    gp_proc_names_clear(&names);
    if (strcmp(name, expected) != 0)
        fail_msg("%s is '%s', not '%s'", container, name, expected);
    assert_int_equal(found, *expected != '\0');
}

static void pods(void **state)
{
    (void)state;
    write_text("/var/log/pods/default_train-0_121157b5-c67d-4c3e-9052-cb27bbb711fb/trainer/0.log",
               "");
    write_text("/var/log/pods/ml-team_serve_9729a196c4723b60ab401eaff722982d/x/0.log", "");
    write_text("/var/log/pods/90d81341-92de-11e7-8cf2-507b9d4141fa/x/0.log",
               ""); /* the older form */
    write_text("/var/log/pods/odd_/x", "");
    is_called("pod:121157b5/1cd3449e930b", 0, "default/train-0");
    is_called("pod:9729a196/d166c6190614", 0, "ml-team/serve");
    is_called("pod:90d81341/2227daf62df6", 0, "");
    is_called("pod:ffffffff/2227daf62df6", 0, "");
}

static void containers_of_docker(void **state)
{
    (void)state;
    write_text("/var/lib/docker/containers/" ID_1 "/config.v2.json",
               "{\"ID\": \"" ID_1 "\", \"Name\": \"/quiet_hopper\", \"Config\": {}}");
    write_text("/var/lib/docker/containers/" ID_2 "/config.v2.json", "{\"Name\": 7}");
    is_called("docker:ba7b10d15d16", 0, "quiet_hopper");
    is_called("docker:3f084b4c7b78", 0, ""); /* half-written, or of another kind */
    is_called("docker:000000000000", 0, "");
    write_text("/var/lib/docker/containers/" ID_2 "/config.v2.json",
               "{\"Name\": \"/a\\u001b[2Jb\"}");
    is_called("docker:3f084b4c7b78", 0, "a\\x1b[2Jb");
}

static void containers_of_podman(void **state)
{
    (void)state;
    write_text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                              "alice:x:1234:100:Alice:/home/alice:/bin/sh\n"
                              "bob:x:1235:100::/home/bob\n");
    write_text("/home/alice/.local/share" STORAGE,
               "[{\"id\": \"" ID_2 "\", \"names\": [\"train\", \"more\"]}]");
    write_text("/var/lib" STORAGE, "[{\"id\": \"" ID_1 "\", \"names\": [\"serve\"]},"
                                   " {\"id\": \"00ff\"}, 7]");
    is_called("podman:3f084b4c7b78", ALICE, "train");
    is_called("podman:3f084b4c7b78", BOB, ""); /* another one's storage is not looked into */
    is_called("podman:ba7b10d15d16", 0, "serve");
    is_called("podman:ba7b10d15d16", ALICE, "serve");
    is_called("podman:ba7b10d15d16", 99, "serve"); /* a user that passwd does not know */
    write_text("/var/lib" STORAGE, "[{\"id\": ");
    is_called("podman:ba7b10d15d16", 0, "");
}

static void what_has_no_name(void **state)
{
    (void)state;
    is_called("", 0, "");
    is_called("slurm:4711.0", 0, "");
    is_called("unit:ollama.service", 0, "");
    is_called("lxc:first", 0, "");
    is_called("pod:", 0, "");
    is_called("docker:ba7b10d15d16", 0, ""); /* there are no files */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pods),
        TEST(containers_of_docker),
        TEST(containers_of_podman),
        TEST(what_has_no_name),
    };
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
