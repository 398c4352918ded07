/* Which CUDA and cuDNN a program of a Python environment finds: in its packages, in
 * LD_LIBRARY_PATH, and where the loader looks by itself. */
#ifndef GP_DOCTOR_READERS_CUDA_FOUND_H
#define GP_DOCTOR_READERS_CUDA_FOUND_H

#include <stdbool.h>

struct gp_exam;
struct gp_pyenv;

/* 9 of "libcudnn.so.9"; 0: another name. */
unsigned gp_cudnn_of_name(const char *name);

/* Whether a directory has cuDNN of this major version; of the others it notes one. */
bool gp_cudnn_is_in(struct gp_exam *exam, const char *folder, unsigned wanted, unsigned *ret_other);

/* Whether cuDNN of this major version is found; false also if that is unknown, with *ret_is_known.
 */
bool gp_cudnn_is_found(struct gp_exam *exam, const struct gp_pyenv *env, unsigned wanted,
                       unsigned *ret_other, bool *ret_is_known);

/* The version of the cuDNN of this major version that the loader finds, "8.4.1", and its path ("":
 * there is none); "": unknown. */
const char *gp_cudnn_loaded(struct gp_exam *exam, const struct gp_pyenv *env, unsigned major,
                            const char **ret_path);

/* Whether CUDA of this major version is found; *ret_other: another one, or "". */
bool gp_cuda_is_found(struct gp_exam *exam, const struct gp_pyenv *env, unsigned major,
                      const char **ret_other);

/* Whether only another CUDA is installed, of version *ret_other. Where there is nothing else of
 * CUDA, its packages for a framework count. */
bool gp_cuda_is_only_other(struct gp_exam *exam, const struct gp_pyenv *env, unsigned major,
                           const char **ret_other);

/* Whether the loader finds a library, "libcublas.so.10"; true also if that is unknown. */
bool gp_library_is_loadable(struct gp_exam *exam, const struct gp_pyenv *env, const char *name);

/* The directory of a toolkit with this library; NULL: none. */
const char *gp_library_folder(struct gp_exam *exam, const char *name);

/* The directory of an unpacked archive with this library, such as "libcudnn.so" with any version
 * number: "~/cuda/lib64", "/opt/cudnn-linux-x86_64-8.9/lib", "~/TensorRT-8.2.3.0/lib"; NULL: there
 * is none. */
const char *gp_library_unpacked(struct gp_exam *exam, const char *name);

/* Another version of a library in a toolkit, or that the loader knows, "…/libcudart.so.10.1" for
 * "libcudart.so.10.0"; NULL: none. */
const char *gp_library_other(struct gp_exam *exam, const char *name);

#endif
