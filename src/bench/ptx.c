#include "bench/ptx.h"

#include "base/strbuf.h"

/* ---- streams ---- */

/* Each thread handles pieces of 16 bytes: its own, and those that are the whole grid's width away.
 * %d5: the piece, %d6: the width of the grid, %d8 to %d10: addresses of the piece. */
#define STREAM(name, before, body, after)                                                          \
    ".visible .entry k_" name "(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pn)\n" \
    "{\n"                                                                                          \
    "    .reg .pred %p<3>;\n"                                                                      \
    "    .reg .b32 %r<16>;\n"                                                                      \
    "    .reg .b64 %d<12>;\n"                                                                      \
    "    .reg .f32 %f<16>;\n"                                                                      \
    "    ld.param.u64 %d1, [pa];\n"                                                                \
    "    ld.param.u64 %d2, [pb];\n"                                                                \
    "    ld.param.u64 %d3, [pc];\n"                                                                \
    "    ld.param.u64 %d4, [pn];\n"                                                                \
    "    mov.u32 %r1, %ctaid.x;\n"                                                                 \
    "    mov.u32 %r2, %ntid.x;\n"                                                                  \
    "    mov.u32 %r3, %tid.x;\n"                                                                   \
    "    mov.u32 %r4, %nctaid.x;\n"                                                                \
    "    cvt.u64.u32 %d5, %r3;\n"                                                                  \
    "    mad.wide.u32 %d5, %r1, %r2, %d5;\n"                                                       \
    "    mul.wide.u32 %d6, %r4, %r2;\n" before "NEXT:\n"                                           \
    "    setp.ge.u64 %p1, %d5, %d4;\n"                                                             \
    "    @%p1 bra DONE;\n"                                                                         \
    "    shl.b64 %d7, %d5, 4;\n"                                                                   \
    "    add.u64 %d8, %d1, %d7;\n"                                                                 \
    "    add.u64 %d9, %d2, %d7;\n"                                                                 \
    "    add.u64 %d10, %d3, %d7;\n" body "    add.u64 %d5, %d5, %d6;\n"                            \
    "    bra NEXT;\n"                                                                              \
    "DONE:\n" after "    ret;\n"                                                                   \
    "}\n"

/* The sum is stored if it is a number that does not occur, so that the loads stay. */
static const char *const streams[] = {
    STREAM("read", "    mov.f32 %f8, 0f00000000;\n",
           "    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d8];\n"
           "    add.f32 %f4, %f0, %f1;\n"
           "    add.f32 %f5, %f2, %f3;\n"
           "    add.f32 %f4, %f4, %f5;\n"
           "    add.f32 %f8, %f8, %f4;\n",
           "    setp.eq.f32 %p2, %f8, 0fBFC00000;\n" /* −1.5 */
           "    @%p2 st.global.f32 [%d3], %f8;\n"),
    /* element i is i modulo 65536 */
    STREAM("write", "",
           "    shl.b64 %d11, %d5, 2;\n"
           "    cvt.u32.u64 %r5, %d11;\n"
           "    and.b32 %r5, %r5, 65535;\n"
           "    cvt.rn.f32.u32 %f0, %r5;\n"
           "    add.f32 %f1, %f0, 0f3F800000;\n"
           "    add.f32 %f2, %f0, 0f40000000;\n"
           "    add.f32 %f3, %f0, 0f40400000;\n"
           "    st.global.v4.f32 [%d10], {%f0, %f1, %f2, %f3};\n",
           ""),
    STREAM("copy", "",
           "    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d8];\n"
           "    st.global.v4.f32 [%d10], {%f0, %f1, %f2, %f3};\n",
           ""),
    STREAM("triad", "",
           "    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d8];\n"
           "    ld.global.v4.f32 {%f4, %f5, %f6, %f7}, [%d9];\n"
           "    fma.rn.f32 %f8, %f4, 0f40400000, %f0;\n"
           "    fma.rn.f32 %f9, %f5, 0f40400000, %f1;\n"
           "    fma.rn.f32 %f10, %f6, 0f40400000, %f2;\n"
           "    fma.rn.f32 %f11, %f7, 0f40400000, %f3;\n"
           "    st.global.v4.f32 [%d10], {%f8, %f9, %f10, %f11};\n",
           ""),
    STREAM("compare", "",
           "    ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d8];\n"
           "    ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%d9];\n"
           "    xor.b32 %r5, %r5, %r9;\n"
           "    xor.b32 %r6, %r6, %r10;\n"
           "    xor.b32 %r7, %r7, %r11;\n"
           "    xor.b32 %r8, %r8, %r12;\n"
           "    or.b32 %r5, %r5, %r6;\n"
           "    or.b32 %r7, %r7, %r8;\n"
           "    or.b32 %r5, %r5, %r7;\n"
           "    setp.ne.u32 %p2, %r5, 0;\n"
           "    cvt.u32.u64 %r13, %d5;\n"
           "    @%p2 red.global.add.u32 [%d3], 1;\n"
           "    @%p2 red.global.min.u32 [%d3+4], %r13;\n",
           ""),
};

static const char *const empty =
    ".visible .entry k_empty(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pn)\n"
    "{\n"
    "    ret;\n"
    "}\n";

/* ---- products ---- */

/* A block of 16 × 16 threads (x, y) computes 64 × 64 elements; each thread those at rows x + 16·i
 * and columns y + 16·j. Both operands pass through shared memory, 16 columns of A and 16 rows of B
 * at a time: tile_a[k][row], tile_b[k][column], the latter with an odd stride, because neighbouring
 * threads store it in different k. Rows and columns beyond the matrix are 0. */
enum { SIDE = 16, PER_THREAD = GP_PTX_TILE / SIDE, STRIDE_B = GP_PTX_TILE + 1 };

/* A number format in PTX. */
struct kind {
    const char *type, *zero;
    int bytes;
};

/* Loads element (row %r`row`, column %r`column`) of an operand, or 0 if it is beyond the matrix,
 * and stores it in shared memory at %r`address` + offset. */
static void add_fetch(struct gp_strbuf *sb, const struct kind *kind, const char *operand, int row,
                      int column, int address, int offset)
{
    gp_strbuf_addf(sb,
                   "    setp.lt.u32 %%p1, %%r%d, %%r4;\n"
                   "    setp.lt.and.u32 %%p1, %%r%d, %%r4, %%p1;\n"
                   "    cvt.u64.u32 %%d5, %%r%d;\n"
                   "    mad.wide.u32 %%d5, %%r%d, %%r4, %%d5;\n"
                   "    mad.lo.u64 %%d5, %%d5, %d, %s;\n"
                   "    mov.%s %%f0, %s;\n"
                   "    @%%p1 ld.global.%s %%f0, [%%d5];\n"
                   "    st.shared.%s [%%r%d+%d], %%f0;\n",
                   row, column, row, column, kind->bytes, operand, kind->type, kind->zero,
                   kind->type, kind->type, address, offset);
}

/* %r1, %r2: x and y; %r3: the thread; %r4: n; %r5, %r6: the first row and column of the tile;
 * %r7: the step, k; %r8, %r9: the shared addresses of what this thread reads; %r10, %r11: of what
 * it stores; %r12 on: rows and columns. %d1 to %d3: c, a, b. */
static void add_beginning(struct gp_strbuf *sb, const struct kind *kind)
{
    gp_strbuf_addf(sb,
                   ".visible .entry k_gemm_%s(.param .u64 pc, .param .u64 pa, .param .u64 pb, "
                   ".param .u32 pn)\n"
                   "{\n"
                   "    .reg .pred %%p<4>;\n"
                   "    .reg .b32 %%r<24>;\n"
                   "    .reg .b64 %%d<8>;\n"
                   "    .reg .%s %%f<10>;\n"
                   "    .reg .%s %%s<%d>;\n"
                   "    .shared .align 16 .b8 tile_a_%s[%d];\n"
                   "    .shared .align 16 .b8 tile_b_%s[%d];\n"
                   "    ld.param.u64 %%d1, [pc];\n"
                   "    ld.param.u64 %%d2, [pa];\n"
                   "    ld.param.u64 %%d3, [pb];\n"
                   "    ld.param.u32 %%r4, [pn];\n",
                   kind->type, kind->type, kind->type, PER_THREAD * PER_THREAD, kind->type,
                   SIDE * GP_PTX_TILE * kind->bytes, kind->type, SIDE * STRIDE_B * kind->bytes);
    gp_strbuf_addf(sb,
                   "    mov.u32 %%r3, %%tid.x;\n"
                   "    and.b32 %%r1, %%r3, %d;\n"
                   "    shr.u32 %%r2, %%r3, 4;\n"
                   "    mov.u32 %%r5, %%ctaid.x;\n"
                   "    shl.b32 %%r5, %%r5, 6;\n"
                   "    mov.u32 %%r6, %%ctaid.y;\n"
                   "    shl.b32 %%r6, %%r6, 6;\n"
                   "    mov.u32 %%r8, tile_a_%s;\n"
                   "    mad.lo.u32 %%r8, %%r1, %d, %%r8;\n"
                   "    mov.u32 %%r9, tile_b_%s;\n"
                   "    mad.lo.u32 %%r11, %%r1, %d, %%r9;\n" /* k = x */
                   "    mad.lo.u32 %%r11, %%r2, %d, %%r11;\n"
                   "    mad.lo.u32 %%r9, %%r2, %d, %%r9;\n"
                   "    mad.lo.u32 %%r10, %%r2, %d, %%r8;\n" /* k = y */
                   "    mov.u32 %%r7, 0;\n",
                   SIDE - 1, kind->type, kind->bytes, kind->type, STRIDE_B * kind->bytes,
                   kind->bytes, kind->bytes, GP_PTX_TILE * kind->bytes);
    for (int i = 0; i < PER_THREAD * PER_THREAD; i++)
        gp_strbuf_addf(sb, "    mov.%s %%s%d, %s;\n", kind->type, i, kind->zero);
}

/* Thread (x, y) fetches the elements (x + 16·i, y) of A's columns, and (x, y + 16·i) of B's rows.
 */
static void add_step(struct gp_strbuf *sb, const struct kind *kind)
{
    gp_strbuf_adds(sb, "STEP:\n"
                       "    add.u32 %r12, %r7, %r1;\n"   /* row of B */
                       "    add.u32 %r13, %r7, %r2;\n"   /* column of A */
                       "    add.u32 %r14, %r5, %r1;\n"   /* row of A */
                       "    add.u32 %r15, %r6, %r2;\n"); /* column of B */
    for (int i = 0; i < PER_THREAD; i++) {
        add_fetch(sb, kind, "%d2", 14, 13, 10, SIDE * i * kind->bytes);
        add_fetch(sb, kind, "%d3", 12, 15, 11, SIDE * i * kind->bytes);
        gp_strbuf_addf(sb,
                       "    add.u32 %%r14, %%r14, %d;\n"
                       "    add.u32 %%r15, %%r15, %d;\n",
                       SIDE, SIDE);
    }
    gp_strbuf_adds(sb, "    bar.sync 0;\n");
    for (int k = 0; k < SIDE; k++) {
        for (int i = 0; i < PER_THREAD; i++)
            gp_strbuf_addf(sb,
                           "    ld.shared.%s %%f%d, [%%r8+%d];\n"
                           "    ld.shared.%s %%f%d, [%%r9+%d];\n",
                           kind->type, i, (k * GP_PTX_TILE + SIDE * i) * kind->bytes, kind->type,
                           PER_THREAD + i, (k * STRIDE_B + SIDE * i) * kind->bytes);
        for (int i = 0; i < PER_THREAD; i++)
            for (int j = 0; j < PER_THREAD; j++)
                gp_strbuf_addf(sb, "    fma.rn.%s %%s%d, %%f%d, %%f%d, %%s%d;\n", kind->type,
                               PER_THREAD * j + i, i, PER_THREAD + j, PER_THREAD * j + i);
    }
    gp_strbuf_addf(sb,
                   "    bar.sync 0;\n"
                   "    add.u32 %%r7, %%r7, %d;\n"
                   "    setp.lt.u32 %%p2, %%r7, %%r4;\n"
                   "    @%%p2 bra STEP;\n",
                   SIDE);
}

static void add_end(struct gp_strbuf *sb, const struct kind *kind)
{
    gp_strbuf_adds(sb, "    add.u32 %r15, %r6, %r2;\n");
    for (int j = 0; j < PER_THREAD; j++) {
        gp_strbuf_adds(sb, "    add.u32 %r14, %r5, %r1;\n");
        for (int i = 0; i < PER_THREAD; i++)
            gp_strbuf_addf(sb,
                           "    setp.lt.u32 %%p1, %%r14, %%r4;\n"
                           "    setp.lt.and.u32 %%p1, %%r15, %%r4, %%p1;\n"
                           "    cvt.u64.u32 %%d5, %%r14;\n"
                           "    mad.wide.u32 %%d5, %%r15, %%r4, %%d5;\n"
                           "    mad.lo.u64 %%d5, %%d5, %d, %%d1;\n"
                           "    @%%p1 st.global.%s [%%d5], %%s%d;\n"
                           "    add.u32 %%r14, %%r14, %d;\n",
                           kind->bytes, kind->type, PER_THREAD * j + i, SIDE);
        gp_strbuf_addf(sb, "    add.u32 %%r15, %%r15, %d;\n", SIDE);
    }
    gp_strbuf_adds(sb, "    ret;\n"
                       "}\n");
}

void gp_ptx_add_module(struct gp_strbuf *sb)
{
    static const struct kind kinds[] = {{"f32", "0f00000000", 4}, {"f64", "0d0000000000000000", 8}};
    gp_strbuf_adds(sb, ".version 6.0\n"
                       ".target sm_50\n"
                       ".address_size 64\n");
    for (size_t i = 0; i < GP_ARRAY_LEN(streams); i++)
        gp_strbuf_adds(sb, streams[i]);
    gp_strbuf_adds(sb, empty);
    for (size_t i = 0; i < GP_ARRAY_LEN(kinds); i++) {
        add_beginning(sb, &kinds[i]);
        add_step(sb, &kinds[i]);
        add_end(sb, &kinds[i]);
    }
}

/* ---- products by tensor cores ---- */

/* The transposed product, Cᵀ = Bᵀ·Aᵀ, whose matrices are stored by rows: P = Bᵀ, Q = Aᵀ. A block of
 * four warps computes 64 × 64 elements, each warp 32 × 32 as 2 × 4 fragments of 16 × 8. 32 columns
 * of P and 32 rows of Q at a time pass through shared memory, as tile_p[row][k] and
 * tile_q[column][k], so that the two halves of a register are neighbours. The layout of the
 * fragments is that of the PTX manual for mma.m16n8k16: lane 4·g + t has rows g and g + 8, and
 * columns 2·t and 2·t + 1. */
enum { DEPTH = 32, STRIDE = 40 * 2 /* bytes; not a power of two, because of the banks */ };

/* %r1: thread; %r2: n; %r3, %r4: first row (of P) and column (of Q) of the tile; %r5, %r6: where
 * this thread stores P and Q; %r7, %r8: where it reads its fragments; %r9: k; %d2, %d3: what it
 * loads next of Q and P; %d4: bytes from one step of Q to the next; %d5, %d6: the result, and 8
 * rows of it. */
static void add_tensor_beginning(struct gp_strbuf *sb, const char *type)
{
    gp_strbuf_addf(sb,
                   ".visible .entry k_mma_%s(.param .u64 pc, .param .u64 pa, .param .u64 pb, "
                   ".param .u32 pn)\n"
                   "{\n"
                   "    .reg .pred %%p<2>;\n"
                   "    .reg .b16 %%h<2>;\n"
                   "    .reg .b32 %%r<32>;\n"
                   "    .reg .b64 %%d<8>;\n"
                   "    .reg .f32 %%s<32>;\n"
                   "    .shared .align 16 .b8 tile_p_%s[%d];\n"
                   "    .shared .align 16 .b8 tile_q_%s[%d];\n"
                   "    ld.param.u64 %%d5, [pc];\n"
                   "    ld.param.u64 %%d2, [pa];\n"
                   "    ld.param.u64 %%d3, [pb];\n"
                   "    ld.param.u32 %%r2, [pn];\n",
                   type, type, GP_PTX_TILE * STRIDE, type, GP_PTX_TILE * STRIDE);
    gp_strbuf_adds(sb, "    mov.u32 %r1, %tid.x;\n"
                       "    mov.u32 %r3, %ctaid.y;\n"
                       "    shl.b32 %r3, %r3, 6;\n"
                       "    mov.u32 %r4, %ctaid.x;\n"
                       "    shl.b32 %r4, %r4, 6;\n");
    /* P: row thread/2, half thread%2 of 32 columns */
    gp_strbuf_addf(sb,
                   "    shr.u32 %%r10, %%r1, 1;\n"
                   "    and.b32 %%r11, %%r1, 1;\n"
                   "    mov.u32 %%r5, tile_p_%s;\n"
                   "    mad.lo.u32 %%r5, %%r10, %d, %%r5;\n"
                   "    mad.lo.u32 %%r5, %%r11, 32, %%r5;\n"
                   "    add.u32 %%r10, %%r10, %%r3;\n"
                   "    shl.b32 %%r11, %%r11, 4;\n"
                   "    cvt.u64.u32 %%d1, %%r11;\n"
                   "    mad.wide.u32 %%d1, %%r10, %%r2, %%d1;\n"
                   "    mad.lo.u64 %%d3, %%d1, 2, %%d3;\n",
                   type, STRIDE);
    /* Q: row thread/4, quarter thread%4 of 64 columns */
    gp_strbuf_addf(sb,
                   "    shr.u32 %%r10, %%r1, 2;\n"
                   "    and.b32 %%r11, %%r1, 3;\n"
                   "    shl.b32 %%r11, %%r11, 4;\n"
                   "    mov.u32 %%r6, tile_q_%s;\n"
                   "    mad.lo.u32 %%r6, %%r11, %d, %%r6;\n"
                   "    mad.lo.u32 %%r6, %%r10, 2, %%r6;\n"
                   "    add.u32 %%r11, %%r11, %%r4;\n"
                   "    cvt.u64.u32 %%d1, %%r11;\n"
                   "    mad.wide.u32 %%d1, %%r10, %%r2, %%d1;\n"
                   "    mad.lo.u64 %%d2, %%d1, 2, %%d2;\n"
                   "    mul.wide.u32 %%d4, %%r2, %d;\n",
                   type, STRIDE, 2 * DEPTH);
}

/* What a thread reads of the tiles, and where its part of the result goes: the second half of the
 * beginning. */
static void add_tensor_fragments(struct gp_strbuf *sb, const char *type)
{
    /* fragments: %r12: g, %r13: 2·t; %r14, %r15: first row and column of the warp */
    gp_strbuf_addf(sb,
                   "    and.b32 %%r12, %%r1, 31;\n"
                   "    shr.u32 %%r12, %%r12, 2;\n"
                   "    and.b32 %%r13, %%r1, 3;\n"
                   "    shl.b32 %%r13, %%r13, 1;\n"
                   "    shr.u32 %%r14, %%r1, 6;\n"
                   "    shl.b32 %%r14, %%r14, 5;\n"
                   "    and.b32 %%r15, %%r1, 32;\n"
                   "    add.u32 %%r14, %%r14, %%r12;\n"
                   "    add.u32 %%r10, %%r15, %%r12;\n"
                   "    mov.u32 %%r7, tile_p_%s;\n"
                   "    mad.lo.u32 %%r7, %%r14, %d, %%r7;\n"
                   "    mad.lo.u32 %%r7, %%r13, 2, %%r7;\n"
                   "    mov.u32 %%r8, tile_q_%s;\n"
                   "    mad.lo.u32 %%r8, %%r10, %d, %%r8;\n"
                   "    mad.lo.u32 %%r8, %%r13, 2, %%r8;\n",
                   type, STRIDE, type, STRIDE);
    /* the result: row %r3 + %r14, column %r4 + %r15 + 2·t */
    gp_strbuf_adds(sb, "    add.u32 %r10, %r3, %r14;\n"
                       "    add.u32 %r11, %r4, %r15;\n"
                       "    add.u32 %r11, %r11, %r13;\n"
                       "    cvt.u64.u32 %d1, %r11;\n"
                       "    mad.wide.u32 %d1, %r10, %r2, %d1;\n"
                       "    mad.lo.u64 %d5, %d1, 2, %d5;\n"
                       "    mul.wide.u32 %d6, %r2, 16;\n"
                       "    mov.u32 %r9, 0;\n");
    for (int i = 0; i < 32; i++)
        gp_strbuf_addf(sb, "    mov.f32 %%s%d, 0f00000000;\n", i);
}

static void add_tensor_fetch(struct gp_strbuf *sb)
{
    for (int i = 0; i < 2; i++)
        gp_strbuf_addf(sb,
                       "    ld.global.v4.u32 {%%r16, %%r17, %%r18, %%r19}, [%%d3+%d];\n"
                       "    st.shared.v4.u32 [%%r5+%d], {%%r16, %%r17, %%r18, %%r19};\n",
                       16 * i, 16 * i);
    for (int i = 0; i < 2; i++) {
        gp_strbuf_addf(sb, "    ld.global.v4.u32 {%%r16, %%r17, %%r18, %%r19}, [%%d2+%d];\n",
                       16 * i);
        for (int k = 0; k < 8; k++) {
            if (k % 2)
                gp_strbuf_addf(sb, "    shr.u32 %%r%d, %%r%d, 16;\n", 16 + k / 2, 16 + k / 2);
            gp_strbuf_addf(sb,
                           "    cvt.u16.u32 %%h0, %%r%d;\n"
                           "    st.shared.u16 [%%r6+%d], %%h0;\n",
                           16 + k / 2, (8 * i + k) * STRIDE);
        }
    }
}

static void add_tensor_step(struct gp_strbuf *sb, const char *type)
{
    gp_strbuf_adds(sb, "STEP:\n");
    add_tensor_fetch(sb);
    gp_strbuf_addf(sb,
                   "    add.u64 %%d3, %%d3, %d;\n"
                   "    add.u64 %%d2, %%d2, %%d4;\n"
                   "    bar.sync 0;\n",
                   2 * DEPTH);
    for (int k = 0; k < DEPTH; k += 16) {
        for (int m = 0; m < 2; m++) /* %r16 to %r23: two fragments of P */
            for (int i = 0; i < 4; i++)
                gp_strbuf_addf(sb, "    ld.shared.u32 %%r%d, [%%r7+%d];\n", 16 + 4 * m + i,
                               (16 * m + 8 * (i % 2)) * STRIDE + 2 * (k + 8 * (i / 2)));
        for (int n = 0; n < 4; n++) {
            for (int i = 0; i < 2; i++) /* %r24, %r25: one of Q */
                gp_strbuf_addf(sb, "    ld.shared.u32 %%r%d, [%%r8+%d];\n", 24 + i,
                               8 * n * STRIDE + 2 * (k + 8 * i));
            for (int m = 0; m < 2; m++) {
                int s = 16 * m + 4 * n;
                int p = 16 + 4 * m;
                gp_strbuf_addf(sb,
                               "    mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 "
                               "{%%s%d, %%s%d, %%s%d, %%s%d}, {%%r%d, %%r%d, %%r%d, %%r%d}, "
                               "{%%r24, %%r25}, {%%s%d, %%s%d, %%s%d, %%s%d};\n",
                               type, type, s, s + 1, s + 2, s + 3, p, p + 1, p + 2, p + 3, s, s + 1,
                               s + 2, s + 3);
            }
        }
    }
    gp_strbuf_addf(sb,
                   "    bar.sync 0;\n"
                   "    add.u32 %%r9, %%r9, %d;\n"
                   "    setp.lt.u32 %%p1, %%r9, %%r2;\n"
                   "    @%%p1 bra STEP;\n",
                   DEPTH);
}

static void add_tensor_end(struct gp_strbuf *sb, const char *type)
{
    for (int row = 0; row < 4; row++) { /* g, g + 8, g + 16, g + 24 */
        for (int n = 0; n < 4; n++) {
            int s = 16 * (row / 2) + 4 * n + 2 * (row % 2);
            gp_strbuf_addf(sb,
                           "    cvt.rn.%s.f32 %%h0, %%s%d;\n"
                           "    cvt.rn.%s.f32 %%h1, %%s%d;\n"
                           "    mov.b32 %%r16, {%%h0, %%h1};\n"
                           "    st.global.u32 [%%d5+%d], %%r16;\n",
                           type, s, type, s + 1, 16 * n);
        }
        gp_strbuf_adds(sb, "    add.u64 %d5, %d5, %d6;\n");
    }
    gp_strbuf_adds(sb, "    ret;\n"
                       "}\n");
}

void gp_ptx_add_tensor_module(struct gp_strbuf *sb)
{
    static const char *const types[] = {"f16", "bf16"};
    gp_strbuf_adds(sb, ".version 7.0\n"
                       ".target sm_80\n"
                       ".address_size 64\n");
    for (size_t i = 0; i < GP_ARRAY_LEN(types); i++) {
        add_tensor_beginning(sb, types[i]);
        add_tensor_fragments(sb, types[i]);
        add_tensor_step(sb, types[i]);
        add_tensor_end(sb, types[i]);
    }
}
