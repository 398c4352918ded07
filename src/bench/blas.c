#include "bench/blas.h"

#include "base/err.h"
#include "bench/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* cblas.h: the values of CBLAS_LAYOUT and CBLAS_TRANSPOSE. */
enum { COL_MAJOR = 102, NO_TRANS = 111 };

/* X(name of the type, number, integer) */
#define GEMMS(X)                                                                                   \
    X(sgemm_int, float, int)                                                                       \
    X(dgemm_int, double, int)                                                                      \
    X(sgemm_wide, float, int64_t)                                                                  \
    X(dgemm_wide, double, int64_t)

#define X(type, number, integer)                                                                   \
    typedef void type(int, int, int, integer, integer, integer, number, const number *, integer,   \
                      const number *, integer, number, number *, integer);
GEMMS(X)
#undef X

/* Where a library may be, and how its functions are called there. */
static const struct {
    const char *title;
    const char *names[4];
    const char *sites[3]; /* in Python packages */
    const char *prefix, *suffix;
    bool is_wide;
} libraries[] = {
    {"OpenBLAS", {"libopenblas.so.0", "libopenblas.so"}, {NULL}, "", "", false},
    {"MKL", {"libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"}, {NULL}, "", "", false},
    {"BLIS", {"libblis.so.4", "libblis.so.3"}, {NULL}, "", "", false},
    {"OpenBLAS of numpy", {NULL}, {"numpy.libs/libscipy_openblas64_-*.so"}, "scipy_", "64_", true},
    {"OpenBLAS of numpy", {NULL}, {"numpy.libs/libopenblas64_p*.so"}, "", "64_", true},
};

static void *find(void *library, size_t i, const char *name)
{
    char full[80];
    (void)snprintf(full, sizeof(full), "%s%s%s", libraries[i].prefix, name, libraries[i].suffix);
    return dlsym(library, full);
}

/* The library's own words about itself. */
static void describe(void *library, size_t i, struct gp_blas *blas)
{
    const char *(*config)(void) = NULL;
    const char *(*core)(void) = NULL;
    int (*threads)(void) = NULL;
    const struct {
        const char *name;
        void *function;
    } wanted[] = {{"openblas_get_config", &config},
                  {"openblas_get_corename", &core},
                  {"openblas_get_num_threads", &threads}};
    for (size_t k = 0; k < GP_ARRAY_LEN(wanted); k++) {
        void *symbol = find(library, i, wanted[k].name);
        memcpy(wanted[k].function, &symbol, sizeof(symbol));
    }
    char version[24] = "";
    if (config && strncmp(config(), "OpenBLAS ", 9) == 0)
        (void)snprintf(version, sizeof(version), " %.*s", (int)strcspn(config() + 9, " "),
                       config() + 9);
    (void)snprintf(blas->name, sizeof(blas->name), "%s%s%s%.40s", libraries[i].title, version,
                   core ? ", kernels for " : "", core ? core() : "");
    blas->threads = threads ? (unsigned)threads() : 0;
}

/* One row of the table. */
struct attempt {
    struct gp_blas *blas;
    size_t row;
};

static bool take(void *library, void *context)
{
    const struct attempt *a = context;
    a->blas->sgemm = find(library, a->row, "cblas_sgemm");
    a->blas->dgemm = find(library, a->row, "cblas_dgemm");
    a->blas->is_wide = libraries[a->row].is_wide;
    if (!a->blas->sgemm || !a->blas->dgemm)
        return false;
    describe(library, a->row, a->blas);
    return true;
}

int gp_blas_open(struct gp_blas *ret, struct gp_err *err)
{
    *ret = (struct gp_blas){0};
    for (size_t i = 0; i < GP_ARRAY_LEN(libraries); i++)
        if (gp_bench_library_try(libraries[i].sites, libraries[i].names, take,
                                 &(struct attempt){ret, i}))
            return 0;
    return gp_err_set(err, GP_ENODEV,
                      "no BLAS library for the CPU: install OpenBLAS (libopenblas0 on Debian and "
                      "Ubuntu, openblas on Fedora and Arch)");
}

void gp_blas_gemm(const struct gp_blas *blas, enum gp_bench_precision precision, size_t n,
                  const void *a, const void *b, void *c)
{
    void *function = precision == GP_BENCH_FP64 ? blas->dgemm : blas->sgemm;
#define X(type, number, integer)                                                                   \
    type *type##_call;                                                                             \
    memcpy(&type##_call, &function, sizeof(function));
    GEMMS(X)
#undef X
#define CALL(type, integer)                                                                        \
    type##_call(COL_MAJOR, NO_TRANS, NO_TRANS, (integer)n, (integer)n, (integer)n, 1, a,           \
                (integer)n, b, (integer)n, 0, c, (integer)n)
    if (precision == GP_BENCH_FP64 && blas->is_wide)
        CALL(dgemm_wide, int64_t);
    else if (precision == GP_BENCH_FP64)
        CALL(dgemm_int, int);
    else if (blas->is_wide)
        CALL(sgemm_wide, int64_t);
    else
        CALL(sgemm_int, int);
#undef CALL
}
