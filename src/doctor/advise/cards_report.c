/* GPU models and their capabilities as text and JSON. */
#include "doctor/advise/cards.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "doctor/compat.h"
#include "doctor/report.h"
#include "out/json.h"

#include <string.h>

enum { MODEL_COLUMNS = 34, LABEL = 18 };

/* Number formats. */
static const struct precision {
    const char *member; /* in JSON */
    size_t offset;      /* of its rate in struct gp_card */
    const char *name;
    unsigned first_capability; /* with hardware support */
    const char *note;
} precisions[] = {
#define ROW(member, ...)                                                                           \
    {                                                                                              \
#member, offsetof(struct gp_card, member), __VA_ARGS__                                     \
    }
    ROW(fp32, "FP32", 10, ""),
    ROW(tf32, "TF32", 80, ""),
    ROW(fp16, "FP16", 53, ""),
    ROW(fp16_fp32, "FP16, FP32 sums", 70, "with FP32 accumulation, as in PyTorch"),
    ROW(bf16, "BF16", 80, ""),
    ROW(fp8, "FP8", 89, ""),
    ROW(int8, "INT8", 61, "TOP/s"),
    ROW(fp4, "FP4", 100, ""),
#undef ROW
};

/* TFLOP/s without sparsity; 0: none, or unknown. */
static double rate_of(const struct gp_card *card, const struct precision *precision)
{
    double rate;
    memcpy(&rate, (const char *)card + precision->offset, sizeof(rate));
    return rate;
}

/* ---- the list ---- */

static void add_rate(struct gp_strbuf *sb, double rate)
{
    if (rate > 0)
        gp_strbuf_addf(sb, " %5.*f", rate < 100 ? 1 : 0, rate);
    else
        gp_strbuf_adds(sb, "     -");
}

static void add_row(struct gp_strbuf *sb, const struct gp_card *card, bool has_sources)
{
    size_t width = gp_utf8_width(card->model);
    gp_utf8_add_safe(sb, card->model, strlen(card->model), MODEL_COLUMNS);
    gp_strbuf_fill(sb, ' ', width < MODEL_COLUMNS ? MODEL_COLUMNS - width : 0);
    gp_strbuf_addf(sb, "%4u %5u", card->memory_gb, card->bandwidth_gbs);
    add_rate(sb, card->fp32);
    add_rate(sb, card->tf32);
    add_rate(sb, card->fp16_fp32 > 0 ? card->fp16_fp32 : card->fp16);
    add_rate(sb, card->fp8);
    add_rate(sb, card->fp4);
    gp_strbuf_addf(sb, " %4u\n", card->tdp_w);
    if (has_sources)
        gp_strbuf_addf(sb, "      source  %s\n", card->source);
}

/* "CUDA 8.0 to 12.9, driver 367 to 580"; "from CUDA 11.8 and driver 520 on" */
static void add_span(struct gp_strbuf *sb, const struct gp_arch *arch)
{
    if (arch->last_cuda[0])
        gp_strbuf_addf(sb, "CUDA %s to %s, driver %u to %u", arch->first_cuda, arch->last_cuda,
                       arch->first_branch, arch->last_branch);
    else
        gp_strbuf_addf(sb, "from CUDA %s and driver %u on", arch->first_cuda, arch->first_branch);
}

static void add_group(struct gp_strbuf *sb, unsigned capability)
{
    const struct gp_arch *arch = gp_arch_find(capability);
    gp_strbuf_addf(sb, "\n%s, compute capability %u.%u: ", arch ? arch->architecture : "unknown",
                   capability / 10, capability % 10);
    if (arch)
        add_span(sb, arch);
    gp_strbuf_addc(sb, '\n');
}

static void add_list(struct gp_strbuf *sb, const struct gp_card *const *cards, size_t count,
                     bool has_sources)
{
    gp_strbuf_addf(sb, "%-*s%4s %5s %5s %5s %5s %5s %5s %4s\n", MODEL_COLUMNS, "MODEL", "GB",
                   "GB/s", "FP32", "TF32", "FP16", "FP8", "FP4", "W");
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || cards[i]->compute_capability != cards[i - 1]->compute_capability)
            add_group(sb, cards[i]->compute_capability);
        add_row(sb, cards[i], has_sources);
    }
    gp_strbuf_adds(
        sb, "\n"
            "TFLOP/s without sparsity; FP16 with FP32 accumulation on GPUs with tensor cores\n");
}

/* ---- one model ---- */

static void add_precisions(struct gp_strbuf *sb, const struct gp_card *card)
{
    for (size_t i = 0; i < GP_ARRAY_LEN(precisions); i++) {
        const struct precision *p = &precisions[i];
        double rate = rate_of(card, p);
        bool is_whole = strcmp(p->note, "TOP/s") == 0;
        gp_strbuf_addf(sb, "  %-*s", LABEL, p->name);
        if (rate > 0)
            gp_strbuf_addf(sb, "%7.*f %s", rate < 1000 ? 1 : 0, rate,
                           is_whole ? "TOP/s" : "TFLOP/s");
        else if (card->compute_capability < p->first_capability)
            gp_strbuf_addf(sb, "     no  (requires compute capability %u.%u)",
                           p->first_capability / 10, p->first_capability % 10);
        else
            gp_strbuf_adds(sb, "      ?  rate unknown");
        if (rate > 0 && p->note[0] && !is_whole)
            gp_strbuf_addf(sb, ", %s", p->note);
        gp_strbuf_addc(sb, '\n');
    }
}

static void add_card(struct gp_strbuf *sb, const struct gp_card *card, bool has_sources)
{
    const struct gp_arch *arch = gp_arch_find(card->compute_capability);
    gp_strbuf_addf(sb, "%s\n", card->model);
    gp_strbuf_addf(sb, "  architecture      %s, compute capability %u.%u\n",
                   arch ? arch->architecture : "unknown", card->compute_capability / 10,
                   card->compute_capability % 10);
    gp_strbuf_addf(sb, "  memory            %u GB %s, %u GB/s\n", card->memory_gb,
                   card->memory_type, card->bandwidth_gbs);
    gp_strbuf_addf(sb, "  power             %u W\n", card->tdp_w);
    if (card->cores > 0)
        gp_strbuf_addf(sb, "  cores             %u, up to %u MHz\n", card->cores, card->boost_mhz);
    if (card->tensor_mhz > 0)
        gp_strbuf_addf(sb, "  tensor cores      rates below are at %u MHz\n", card->tensor_mhz);
    if (card->pcie_lanes > 0)
        gp_strbuf_addf(sb, "  PCIe              generation %u, %u lanes\n", card->pcie_gen,
                       card->pcie_lanes);
    if (card->nvlink_gbs > 0)
        gp_strbuf_addf(sb, "  NVLink            %g GB/s\n", card->nvlink_gbs);
    gp_strbuf_adds(sb, "  runs              ");
    if (arch)
        add_span(sb, arch);
    gp_strbuf_adds(sb, "\n\n");
    add_precisions(sb, card);
    if (card->note[0] || has_sources)
        gp_strbuf_addc(sb, '\n');
    if (card->note[0])
        gp_strbuf_addf(sb, "  note    %s\n", card->note);
    if (has_sources)
        gp_strbuf_addf(sb, "  source  %s\n", card->source);
}

void gp_cards_add_text(struct gp_strbuf *sb, const struct gp_card *const *cards, size_t count,
                       bool has_sources)
{
    if (count == 1)
        add_card(sb, cards[0], has_sources);
    else
        add_list(sb, cards, count, has_sources);
    gp_doctor_add_tables(sb);
}

/* ---- JSON ---- */

static json_t *number_or_null(unsigned number)
{
    return number > 0 ? json_integer(number) : json_null();
}

static json_t *rate_or_null(double rate)
{
    return rate > 0 ? json_real(rate) : json_null();
}

static json_t *card_of(const struct gp_card *card)
{
    const struct gp_arch *arch = gp_arch_find(card->compute_capability);
    json_t *rates = json_object();
    for (size_t i = 0; i < GP_ARRAY_LEN(precisions); i++) {
        (void)json_object_set_new(rates, precisions[i].member,
                                  rate_or_null(rate_of(card, &precisions[i])));
    }
    json_t *capability =
        json_sprintf("%u.%u", card->compute_capability / 10, card->compute_capability % 10);
    return json_pack("{s:s, s:s, s:o, s:i, s:s, s:i, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:s}",
                     "model", card->model, "architecture", arch ? arch->architecture : "",
                     "compute_capability", capability, "memory_gb", (int)card->memory_gb,
                     "memory_type", card->memory_type, "bandwidth_gbs", (int)card->bandwidth_gbs,
                     "tflops", rates, "tdp_w", (int)card->tdp_w, "pcie_gen",
                     number_or_null(card->pcie_gen), "pcie_lanes", number_or_null(card->pcie_lanes),
                     "nvlink_gbs", rate_or_null(card->nvlink_gbs), "first_cuda",
                     gp_doctor_json_text_or_null(arch ? arch->first_cuda : ""), "last_cuda",
                     gp_doctor_json_text_or_null(arch ? arch->last_cuda : ""), "note",
                     gp_doctor_json_text_or_null(card->note), "source", card->source);
}

void gp_cards_add_json(struct gp_strbuf *sb, const struct gp_card *const *cards, size_t count)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(rows, card_of(cards[i]));
    gp_json_add(sb,
                json_pack("{s:s, s:o, s:o}", "schema", "gpulse.models/1", "tables",
                          gp_doctor_json_tables(), "models", rows),
                2);
    gp_strbuf_addc(sb, '\n');
}
