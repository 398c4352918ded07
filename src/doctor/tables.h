/* The tables in data/tables, compiled in: each is an array gp_THINGs of gp_THING_count rows, sorted
 * by its key, and never empty. Texts are "" if nothing is known. `source` names the origin of the
 * row. gp_tables_choose() may replace them, before anything else reads them. */
#ifndef GP_DOCTOR_TABLES_H
#define GP_DOCTOR_TABLES_H

#include "doctor/check.h"

/* NVIDIA GPUs by PCI device id. */
struct gp_chip {
    unsigned device;
    const char *name;            /* from the PCI id list: "GH100 [H100 SXM5 80GB]" */
    const char *architecture;    /* "Hopper" */
    unsigned compute_capability; /* 90 for 9.0 */
    unsigned last_branch;        /* the last driver branch that supports it; 0: still supported */
    bool in_open_module;         /* listed by the open kernel module */
    const char *source;
};
extern const struct gp_chip *gp_chips;
extern size_t gp_chip_count;

/* Bits: variants of the kernel module. */
enum { GP_MODULE_PROPRIETARY = 1, GP_MODULE_OPEN = 2 };

/* Compute capabilities, by number: 86 for 8.6. */
struct gp_arch {
    unsigned compute_capability;
    const char *architecture;
    const char *examples;
    const char *first_cuda, *last_cuda; /* of the compiler; "" as the last: still supported */
    unsigned first_branch, last_branch; /* of the driver; 0: unknown, or still supported */
    unsigned modules;                   /* the kernel module variants that support it */
    bool is_integrated;                 /* Jetson and similar, with their own drivers */
    const char *source;
};
extern const struct gp_arch *gp_archs;
extern size_t gp_arch_count;

/* Releases of the CUDA toolkit. */
struct gp_toolkit {
    const char *cuda;   /* "12.8.1" */
    const char *driver; /* the driver that it came with, or that implements it; "" */
    const char *source;
};
extern const struct gp_toolkit *gp_toolkits;
extern size_t gp_toolkit_count;

/* CUDA major versions for which one minimum driver runs all releases. */
struct gp_cuda_major {
    unsigned major;
    const char *driver; /* the oldest that does */
    const char *source;
};
extern const struct gp_cuda_major *gp_cuda_majors;
extern size_t gp_cuda_major_count;

/* Branches of the driver. */
struct gp_driver {
    unsigned branch;
    const char *cuda; /* the newest CUDA that it implements: "12.4" */
    const char *kind; /* "long-term", "production", "new-features" */
    const char *ends; /* end of its support: "2028-06" */
    unsigned modules; /* the kernel module variants that it includes */
    const char *source;
};
extern const struct gp_driver *gp_drivers;
extern size_t gp_driver_count;

/* The driver in the repositories that users of a distribution install it from. */
struct gp_offer {
    const char *distribution; /* as gp_distro_word() */
    unsigned release;         /* 12; of Ubuntu also 2104: 21.04 alone; 0: all of them */
    unsigned branch;          /* 0: the newest */
    unsigned modules;
    const char *package; /* what brings the others with it; the flavour may follow */
    const char *source;
};
extern const struct gp_offer *gp_offers;
extern size_t gp_offer_count;

/* PyTorch wheels for CUDA. */
struct gp_torch_build {
    const char *torch; /* "2.7.1" */
    const char *build; /* "cu128": the part after the + and the end of the index URL */
    const char *cuda;
    const char *status; /* "stable", "experimental", "extra", "legacy" */
    bool is_default;    /* the one on PyPI */
    const char *cudnn;
    const char *first_python, *last_python;
    const char *archs; /* in the format of gp_code_for() */
    const char *source;
};
extern const struct gp_torch_build *gp_torch_builds;
extern size_t gp_torch_build_count;

/* PyTorch wheels for ROCm. */
struct gp_torch_rocm {
    const char *torch; /* "2.7" */
    const char *rocm;
    const char *source;
};
extern const struct gp_torch_rocm *gp_torch_rocms;
extern size_t gp_torch_rocm_count;

/* The releases of packages that require one PyTorch: of each PyTorch, one that fits it. */
struct gp_torch_stack {
    const char *package; /* "vllm" */
    const char *version;
    const char *torch;       /* "2.7.0" */
    const char *last_python; /* the newest known to be supported; "": as for that PyTorch */
    const char *source;
};
extern const struct gp_torch_stack *gp_torch_stacks;
extern size_t gp_torch_stack_count;

/* TensorFlow. */
struct gp_tensorflow_build {
    const char *tensorflow;
    const char *package; /* for pip, with its extra: "tensorflow[and-cuda]" */
    const char *cuda, *cudnn;
    const char *first_python, *last_python;
    const char *archs;
    const char *source;
};
extern const struct gp_tensorflow_build *gp_tensorflow_builds;
extern size_t gp_tensorflow_build_count;

/* JAX, one row for each CUDA it is available for. */
struct gp_jax_build {
    const char *jax;
    const char *extra; /* for pip: "cuda12" */
    const char *cuda;  /* that it was built with, or only the major version */
    const char *first_python;
    const char *archs;
    const char *source;
};
extern const struct gp_jax_build *gp_jax_builds;
extern size_t gp_jax_build_count;

/* Versions of cuDNN that added or dropped support. */
struct gp_cudnn {
    const char *cudnn;
    unsigned cuda_major;
    unsigned first_capability, last_capability; /* the compute capabilities it has kernels for */
    const char *library;                        /* "libcudnn.so.9" */
    const char *source;
};
extern const struct gp_cudnn *gp_cudnns;
extern size_t gp_cudnn_count;

/* GPU models. Rates are TFLOP/s (TOP/s for INT8) without sparsity; 0: no hardware support, or
 * unknown. */
struct gp_card {
    const char *model;
    unsigned compute_capability;
    unsigned memory_gb;
    const char *memory_type;
    unsigned bandwidth_gbs;
    double fp32, tf32, fp16;
    double fp16_fp32; /* FP16 with FP32 accumulation, as in PyTorch */
    double bf16, fp8, int8, fp4;
    unsigned tdp_w, cores, boost_mhz;
    unsigned tensor_mhz; /* the clock of the rates of tensor cores; 0: boost_mhz */
    unsigned pcie_gen, pcie_lanes;
    double nvlink_gbs;
    const char *names; /* as reported by its driver, separated by ; */
    const char *note;
    const char *source;
};
extern const struct gp_card *gp_cards;
extern size_t gp_card_count;

/* Numbers of the driver's errors in the kernel log. Words, fault and advice are set here only if
 * gp_xid_find() has none: see gp_xid_row_find(). */
struct gp_xid_row {
    unsigned code;
    const char *mnemonic;
    const char *words, *fault, *advice;
    const char *note;        /* additional facts */
    enum gp_verdict verdict; /* on a machine where it is the only error in the log */
    const char *action;      /* in NVIDIA's catalog: "RESET_GPU"; "" */
    bool is_application;     /* caused by a program, and others are not affected */
    const char *source;
};
extern const struct gp_xid_row *gp_xid_rows;
extern size_t gp_xid_row_count;

/* The meaning of the messages of Xid 144 to 150. */
struct gp_nvlink_error {
    unsigned xid;
    const char *units; /* names of one unit, as drivers print it */
    unsigned reason;   /* bits 20 to 25 of the first number */
    unsigned status;   /* the second number */
    const char *fatal; /* "no", "link", "fatal" */
    const char *action, *look, *fault, *effect;
    const char *source;
};
extern const struct gp_nvlink_error *gp_nvlink_errors;
extern size_t gp_nvlink_error_count;

/* Error numbers of NVSwitches. */
struct gp_sxid_row {
    unsigned code;
    const char *name, *words;
    const char *fatal; /* "never", "maybe": for users of the port, "always": for all */
    const char *advice;
    const char *source;
};
extern const struct gp_sxid_row *gp_sxid_rows;
extern size_t gp_sxid_row_count;

/* Why clocks are reduced, by bit. */
struct gp_throttle_reason {
    unsigned mask;
    const char *word; /* "sw_power_cap" */
    const char *name; /* in NVML */
    const char *words;
    enum gp_verdict verdict;
    const char *advice;
    const char *source;
};
extern const struct gp_throttle_reason *gp_throttle_reasons;
extern size_t gp_throttle_reason_count;

/* Recovery actions requested by the driver. */
struct gp_recovery_action {
    unsigned number;
    const char *word; /* "gpu-reset" */
    const char *words, *advice;
    const char *source;
};
extern const struct gp_recovery_action *gp_recovery_actions;
extern size_t gp_recovery_action_count;

/* States of faulty memory: ECC, remapped rows, retired pages. */
struct gp_memory_state {
    const char *word, *words;
    enum gp_verdict verdict;
    const char *advice;
    const char *source;
};
extern const struct gp_memory_state *gp_memory_states;
extern size_t gp_memory_state_count;

/* False: the number is unknown. The row has words, fault and advice. */
bool gp_xid_row_find(unsigned code, struct gp_xid_row *ret);

/* NULL: unknown. */
const struct gp_sxid_row *gp_sxid_row_find(unsigned code);
const struct gp_recovery_action *gp_recovery_action_find(unsigned number);

/* NULL: not NVIDIA's, or unknown. */
const struct gp_chip *gp_chip_find(unsigned vendor, unsigned device);

#endif
