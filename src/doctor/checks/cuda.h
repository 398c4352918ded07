/* The checks of CUDA, in several files; cuda.c has their table. */
#ifndef GP_DOCTOR_CHECKS_CUDA_H
#define GP_DOCTOR_CHECKS_CUDA_H

#include "doctor/check.h"

struct gp_exam;
struct gp_nvidia;
struct gp_torch;

void gp_check_cuda_host(struct gp_exam *exam);  /* part of cuda.toolkits */
void gp_check_cuda_torch(struct gp_exam *exam); /* likewise */
/* What passes, but is the cause if something was to be compiled for PyTorch; false: nothing. */
bool gp_cuda_torch_remark(struct gp_exam *exam);
void gp_check_cuda_place(struct gp_exam *exam);      /* likewise */
void gp_check_cuda_unsearched(struct gp_exam *exam); /* likewise */
void gp_check_cuda_llamafile(struct gp_exam *exam);  /* likewise */
void gp_check_cuda_tfjs(struct gp_exam *exam);       /* likewise */
/* A problem of the compiler is one where programs are built, rather than come as wheels. */
enum gp_verdict gp_cuda_build_verdict(struct gp_exam *exam);
/* The PyTorch with CUDA that the user's shell would start, or the only one; false: there is none.
 */
bool gp_cuda_torch(struct gp_exam *exam, struct gp_torch *ret);
/* Whether CUDA sees no GPU with this CUDA_VISIBLE_DEVICES; false also if that is unknown. */
bool gp_cuda_mask_is_empty(struct gp_exam *exam, const char *mask);

/* cuda_ptx.c: the part of cuda.driver_floor on frameworks: whether the driver compiles PTX of their
 * CUDA; with is_told that is said of a toolkit already. */
void gp_check_cuda_ptx(struct gp_exam *exam, bool is_told);

/* cuda_fix.c: adds the commands that install the toolkit of this version, "12.4.1". */
void gp_cuda_fix_toolkit(struct gp_exam *exam, const char *version);

/* cuda_host.c: likewise where its compiler is needed, and the gcc that this one takes, if the
 * system's is newer. */
void gp_cuda_fix_compiler(struct gp_exam *exam, const char *version);

/* cuda_compat.c */
void gp_check_cuda_compat(struct gp_exam *exam);
/* Takes the libcuda for forward compatibility, where it is in use, for the driver: it is what
 * frameworks find. */
void gp_cuda_use_compat(struct gp_exam *exam, struct gp_nvidia *nv);
/* Whether a container's libcuda is the one for forward compatibility of its image. */
bool gp_cuda_is_compat_mounted(struct gp_exam *exam);

/* cuda_env.c */
void gp_check_cuda_env(struct gp_exam *exam);
/* Of a check of variables that has reported nothing: whether there were any, as a copy of a machine
 * has none. */
void gp_cuda_note_unset(struct gp_exam *exam);

/* cuda_hidden.c: a part of cuda.env */
void gp_check_cuda_hidden(struct gp_exam *exam);

/* cuda_hip.c: another */
void gp_check_cuda_hip(struct gp_exam *exam);

/* cuda_rocr.c: another */
void gp_check_cuda_rocr(struct gp_exam *exam);

/* cuda_network.c: another */
void gp_check_cuda_network(struct gp_exam *exam);

/* cuda_hidden.c: whether the name of a kernel, an environment or a script says that it is for the
 * CPU: that it uses no GPU is meant. */
bool gp_name_is_for_cpu(const char *name);

/* cuda_nccl.c: another */
void gp_check_cuda_nccl(struct gp_exam *exam);
/* A setting of NCCL in the environment, which comes first, or in its files, then at *ret_place,
 * "file:line". NULL: it is not set. */
const char *gp_nccl_value(struct gp_exam *exam, const char *name, const char **ret_place);
/* A fix: removes the line of a setting at such a place. */
void gp_nccl_remove(struct gp_exam *exam, const char *name, const char *place, const char *note);

/* cuda_ldpath.c */
void gp_check_cuda_ldpath(struct gp_exam *exam);

/* cuda_bundled.c: a part of cuda.ldpath */
void gp_check_cuda_bundled(struct gp_exam *exam);

/* cuda_nixos.c: another */
void gp_check_cuda_nixos(struct gp_exam *exam);

/* cuda_mixed.c: a part of cuda.toolkits; whether it has reported that compiler and headers are of
 * two releases */
bool gp_check_cuda_mixed(struct gp_exam *exam);
/* The toolkit that builds take, by CUDA_HOME, CUDA_PATH or nvcc in PATH, which is named in
 * *ret_where; NULL: nothing leads to one. */
const char *gp_cuda_build_root(struct gp_exam *exam, const char **ret_where);

/* cudnn_bundle.c: reports that a program brings another release of the system's cuDNN; false: none
 * does */
bool gp_check_cudnn_bundle(struct gp_exam *exam, const char *path, const char *version);

#endif
