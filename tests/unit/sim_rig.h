/* The simulated driver at its ABI, loaded as any NVML program loads it. */
#ifndef GP_TESTS_SIM_RIG_H
#define GP_TESTS_SIM_RIG_H

#include "unit.h"

#include "abi/nvml.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
#define X(branch, type, name, args) type(*name) args;
    NVML_FUNCTIONS(X)
#undef X
    const char *(*gpulse_sim_error)(void);
} nv;

static char build[512]; /* the directory sim/ of the build tree */
static char folder[128];

#define OK(call) assert_int_equal(nv.call, NVML_SUCCESS)
#define REFUSED(call, code) assert_int_equal(nv.call, NVML_ERROR_##code)

static inline int load_library(void **state)
{
    (void)state;
    char path[600];
    ssize_t n = readlink("/proc/self/exe", build, sizeof(build) - 1);
    if (n <= 0)
        return -1;
    build[n] = '\0';
    for (int up = 0; up < 3; up++)
        *strrchr(build, '/') = '\0';
    (void)strcat(build, "/sim");
    (void)snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", build);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
#define X(branch, type, name, args)                                                                \
    *(void **)&nv.name = dlsym(library, #name);                                                    \
    if (!nv.name)                                                                                  \
        return -1;
    NVML_FUNCTIONS(X)
#undef X
    *(void **)&nv.gpulse_sim_error = dlsym(library, "gpulse_sim_error");
    temporary_name(folder, sizeof(folder), "sim");
    if (!mkdtemp(folder))
        return -1;
    return setenv("GPULSE_SIM_STATE", folder, 1) | setenv("GPULSE_SIM_STILL", "1", 1);
}

static inline int remove_folder(void **state)
{
    (void)state;
    char command[192];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static inline void start(const char *machine)
{
    assert_int_equal(setenv("GPULSE_SIM", machine, 1), 0);
    OK(nvmlInit_v2());
}

static inline int stop(void **state)
{
    (void)state;
    while (nv.nvmlShutdown() == NVML_SUCCESS)
        ;
    return 0;
}

static inline nvmlDevice_t gpu(unsigned int index)
{
    nvmlDevice_t device = NULL;
    OK(nvmlDeviceGetHandleByIndex_v2(index, &device));
    return device;
}

/* Runs gpulse-sim with these arguments and returns its exit status. */
static inline int tool(const char *arguments)
{
    char command[1200];
    (void)snprintf(command, sizeof(command), "'%s/gpulse-sim' %s", build, arguments);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Writes a machine of one device and returns its path. */
static inline const char *machine_file(const char *driver, const char *rest)
{
    static char path[192];
    static int serial;
    (void)snprintf(path, sizeof(path), "%s/m%d.json", folder, serial++);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f,
                  "{\"gpulse_machine\": 1, \"driver\": {\"version\": \"%s\"}, \"devices\": [{"
                  "\"uuid\": \"GPU-1\", \"pci\": {\"bus_id\": \"00000000:01:00.0\"}, "
                  "\"answers\": {\"Name\": \"Test\", \"PowerUsage\": 100000, \"Temperature\": 40}, "
                  "\"processes\": [{\"pid\": 11, \"memory_bytes\": 1000, \"name\": \"one\"},"
                  "{\"pid\": 12, \"memory_bytes\": null, \"name\": \"two\"},"
                  "{\"pid\": 13, \"type\": \"G\", \"memory_bytes\": 3, \"name\": \"three\"}]}]%s}",
                  driver, rest);
    assert_int_equal(fclose(f), 0);
    return path;
}

#endif
