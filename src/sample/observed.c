#include "sample/observed.h"

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

const char *gp_observed_sim(const char *given)
{
    return given_or_env(given, "GPULSE_SIM");
}

const char *gp_observed_root(const char *given)
{
    return given_or_env(given, "GPULSE_ROOT");
}

/* The directory in which the simulated driver keeps the files of its machine; NULL: it has none. */
static const char *simulated_root(struct gp_observed *observed)
{
    const char *(*find_root)(char *problem, size_t size) = NULL;
    void *handle = dlopen(observed->library, RTLD_LAZY | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, "gpulse_sim_root") : NULL;
    memcpy(&find_root, &symbol, sizeof(symbol));
    return find_root ? find_root(observed->problem, sizeof(observed->problem)) : NULL;
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

static void prepare_simulation(struct gp_observed *observed)
{
    observed->result =
        gp_io_find_companion("sim", "libnvidia-ml.so.1", observed->library_room, &observed->err);
    observed->library = observed->library_room;
    (void)setenv("GPULSE_SIM", observed->sim, 1);
    (void)setenv("GPULSE_SIM_QUIET", "1", 1); /* its error is reported here */
    if (observed->sim_still)
        (void)setenv("GPULSE_SIM_STILL", "1", 1);
    const char *own = observed->result == 0 && !observed->root ? simulated_root(observed) : NULL;
    gp_proc_set_simulated(own);
    gp_leases_set_simulated(own);
    observed->prefix = observed->root ? observed->root : own;
    observed->files =
        observed->prefix ? observed->prefix : machine_files(observed->sim, observed->files_room);
}

void gp_observed_prepare(struct gp_observed *observed)
{
    observed->sim = gp_observed_sim(observed->sim);
    observed->root = gp_observed_root(observed->root);
    observed->library = given_or_env(NULL, "GPULSE_NVML");
    observed->prefix = observed->root;
    observed->files = observed->root ? observed->root : "";
    if (observed->sim)
        prepare_simulation(observed);
}

bool gp_observed_is_reachable(const struct gp_observed *observed)
{
    char path[GP_PATH_SIZE];
    struct stat listed;
    struct stat own;
    return !observed->root ||
           (gp_io_path(path, observed->root, "/proc") && stat(path, &listed) == 0 &&
            stat("/proc", &own) == 0 && listed.st_dev == own.st_dev && listed.st_ino == own.st_ino);
}

int gp_observed_source(const struct gp_observed *observed, struct gp_source **ret,
                       struct gp_err *err)
{
    const struct gp_nvml_config config = {
        .library = observed->library,
        .root = observed->sim ? observed->files : observed->prefix,
        .simulated = observed->sim != NULL,
    };
    if (observed->result < 0)
        return gp_err_copy(err, &observed->err);
    struct gp_source *source = gp_nvml_new(&config);
    if (!source)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    *ret = source;
    return 0;
}

int gp_observed_cuda(const struct gp_observed *observed, char room[GP_PATH_SIZE], const char **ret,
                     struct gp_err *err)
{
    *ret = given_or_env(NULL, "GPULSE_CUDA");
    if (*ret || !observed->sim)
        return 0;
    *ret = room;
    return gp_io_find_companion("sim", "libcuda.so.1", room, err);
}
