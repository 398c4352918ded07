/* gpulse doctor gpus: GPU models, and their capabilities. */
#include "cmd/app.h"
#include "cmd/doctor_verbs.h"
#include "doctor/report.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "doctor/cards.h"
#include "doctor/compat.h"
#include "out/json.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MODEL_COLUMNS = 34, MOST_CARDS = 512, LABEL = 18 };

/* ---- the list ---- */

static void add_padded(struct gp_strbuf *sb, const char *text, size_t columns)
{
    size_t width = gp_utf8_width(text);
    gp_utf8_add_safe(sb, text, strlen(text), columns);
    gp_strbuf_fill(sb, ' ', width < columns ? columns - width : 0);
}

static void add_rate(struct gp_strbuf *sb, double rate)
{
    if (rate > 0)
        gp_strbuf_addf(sb, " %5.*f", rate < 100 ? 1 : 0, rate);
    else
        gp_strbuf_adds(sb, "     -");
}

static void add_row(struct gp_strbuf *sb, const struct gp_card *card, bool has_sources)
{
    add_padded(sb, card->model, MODEL_COLUMNS);
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

static void add_label(struct gp_strbuf *sb, const char *label)
{
    gp_strbuf_addf(sb, "  %-*s", LABEL, label);
}

static void add_precisions(struct gp_strbuf *sb, const struct gp_card *card)
{
    for (size_t i = 0; i < gp_precision_count; i++) {
        const struct gp_precision *p = &gp_precisions[i];
        double rate = gp_card_rate(card, p);
        bool is_whole = strcmp(p->note, "TOP/s") == 0;
        add_label(sb, p->name);
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
    add_label(sb, "architecture");
    gp_strbuf_addf(sb, "%s, compute capability %u.%u\n", arch ? arch->architecture : "unknown",
                   card->compute_capability / 10, card->compute_capability % 10);
    add_label(sb, "memory");
    gp_strbuf_addf(sb, "%u GB %s, %u GB/s\n", card->memory_gb, card->memory_type,
                   card->bandwidth_gbs);
    add_label(sb, "power");
    gp_strbuf_addf(sb, "%u W\n", card->tdp_w);
    if (card->cores > 0) {
        add_label(sb, "cores");
        gp_strbuf_addf(sb, "%u, up to %u MHz\n", card->cores, card->boost_mhz);
    }
    if (card->pcie_lanes > 0) {
        add_label(sb, "PCIe");
        gp_strbuf_addf(sb, "generation %u, %u lanes\n", card->pcie_gen, card->pcie_lanes);
    }
    if (card->nvlink_gbs > 0) {
        add_label(sb, "NVLink");
        gp_strbuf_addf(sb, "%g GB/s\n", card->nvlink_gbs);
    }
    add_label(sb, "runs");
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
    for (size_t i = 0; i < gp_precision_count; i++) {
        (void)json_object_set_new(rates, gp_precisions[i].member,
                                  rate_or_null(gp_card_rate(card, &gp_precisions[i])));
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

static void add_json(struct gp_strbuf *sb, const struct gp_card *const *cards, size_t count)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(rows, card_of(cards[i]));
    gp_json_add(sb, json_pack("{s:s, s:o}", "schema", "gpulse.models/1", "models", rows), 2);
    gp_strbuf_addc(sb, '\n');
}

/* ---- the verb ---- */

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < gp_card_count ? gp_card_short_name(&gp_cards[i]) : NULL;
}

int gp_doctor_gpus(const struct gp_doctor_options *o, int count, char **words, struct gp_err *err)
{
    const struct gp_card *cards[MOST_CARDS];
    char query[256] = "";
    for (int i = 0; i < count; i++) {
        size_t used = strlen(query);
        (void)snprintf(query + used, sizeof(query) - used, "%s%s", i > 0 ? " " : "", words[i]);
    }
    size_t found = gp_cards_find(query, cards, MOST_CARDS);
    if (found == 0)
        return gp_err_set(err, GP_EUSAGE,
                          "unknown GPU model '%.60s'%s; gpulse doctor gpus lists all models", query,
                          gp_cli_hint(query, name_at, NULL).text);
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);
    found = found < MOST_CARDS ? found : MOST_CARDS;
    if (o->json)
        add_json(&sb, cards, found);
    else if (found == 1)
        add_card(&sb, cards[0], o->sources);
    else
        add_list(&sb, cards, found, o->sources);
    int r = gp_app_write(STDOUT_FILENO, &sb, err);
    gp_strbuf_fini(&sb);
    return r;
}
