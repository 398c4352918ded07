/* What runs where: GPUs, drivers, CUDA versions and the builds of frameworks, judged by the tables.
 *
 * Pure functions. A compute capability is 86 for 8.6, and 0 where it is not known. A driver is its
 * version, "570.124.06"; of one that is only a branch, "570", the newest is meant. Texts that are
 * returned are of the tables, and "" where nothing is known. */
#ifndef GP_DOCTOR_COMPAT_H
#define GP_DOCTOR_COMPAT_H

#include "doctor/tables.h"

/* ---- drivers and CUDA ---- */

/* The branch of a driver; of one that is not in the table the newest that is older. NULL: older
 * than the table. */
const struct gp_driver *gp_driver_find(const char *driver);

/* The newest CUDA that a driver implements, what nvidia-smi calls "CUDA Version": "12.4". */
const char *gp_cuda_ceiling(const char *driver);

/* The oldest driver that runs programs built with this CUDA ("12.8", "12.8.1", "12"). From CUDA 11
 * on it is the same for all versions with one number before the dot (minor-version compatibility);
 * before it is the toolkit's own. */
const char *gp_cuda_floor(const char *cuda);

/* The oldest driver that implements all of this CUDA: what its PTX, and what was new in it, needs.
 */
const char *gp_cuda_own_driver(const char *cuda);

/* Is a driver this version or newer? */
bool gp_driver_reaches(const char *driver, const char *version);

/* ---- drivers and GPUs ---- */

/* NULL: not known. */
const struct gp_arch *gp_arch_find(unsigned capability);

/* The variants of the kernel module in which this driver can serve this GPU; 0: in none. What is
 * not known of the GPU or the driver does not count. */
unsigned gp_module_variants(const char *driver, unsigned capability); /* of GP_MODULE_… */

/* ---- code for GPUs ---- */

#define GP_CODES(X)                                                                                \
    X(UNKNOWN, "unknown") /* the list is empty, or the GPU is not known */                         \
    X(NONE, "none")                                                                                \
    X(PTX, "ptx")       /* only such as the driver translates */                                   \
    X(NATIVE, "native") /* for this GPU, or an older one of its generation */

enum gp_code {
#define X(id, word) GP_CODE_##id,
    GP_CODES(X)
#undef X
};

/* Is there code for a GPU in what was built for this list? The lists are those of nvcc
 * ("sm_75 sm_90a compute_120") or of the build files ("7.5;8.0;12.0+PTX"), with anything between
 * the items. Code for X.Y runs on X.Z, Z not below Y, but not on chips of a board of its own
 * (Jetson); PTX on all that is newer; with an `a` only on exactly this, with an `f` only on its
 * family. */
enum gp_code gp_code_for(const char *list, unsigned capability);

/* ---- the verdict ---- */

/* X(id, word), in the order in which they are found: what is wrong between the GPU and its driver
 * goes before what is wrong with the build. */
#define GP_FITS(X)                                                                                 \
    X(UNKNOWN, "unknown")                                                                          \
    X(WORKS, "works")                                                                              \
    X(DRIVER_TOO_OLD, "driver too old for this GPU")                                               \
    X(DRIVER_TOO_NEW, "driver too new for this GPU")                                               \
    X(NO_CODE, "no kernels for this GPU")                                                          \
    X(NEEDS_DRIVER, "needs a newer driver")                                                        \
    X(NO_DRIVER, "no driver serves both")

enum gp_fit {
#define X(id, word) GP_FIT_##id,
    GP_FITS(X)
#undef X
};

const char *gp_fit_word(enum gp_fit fit);

struct gp_judgement {
    enum gp_fit fit;
    enum gp_code code;
    const char *driver; /* NEEDS_DRIVER, NO_DRIVER: the oldest that will do */
    unsigned branch; /* DRIVER_TOO_OLD: the first that has the GPU; DRIVER_TOO_NEW, NO_DRIVER: the
                        last */
};

/* Does what was built with `cuda` for `list` run on this GPU with this driver? A driver of NULL or
 * "" is one that can be chosen. Without a list (NULL or "") only the driver is judged: `code` says
 * so. */
struct gp_judgement gp_judge(const char *driver, const char *cuda, const char *list,
                             unsigned capability);

/* "needs driver 580.65.06 or newer": what is wrong, as the end of a sentence about the build. */
void gp_judgement_words(const struct gp_judgement *judgement, unsigned capability, char *text,
                        size_t size);

/* Does a cuDNN ("9.10.2") for CUDA of this number before the dot have kernels for a GPU? UNKNOWN:
 * the table does not say. */
enum gp_code gp_cudnn_code_for(const char *cudnn, unsigned cuda_major, unsigned capability);

#endif
