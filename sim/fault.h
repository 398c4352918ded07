/* Faults that can be injected, and the numbering of driver functions. */
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

/* Finds the return code with this name ("NOT_SUPPORTED"). Returns false for an unknown name, and
 * for success. */
bool sim_return_code(const char *name, nvmlReturn_t *ret);
/* The name of a return code; NULL if it has none here. */
const char *sim_return_name(nvmlReturn_t code);

enum sim_fault_kind {
    SIM_FAULT_LOST,   /* GPU_IS_LOST for every call; the handle stays lost until reinitialization */
    SIM_FAULT_HANG,   /* calls block for value ns */
    SIM_FAULT_SLOW,   /* calls take value ns longer */
    SIM_FAULT_DENY,   /* NO_PERMISSION */
    SIM_FAULT_ERROR,  /* return code value */
    SIM_FAULT_ABSURD, /* sentinels and impossible numbers */
    SIM_FAULT_GROW,   /* a list grows between reading its size and fetching it */
    SIM_FAULT_UNLOADED,    /* nvmlInit: DRIVER_NOT_LOADED */
    SIM_FAULT_MISMATCH,    /* nvmlInit: LIB_RM_VERSION_MISMATCH */
    SIM_FAULT_NOGPU,       /* the driver works, but has no device */
    SIM_FAULT_GONE,        /* the GPU disappears, and later ones move up */
    SIM_FAULT_EXCLUDED,    /* same, because it was excluded in the kernel module */
    SIM_FAULT_OVERCOUNT,   /* the driver counts one more GPU than it has handles for */
    SIM_FAULT_REORDER,     /* from the next nvmlInit on, the GPUs are in reverse order */
    SIM_FAULT_REPARTITION, /* MIG devices get new UUIDs, but reuse the ids of their instances */
    SIM_FAULT_PARENT,      /* NO_PERMISSION for memory and processes of a GPU with MIG devices */
    SIM_FAULT_PROFILING,   /* NO_PERMISSION for GPM and NVLink counters */
    SIM_FAULT_TYPES,       /* field values have wrong types and times */
    SIM_FAULT_UNTOUCHED,   /* of several fields in a call, every other one is left as it was */
    SIM_FAULT_PIDS,        /* processes have impossible pids */
    SIM_FAULT_HIDDEN,      /* memory is in use, but no process is listed */
    SIM_FAULT_STUCK,       /* utilization stays at 100 % */
    SIM_FAULT_ENERGY,      /* the energy counter restarts at 0 */
    SIM_FAULT_IGNORE,      /* settings are accepted, but not kept */
    SIM_FAULT_SET,         /* an answer becomes `value`; `function` is its name, see inject.h */
    SIM_FAULT_KINDS
};

enum { SIM_FAULT_FUNCTION_SIZE = 56, SIM_ALL_GPUS = -1 };

struct sim_fault {
    int32_t gpu; /* SIM_ALL_GPUS: the whole machine */
    uint32_t kind;
    uint64_t value;                         /* nanoseconds, return code or answer */
    char function[SIM_FAULT_FUNCTION_SIZE]; /* name or prefix; "": all functions */
    uint32_t slot;                          /* the answer to set */
    uint64_t
        past[4]; /* of SIM_FAULT_SET for all GPUs: a bit for each GPU that it no longer affects */
};

/* Parses "lost", "hang=30s", "slow=20ms:nvmlDeviceGetFanSpeed", … for a GPU. GP_EUSAGE describes
 * the syntax. */
int sim_fault_parse(const char *text, int gpu, struct sim_fault *ret, struct gp_err *err);

/* Parses the same with a leading "GPU:" ("3:lost"), as in machine files. */
int sim_fault_parse_placed(const char *text, struct sim_fault *ret, struct gp_err *err);

/* Appends the fault in the syntax of sim_fault_parse. */
void sim_fault_add_text(struct gp_strbuf *sb, const struct sim_fault *fault);

/* Whether the fault affects this call on this GPU (SIM_ALL_GPUS for a call without a device). */
bool sim_fault_hits(const struct sim_fault *fault, int gpu, enum sim_function function);

#endif
