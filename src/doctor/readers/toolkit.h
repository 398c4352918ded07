/* Installed CUDA toolkits, and CUDA libraries in directories. */
#ifndef GP_DOCTOR_READERS_TOOLKIT_H
#define GP_DOCTOR_READERS_TOOLKIT_H

#include "base/io.h"

struct gp_exam;
struct gp_files;

enum { GP_TOOLKITS = 32, GP_TOOLKIT_VERSION = 32 };

struct gp_toolkit_found {
    const char *path;    /* "/usr/local/cuda-12.4", after following links */
    const char *version; /* "12.4.1", "12.6"; "": unknown */
    const char *source;  /* the file that states it, or the directory name */
    const char *damage;  /* a file that should state it and is invalid; "" */
    bool is_default;     /* /usr/local/cuda leads here */
    bool is_on_path;     /* nvcc in PATH is from this toolkit */
    bool has_compiler;
};

struct gp_toolkits {
    struct gp_toolkit_found list[GP_TOOLKITS];
    size_t count;
    const char *nvcc; /* found in PATH; "" */
};

/* Searched on first use; never NULL. */
const struct gp_toolkits *gp_toolkits_of(struct gp_exam *exam);

/* The toolkit that programs are built with: the one in PATH, else /usr/local/cuda, else the only
 * one; NULL: none of them. */
const struct gp_toolkit_found *gp_toolkit_used(const struct gp_toolkits *all);

/* The name of this release in NVIDIA's repository: "ubuntu2404"; "": unknown. */
const char *gp_toolkit_repository(struct gp_exam *exam);

/* ---- pure functions ---- */

/* The version in version.json. Some give the build date in the last place, which is dropped:
 * "12.6.20241114" is "12.6". False: it is damaged, or has no version. */
bool gp_toolkit_read_json(const char *text, char version[GP_TOOLKIT_VERSION]);

/* In version.txt: "CUDA Version 10.2.89". */
bool gp_toolkit_read_text(const char *text, char version[GP_TOOLKIT_VERSION]);

/* In cuda.h: "#define CUDA_VERSION 12040". */
bool gp_toolkit_read_header(const char *text, char version[GP_TOOLKIT_VERSION]);

/* In cuda_runtime_api.h: "#define CUDART_VERSION 13000". */
bool gp_runtime_read_header(const char *text, char version[GP_TOOLKIT_VERSION]);

/* In the name of a directory: "/usr/local/cuda-12.4", "/opt/nvidia/…/cuda/12.4". */
bool gp_toolkit_read_name(const char *path, char version[GP_TOOLKIT_VERSION]);

/* In cudnn_version.h: CUDNN_MAJOR, CUDNN_MINOR and CUDNN_PATCHLEVEL. */
bool gp_cudnn_read_header(const char *text, char version[GP_TOOLKIT_VERSION]);

/* After ".so.": "9.10.2" of "libcudnn.so.9.10.2"; "" if there is nothing. */
const char *gp_library_version(const char *name);

#endif
