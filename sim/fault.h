/* Faults: what can be made to go wrong, and the numbering of driver functions they refer to. */
#ifndef GPULSE_SIM_FAULT_H
#define GPULSE_SIM_FAULT_H

#include "abi/nvml.h"
#include "base/util.h"

struct gp_err;
struct gp_strbuf;

enum sim_function {
#define X(branch, type, name, args) SIM_FN_##name,
    NVML_FUNCTIONS(X)
#undef X
        SIM_FN_COUNT
};
extern const char *const sim_function_names[SIM_FN_COUNT];

/* The return code with this name ("NOT_SUPPORTED"), or false. Success has none. */
bool sim_return_code(const char *name, nvmlReturn_t *ret);
/* The name of a return code, NULL if it has none here. */
const char *sim_return_name(nvmlReturn_t code);

enum sim_fault_kind {
    SIM_FAULT_LOST,        /* GPU_IS_LOST on every call; the handle stays lost until re-init */
    SIM_FAULT_HANG,        /* calls block, for value ns */
    SIM_FAULT_SLOW,        /* calls take value ns longer */
    SIM_FAULT_DENY,        /* NO_PERMISSION */
    SIM_FAULT_ERROR,       /* return code value */
    SIM_FAULT_ABSURD,      /* sentinels and impossible numbers */
    SIM_FAULT_GROW,        /* a list grows between asking for its size and fetching it */
    SIM_FAULT_UNLOADED,    /* nvmlInit: DRIVER_NOT_LOADED */
    SIM_FAULT_MISMATCH,    /* nvmlInit: LIB_RM_VERSION_MISMATCH */
    SIM_FAULT_NOGPU,       /* the driver works and has no device */
    SIM_FAULT_GONE,        /* the GPU is not counted any more, later ones move up */
    SIM_FAULT_EXCLUDED,    /* the same, because the kernel module leaves it alone */
    SIM_FAULT_OVERCOUNT,   /* one more GPU is counted than handles are given for */
    SIM_FAULT_REORDER,     /* from the next nvmlInit on the GPUs stand in the reverse order */
    SIM_FAULT_REPARTITION, /* MIG devices have other UUIDs, their instances the old numbers */
    SIM_FAULT_PARENT,      /* NO_PERMISSION for memory and processes of a GPU with MIG devices */
    SIM_FAULT_PROFILING,   /* NO_PERMISSION for GPM and the counters of NVLink */
    SIM_FAULT_TYPES,       /* field values come with wrong types and times */
    SIM_FAULT_PIDS,        /* processes have pids that cannot be */
    SIM_FAULT_HIDDEN,      /* memory is used, and no process is listed */
    SIM_FAULT_STUCK,       /* utilization stays at 100 % */
    SIM_FAULT_ENERGY,      /* the energy counter began again at 0 */
    SIM_FAULT_SET,         /* an answer becomes `value`; `function` is its name: see inject.h */
    SIM_FAULT_KINDS
};

enum { SIM_FAULT_FUNCTION_SIZE = 56, SIM_ALL_GPUS = -1 };

struct sim_fault {
    int32_t gpu; /* SIM_ALL_GPUS: the whole machine */
    uint32_t kind;
    uint64_t value;                         /* nanoseconds, return code or answer */
    char function[SIM_FAULT_FUNCTION_SIZE]; /* name or beginning of one; "": every function */
    uint32_t slot;                          /* of an answer */
    uint64_t past[4]; /* of SIM_FAULT_SET for all GPUs: a bit for each that it concerns no more */
};

/* Parses "lost", "hang=30s", "slow=20ms:nvmlDeviceGetFanSpeed", … for a GPU. GP_EUSAGE says what is
 * accepted. */
int sim_fault_parse(const char *text, int gpu, struct sim_fault *ret, struct gp_err *err);

/* The same with a leading "GPU:" ("3:lost"), as it stands in a machine file. */
int sim_fault_parse_placed(const char *text, struct sim_fault *ret, struct gp_err *err);

/* Appends what sim_fault_parse reads. */
void sim_fault_add_text(struct gp_strbuf *sb, const struct sim_fault *fault);

/* True if the fault concerns this call on this GPU (SIM_ALL_GPUS for a call without a device). */
bool sim_fault_hits(const struct sim_fault *fault, int gpu, enum sim_function function);

#endif
