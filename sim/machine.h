/* The machine file: a JSON document that describes a machine by its driver's answers at the ABI.
 *
 * {
 *   "gpulse_machine": 1,                       format version
 *   "source": "where the answers come from",
 *   "about": "a shared server",                what the machine is, in words; optional
 *   "driver": {"version": "580.105.08", "nvml": "13.580.105.08", "cuda": 13000},
 *   "seed": 1,                                 of the variation over time; optional
 *   "latency_us": {"nvmlInit_v2": 15000, "*": 0},       duration of a call; optional
 *   "missing": ["nvmlDeviceGetMarginTemperature"],      symbols that the driver does not have, and
 *   "present": ["nvmlDeviceGetPdi"],           those that it has although it is older; optional
 *   "notes": ["…"],                            of `gpulse sim record`, for people
 *   "faults": ["3:lost", "slow=20ms:nvmlDeviceGetFanSpeed"],   GPU:FAULT as in `gpulse sim fault`
 *   "devices": [{
 *     "uuid": "GPU-…",
 *     "pci": {"bus_id": "00000000:53:00.0", "device_id": "0x233010DE",
 *             "subsystem_id": "0x16C110DE"},
 *     "answers": {"Name": "NVIDIA H100 80GB HBM3", "FanSpeed": "NOT_SUPPORTED",
 *                 "ClockInfo": {"GRAPHICS": 345, "SM": 345, "MEM": 2619, "VIDEO": 765}, …},
 *     "fields": {"82": 37, "186": 68920, "186/2": "NOT_SUPPORTED"},     id or id/scope
 *     "processes": [{"pid": 835, "type": "C|G|C+G|M", "memory_bytes": 4194304 or null,
 *                    "name": "Xorg", "util": 12, "util_memory": 6, "util_encoder": 0,
 *                    "util_decoder": 0, "gpu_instance": 1, "compute_instance": 0}],
 *                    without a name, the driver does not find one; it may be ""
 *     "gpm": {"5": 2, "10": 80},                 GPM metrics, in percent of the GPU's utilization;
 *                                                optional: those of a usual training
 *     "lists": {"supported_clocks": [{"memory": 2619, "graphics": "1980 1965"}]},   lists.def
 *     "mig": [{"gpu_instance": 3, "compute_instance": 0, "uuid": "MIG-…", "answers": {…}}]
 *   }],
 *   "system": {"cc_gpus": 1, …},               see system.h; optional
 *   "topology": {"levels": ["NODE", "NODE", "NODE", "SYS"], …},      see topology.h; optional
 *   "host": {"name": "gpu07", "cpus": 128, "processes": […], …},     see host.h; optional
 *   "workload": [{"name": "python train.py", "pid": 4190001, "gpus": [0, 1], "util": 97,
 *                 "memory_bytes": 68719476736, "type": "C",
 *                 "gpu_instance": 3, "compute_instance": 0,
 *                 "every_s": 300, "runs_s": 120,      it begins and ends; its pids follow "pid"
 *                 "hidden": true}]                    its memory is in use, but it is not listed
 * }
 *
 * The keys of "answers" are the first columns of answers.def. Any value may be the name of a return
 * code instead ("NOT_SUPPORTED"); missing values are NOT_SUPPORTED. Process lists and
 * ProcessUtilization have the value 0 (the list is in "processes") or a return code.
 *
 * Loading converts it to flat arrays, so that a driver call is an index, not a lookup. */
#ifndef GPULSE_SIM_MACHINE_H
#define GPULSE_SIM_MACHINE_H

#include "abi/nvml.h"
#include "base/arena.h"
#include "base/util.h"
#include "sim/branch.h"
#include "sim/fault.h"
#include "sim/host.h"
#include "sim/lists.h"
#include "sim/system.h"
#include "sim/topology.h"

#include <stdatomic.h>

struct gp_err;

enum sim_slot {
#define SIM_ANSWER(slot, key, member, kind, motion) SIM_##slot,
#include "sim/answers.def"
    SIM_SLOT_COUNT
};

enum sim_kind {
    SIM_KIND_TEXT,
    SIM_KIND_U32,
    SIM_KIND_U64,
    SIM_KIND_I32,
    /* From here on: a number, or a name from a list. */
    SIM_KIND_SWITCH,
    SIM_KIND_BRAND,
    SIM_KIND_ARCH,
    SIM_KIND_PSTATE,
    SIM_KIND_COMPUTE_MODE,
    SIM_KIND_VIRTUALIZATION,
    SIM_KIND_ADDRESSING,
    SIM_KIND_DRIVER_MODEL,
    SIM_KIND_OPERATION_MODE,
    SIM_KIND_HOST_VGPU,
    SIM_KIND_FABRIC_STATE,
    SIM_KIND_COUNT
};

enum { SIM_GPM_UNITS = 14 }; /* GPM metrics that are shares of the time have the ids 1 to 13 */

/* How a value follows the load of its device: live.c. */
enum sim_motion {
    SIM_MOTION_STATIC,
    SIM_MOTION_UTIL,
    SIM_MOTION_UTIL_MEM,
    SIM_MOTION_UTIL_ENGINE,
    SIM_MOTION_MEMORY,
    SIM_MOTION_POWER,
    SIM_MOTION_ENERGY,
    SIM_MOTION_TEMP,
    SIM_MOTION_MARGIN,
    SIM_MOTION_CLOCK,
    SIM_MOTION_FAN,
    SIM_MOTION_PCIE,
    SIM_MOTION_PCIE_GEN,
    SIM_MOTION_PSTATE,
    SIM_MOTION_REASONS,
};

struct sim_answer {
    const char *key;
    const char *member; /* NULL for a simple value */
    enum sim_kind kind;
    enum sim_motion motion;
};
extern const struct sim_answer sim_answers[SIM_SLOT_COUNT];

/* The answer of a slot that is not in the file: NOT_SUPPORTED, but lists contain what exists. */
nvmlReturn_t sim_slot_default(enum sim_slot slot);

/* The names of a kind in nvidia-smi's spelling; NULL-terminated, NULL for numeric kinds. */
struct sim_name {
    const char *name;
    unsigned int value;
};
const struct sim_name *sim_kind_names(enum sim_kind kind);

struct sim_value {
    nvmlReturn_t code;
    union {
        uint64_t number; /* signed kinds are stored as two's complement */
        const char *text;
    };
};

struct sim_field {
    unsigned int id;
    unsigned int scope;
    struct sim_value value;
};

enum { SIM_NO_INSTANCE = -1 };

/* The utilization values of a process. X(share, key in the file) */
#define SIM_SHARES(X)                                                                              \
    X(SM, "util")                                                                                  \
    X(MEM, "util_memory")                                                                          \
    X(ENC, "util_encoder")                                                                         \
    X(DEC, "util_decoder")

enum sim_share {
#define X(share, key) SIM_SHARE_##share,
    SIM_SHARES(X)
#undef X
        SIM_SHARE_COUNT
};

extern const char *const sim_share_keys[SIM_SHARE_COUNT];

/* The default memory bandwidth share of a process with this SM share. */
static inline unsigned int sim_share_of_memory(unsigned int sm_pct)
{
    return sm_pct * 55 / 100;
}

struct sim_process {
    unsigned int pid;
    unsigned int like_pid; /* of a workload: its pid in the file, which the host knows */
    bool compute, graphics, mps;
    bool memory_known;
    uint64_t memory_bytes;
    int gpu_instance; /* SIM_NO_INSTANCE outside MIG */
    int compute_instance;
    unsigned int share_pct[SIM_SHARE_COUNT]; /* of its GPU, as reported by the driver */
    unsigned int util_pct;                   /* of a workload: added to the captured load */
    uint64_t load_bytes;                     /* of a workload: added to the captured memory */
    unsigned int every_s, runs_s;            /* of one that begins and ends; 0: it always runs */
    bool hidden;                             /* the driver does not list it */
    const char *name;                        /* NULL: the driver cannot find it */
};

/* A GPU, or a MIG device (then parent is set and its values are its own). */
struct sim_device {
    unsigned int index; /* of the GPU, or of the MIG device on its GPU */
    struct sim_device *parent;
    int gpu_instance;
    int compute_instance;
    const char *uuid;
    unsigned int pci_domain, pci_bus, pci_slot;
    unsigned int pci_device_id, pci_subsystem_id;
    struct sim_value answers[SIM_SLOT_COUNT];
    struct sim_field *fields;
    size_t field_count;
    struct sim_lists lists;
    uint8_t gpm[SIM_GPM_UNITS];    /* by metric id: its percentage of the utilization, plus 1; 0: as
                                      usual */
    struct sim_process *processes; /* NULL for a MIG device: its processes belong to the parent */
    size_t process_count;
    struct sim_device *migs;
    size_t mig_count;
    struct sim_device *next_made; /* of a MIG device created by mig.c, like the next */
    uint16_t serial;              /* of its instance; 0: it is in the file */
    atomic_bool lost;             /* has fallen off the bus since this initialization */
    atomic_uint grow_turn;        /* fetches with the fault "grow": most are refused */
};

enum {
    SIM_MAX_DEVICES = 256,
    SIM_MAX_MIGS = 64,
    SIM_MAX_PROCESSES = 65536,
    SIM_MAX_FILE_FAULTS = 64
};

struct sim_machine {
    struct gp_arena arena;
    const char *source;
    const char *about;          /* NULL if the file does not say */
    const char *driver_version; /* NULL if the file does not have it */
    const char *nvml_version;
    int cuda_version; /* 0: unknown */
    unsigned int driver[3];
    bool replayed; /* with another driver than the one that gave the answers */
    uint64_t seed;
    uint32_t latency_us[SIM_FN_COUNT];
    bool missing[SIM_SYMBOL_COUNT];
    nvmlReturn_t
        retired[SIM_FN_COUNT]; /* DEPRECATED for calls that the driver no longer supports */
    struct sim_fault faults[SIM_MAX_FILE_FAULTS];
    size_t fault_count;
    struct sim_value system[SIM_SYSTEM_COUNT];
    struct sim_topology topology;
    struct sim_host host;
    struct sim_device *devices;
    size_t device_count;
};

/* Loads a machine file. With `count` > 0 the machine has that many GPUs: the first ones of the
 * file, then copies of them with their own identities. Errors state the file and the line or place.
 * Free it with sim_machine_free (NULL is allowed). */
int sim_machine_load(const char *path, size_t count, struct sim_machine **ret, struct gp_err *err);
/* Same, with another driver: "470", "535.43"; NULL: the file's. */
int sim_machine_load_as(const char *path, size_t count, const char *driver,
                        struct sim_machine **ret, struct gp_err *err);
void sim_machine_free(struct sim_machine *machine);

/* Opens a machine named like in GPULSE_SIM: "h100", "h100x8", or a path (with '/' or ending in
 * ".json"), each optionally with ",driver=470" to use another driver. Names are looked up in
 * machines/ next to `home`, or in its ../../share/gpulse/machines. */
int sim_machine_open(const char *spec, const char *home, struct sim_machine **ret,
                     struct gp_err *err);

/* Finds the directory of the built-in machines for `home`. */
int sim_machine_directory(const char *home, char *out, size_t size, struct gp_err *err);

#endif
