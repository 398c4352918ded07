#include "sample/target.h"

#include "base/io.h"
#include "proc/lease.h"
#include "proc/signal.h"
#include "source/nvml/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *given_or_env(const char *given, const char *name)
{
    const char *value = given ? given : getenv(name);
    return value && *value ? value : NULL;
}

const char *gp_target_sim(const char *given)
{
    return given_or_env(given, "GPULSE_SIM");
}

const char *gp_target_root(const char *given)
{
    return given_or_env(given, "GPULSE_ROOT");
}

/* The directory in which the simulated driver keeps the files of its machine; NULL: it has none. */
static const char *simulated_root(struct gp_target *target)
{
    const char *(*find_root)(char *problem, size_t size) = NULL;
    void *handle = dlopen(target->library, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, "gpulse_sim_root") : NULL;
    memcpy(&find_root, &symbol, sizeof(symbol));
    return find_root ? find_root(target->problem, sizeof(target->problem)) : NULL;
}

/* The kernel files of a simulated machine: a directory next to its file, "NAME.root" for
 * "NAME.json". Few machines have one; it shows which GPUs are asleep. NULL: none. */
static const char *machine_files(const char *sim, char room[GP_PATH_SIZE])
{
    size_t len = strcspn(sim, ",");
    bool is_json = len > 5 && memcmp(sim + len - 5, ".json", 5) == 0;
    char name[GP_PATH_SIZE];
    int n;
    if (is_json || memchr(sim, '/', len)) {
        n = snprintf(room, GP_PATH_SIZE, "%.*s.root", (int)(len - (is_json ? 5 : 0)), sim);
        return n > 0 && n < GP_PATH_SIZE && access(room, F_OK) == 0 ? room : NULL;
    }
    n = snprintf(name, sizeof(name), "machines/%.*s.root", (int)len, sim);
    return n > 0 && n < GP_PATH_SIZE && gp_io_find_companion("sim", name, room, NULL) == 0 ? room
                                                                                           : NULL;
}

static void prepare_simulation(struct gp_target *target)
{
    target->result =
        gp_io_find_companion("sim", "libnvidia-ml.so.1", target->library_room, &target->err);
    target->library = target->library_room;
    (void)setenv("GPULSE_SIM", target->sim, 1);
    (void)setenv("GPULSE_SIM_QUIET", "1", 1); /* its error is reported here */
    if (target->sim_still)
        (void)setenv("GPULSE_SIM_STILL", "1", 1);
    const char *own = target->result == 0 && !target->root ? simulated_root(target) : NULL;
    gp_proc_set_simulated(own);
    gp_leases_set_simulated(own);
    target->prefix = target->root ? target->root : own;
    target->files =
        target->prefix ? target->prefix : machine_files(target->sim, target->files_room);
}

void gp_target_prepare(struct gp_target *target)
{
    target->sim = gp_target_sim(target->sim);
    target->root = gp_target_root(target->root);
    target->library = given_or_env(NULL, "GPULSE_NVML");
    target->prefix = target->root;
    target->files = target->root ? target->root : "";
    if (target->sim)
        prepare_simulation(target);
}

bool gp_target_is_reachable(const struct gp_target *target)
{
    char path[GP_PATH_SIZE];
    struct stat listed;
    struct stat own;
    return !target->root ||
           (gp_io_path(path, target->root, "/proc") && stat(path, &listed) == 0 &&
            stat("/proc", &own) == 0 && listed.st_dev == own.st_dev && listed.st_ino == own.st_ino);
}

int gp_target_source(const struct gp_target *target, struct gp_source **ret, struct gp_err *err)
{
    const struct gp_nvml_config config = {
        .library = target->library,
        .root = target->sim ? target->files : target->prefix,
        .simulated = target->sim != NULL,
    };
    if (target->result < 0)
        return gp_err_copy(err, &target->err);
    struct gp_source *source = gp_nvml_new(&config);
    if (!source)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    *ret = source;
    return 0;
}

int gp_target_cuda(const struct gp_target *target, char room[GP_PATH_SIZE], const char **ret,
                   struct gp_err *err)
{
    *ret = given_or_env(NULL, "GPULSE_CUDA");
    if (*ret || !target->sim)
        return 0;
    *ret = room;
    return gp_io_find_companion("sim", "libcuda.so.1", room, err);
}
