/* What runs where: GPUs, drivers, CUDA versions and framework builds, judged by the tables.
 *
 * Pure functions. A compute capability is 86 for 8.6, and 0 if unknown. A driver is its version,
 * "570.124.06"; a branch alone, "570", means its newest version. Returned texts belong to the
 * tables, and are "" if nothing is known. */
#ifndef GP_DOCTOR_COMPAT_H
#define GP_DOCTOR_COMPAT_H

#include "doctor/tables.h"

/* ---- drivers and CUDA ---- */

/* The branch of a driver, or the closest older branch in the table. NULL: older than the table. */
const struct gp_driver *gp_driver_find(const char *driver);

/* The newest CUDA that a driver implements; nvidia-smi calls it "CUDA Version": "12.4". */
const char *gp_cuda_ceiling(const char *driver);

/* The oldest driver that runs programs built with this CUDA ("12.8", "12.8.1", "12"). From CUDA 11
 * on it is the same for all releases of a major version (minor-version compatibility); before that
 * it is the toolkit's own. */
const char *gp_cuda_floor(const char *cuda);

/* The oldest driver that implements all of this CUDA, which its PTX and its new features need. */
const char *gp_cuda_own_driver(const char *cuda);

/* Whether a driver is this version or newer. */
bool gp_driver_reaches(const char *driver, const char *version);

/* Whether a driver that is older than the floor of a CUDA before 11 still runs its programs: all of
 * a branch implement its CUDA, though a toolkit names one of them. */
bool gp_driver_implements(const char *driver, const char *cuda);

/* ---- drivers and GPUs ---- */

/* NULL: unknown. */
const struct gp_arch *gp_arch_find(unsigned capability);

/* ---- code for GPUs ---- */

#define GP_CODES(X)                                                                                \
    X(UNKNOWN, "unknown") /* the list is empty, or the GPU is unknown */                           \
    X(NONE, "none")                                                                                \
    X(PTX, "ptx")       /* only code that the driver compiles */                                   \
    X(NATIVE, "native") /* for this GPU, or an older one of its generation */

enum gp_code {
#define X(id, word) GP_CODE_##id,
    GP_CODES(X)
#undef X
};

/* Whether code built for this list runs on a GPU. Lists have the format of nvcc ("sm_75 sm_90a
 * compute_120") or of build files ("7.5;8.0;12.0+PTX"), with any separators. Code for X.Y runs on
 * X.Z if Z is not below Y, except on integrated chips (Jetson). PTX runs on everything newer; with
 * `a` only on exactly this capability, with `f` only on its family. */
enum gp_code gp_code_for(const char *list, unsigned capability);

/* ---- the verdict ---- */

/* X(id, word), in the order of detection: a problem between the GPU and its driver precedes one of
 * the build. */
#define GP_FITS(X)                                                                                 \
    X(UNKNOWN, "unknown")                                                                          \
    X(WORKS, "works")                                                                              \
    X(DRIVER_TOO_OLD, "driver too old for this GPU")                                               \
    X(DRIVER_TOO_NEW, "driver too new for this GPU")                                               \
    X(NO_CODE, "no kernels for this GPU")                                                          \
    X(NEEDS_DRIVER, "needs a newer driver")                                                        \
    X(NO_DRIVER, "no driver supports both")

enum gp_code_fit {
#define X(id, word) GP_FIT_##id,
    GP_FITS(X)
#undef X
};

struct gp_judgement {
    enum gp_code_fit fit;
    enum gp_code code;
    const char *driver; /* NEEDS_DRIVER, NO_DRIVER: the oldest driver that suffices */
    unsigned branch;    /* DRIVER_TOO_OLD: the first branch that supports the GPU; DRIVER_TOO_NEW,
                           NO_DRIVER: the last */
};

/* Whether code built with `cuda` for `list` runs on this GPU with this driver. NULL or "" as the
 * driver means that any can be installed. Without a list (NULL or "") only the driver is judged, as
 * `code` shows. */
struct gp_judgement gp_judge(const char *driver, const char *cuda, const char *list,
                             unsigned capability);

/* "needs driver 580.65.06 or newer": the problem, as the end of a sentence about the build. */
void gp_judgement_words(const struct gp_judgement *judgement, unsigned capability, char *text,
                        size_t size);

/* Whether a cuDNN ("9.10.2") for this CUDA major version has kernels for a GPU. UNKNOWN: not in the
 * table. */
enum gp_code gp_cudnn_code_for(const char *cudnn, unsigned cuda_major, unsigned capability);

#endif
