/* Results as text, CSV and JSON. */
#ifndef GP_BENCH_REPORT_H
#define GP_BENCH_REPORT_H

#include "bench/bench.h"

struct gp_strbuf;

/* What is not in the results, but needed to reproduce them. */
struct gp_bench_origin {
    char host[128];
    char cpu[128];     /* its model */
    unsigned cpus;     /* that this process may use */
    char driver[64];   /* of NVIDIA; "": none */
    char load[32];     /* the host's load average at the beginning */
    bool is_simulated; /* the driver: the figures say nothing about a GPU */
    bool is_reserved;  /* the GPUs are reserved */
    bool is_shared;    /* the GPUs were not reserved */
    char lost[400];    /* why the reservation was lost meanwhile; "": it was not */
    uint64_t wall_ns;
};

void gp_bench_origin_of_host(struct gp_bench_origin *origin);

/* A table for each test, and a chart of matmul; `plain`: in ASCII. */
void gp_bench_add_text(struct gp_strbuf *sb, const struct gp_bench *bench,
                       const struct gp_bench_origin *origin, size_t columns, bool plain);
void gp_bench_add_csv(struct gp_strbuf *sb, const struct gp_bench *bench);
/* A document of the schema gpulse.bench/1. */
void gp_bench_add_json(struct gp_strbuf *sb, const struct gp_bench *bench,
                       const struct gp_bench_origin *origin);

#endif
