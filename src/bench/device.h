/* A device that computes: a GPU through CUDA, or any device of OpenCL.
 *
 * Its functions enqueue work, and return 0, or GP_EDRIVER with the library's error, or GP_ENOMEM
 * (also for memory of the device). A device is used by one thread at a time, which must bind it
 * first. */
#ifndef GP_BENCH_DEVICE_H
#define GP_BENCH_DEVICE_H

#include "bench/precision.h"

#include <stdatomic.h>

struct gp_err;
struct gp_bench_device;

/* Memory of a device. */
struct gp_bench_buffer {
    union {
        uint64_t address; /* CUDA */
        void *object;     /* OpenCL */
    } at;
    size_t bytes; /* 0: none */
};

/* A product of square matrices, C = A·B, stored by columns. `inner` belongs to the device. */
struct gp_bench_gemm {
    enum gp_bench_precision precision;
    size_t n;
    struct gp_bench_buffer a, b, c;
    char kernel[80]; /* set on opening: "cuBLASLt 12.8.4" */
    void *inner;
};

/* Kernels that only move memory. X(id, word, arrays that are read or written per element) */
#define GP_BENCH_STREAMS(X)                                                                        \
    X(READ, "read", 1)                                                                             \
    X(WRITE, "write", 1)                                                                           \
    X(COPY, "copy", 2)                                                                             \
    X(TRIAD, "triad", 3) /* c = a + 3·b */

enum gp_bench_stream {
#define X(id, word, arrays) GP_BENCH_##id,
    GP_BENCH_STREAMS(X)
#undef X
        GP_BENCH_STREAM__COUNT,
};

enum {
    GP_BENCH_PATTERN = 0xFFFF, /* `write` stores i & GP_BENCH_PATTERN in element i */
    GP_BENCH_COUNTS_BYTES = 2 * sizeof(uint32_t), /* of compare() */
};

enum gp_bench_way { GP_BENCH_TO_DEVICE, GP_BENCH_TO_HOST };

struct gp_bench_ops {
    int (*bind)(struct gp_bench_device *device, struct gp_err *err);
    int (*alloc)(struct gp_bench_device *device, size_t bytes, struct gp_bench_buffer *ret,
                 struct gp_err *err);
    void (*release)(struct gp_bench_device *device, struct gp_bench_buffer *buffer);
    /* Memory of the host that the device reads directly (pinned). */
    int (*host_alloc)(struct gp_bench_device *device, size_t bytes, void **ret, struct gp_err *err);
    void (*host_release)(struct gp_bench_device *device, void *host, size_t bytes);

    /* Copies the first `bytes`, and waits. */
    int (*upload)(struct gp_bench_device *device, const struct gp_bench_buffer *to,
                  const void *host, size_t bytes, struct gp_err *err);
    int (*download)(struct gp_bench_device *device, void *host, const struct gp_bench_buffer *from,
                    size_t offset, size_t bytes, struct gp_err *err);
    /* The whole buffer, without waiting; each way has a queue of its own. */
    int (*transfer)(struct gp_bench_device *device, enum gp_bench_way way,
                    const struct gp_bench_buffer *buffer, void *host, struct gp_err *err);

    /* Chooses a kernel; the buffers must exist. GP_ENODEV: this device or these libraries cannot
     * do it, with the reason. */
    int (*gemm_open)(struct gp_bench_device *device, struct gp_bench_gemm *gemm,
                     struct gp_err *err);
    int (*gemm)(struct gp_bench_device *device, const struct gp_bench_gemm *gemm,
                struct gp_err *err);
    void (*gemm_close)(struct gp_bench_device *device, struct gp_bench_gemm *gemm);

    /* Floats: `write` stores a pattern in c; `read` only reads a. All buffers have the size of c;
     * those that it does not use may be NULL. */
    int (*stream)(struct gp_bench_device *device, enum gp_bench_stream stream,
                  const struct gp_bench_buffer *a, const struct gp_bench_buffer *b,
                  const struct gp_bench_buffer *c, struct gp_err *err);
    /* Adds to the two 32-bit numbers in `counts`: how many of the 16-byte pieces of two buffers
     * differ, and (the minimum) which is the first. */
    int (*compare)(struct gp_bench_device *device, const struct gp_bench_buffer *a,
                   const struct gp_bench_buffer *b, const struct gp_bench_buffer *counts,
                   struct gp_err *err);
    int (*empty)(struct gp_bench_device *device, struct gp_err *err); /* a kernel without work */
    /* Creates and destroys a context of its own. */
    int (*context)(struct gp_bench_device *device, struct gp_err *err);

    /* Waits for the end of all work. */
    int (*wait)(struct gp_bench_device *device, struct gp_err *err);
    /* Marks the beginning of a period in the main queue. */
    int (*start)(struct gp_bench_device *device, struct gp_err *err);
    /* Waits, too; the time since start() by the device's clock, 0: it has none. */
    int (*stop)(struct gp_bench_device *device, uint64_t *ret_ns, struct gp_err *err);

    /* The number that CUDA gives the device in this process, and its main stream, for other
     * libraries of NVIDIA. NULL: not CUDA. */
    void (*native)(struct gp_bench_device *device, int *ret_ordinal, void **ret_stream);

    /* NULL: the library has no such copies. Copies the whole buffer to another device of the same
     * library; *ret_direct: without a detour over the host. */
    int (*peer_open)(struct gp_bench_device *from, struct gp_bench_device *to, bool *ret_direct,
                     struct gp_err *err);
    void (*peer_close)(struct gp_bench_device *from, struct gp_bench_device *to);
    int (*peer_copy)(struct gp_bench_device *from, const struct gp_bench_buffer *source,
                     struct gp_bench_device *to, const struct gp_bench_buffer *target, size_t bytes,
                     struct gp_err *err);
};

enum { GP_BENCH_DEVICES = 64 };

struct gp_bench_device {
    const struct gp_bench_ops *ops;
    char name[128];
    char uuid[96];    /* "GPU-…", as the driver of the GPU has it; "": unknown */
    char library[96]; /* "CUDA 13.0", "OpenCL (Portable Computing Language)" */
    bool is_gpu;
    size_t memory_bytes, largest_bytes; /* largest: of one buffer */
    size_t cache_bytes;                 /* of the last level; 0: unknown */
    unsigned units;                     /* multiprocessors, compute units */
    unsigned capability;                /* of CUDA: 90 for 9.0; 0: none */
    unsigned least_capability;          /* of all that are measured: they share one cuBLAS */
    unsigned waits; /* how many gp_bench_wait_begin() have no end yet; of the thread that uses it */
    uint64_t waits_begun;  /* the outermost ones; of that thread, too */
    _Atomic uint64_t wait; /* the number of the one that goes on; 0: none */
    void *self;
};

/* What the libraries offer. */
struct gp_bench_devices {
    struct gp_bench_device list[GP_BENCH_DEVICES];
    size_t count;
    void (*close)(struct gp_bench_devices *devices);
};

/* cuda.c; `path`: the libcuda.so.1 to load, NULL: search for it. GP_EDRIVER: there is none, or it
 * does not work; GP_ENODEV: no GPU. */
int gp_bench_cuda_open(const char *path, struct gp_bench_devices *ret,
                       struct gp_err *err) GP_MUST_CHECK;
/* opencl.c; `all`: also devices that are no GPUs. The same errors. */
int gp_bench_opencl_open(bool all, struct gp_bench_devices *ret, struct gp_err *err) GP_MUST_CHECK;

/* Around what waits for the device, which may hang. They may be nested: gp_bench_overdue() sees the
 * outermost one. */
void gp_bench_wait_begin(struct gp_bench_device *device);
void gp_bench_wait_end(struct gp_bench_device *device);

/* Closes the devices. */
void gp_bench_devices_close(struct gp_bench_devices *devices);

#endif
