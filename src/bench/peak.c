#include "bench/peak.h"

#include "base/parse.h"
#include "doctor/advise/cards.h"

#include <string.h>

/* Whether a list, separated by ;, contains this name. */
static bool has_name(const char *names, const char *name)
{
    char word[128];
    while (gp_parse_word(&names, ';', word, sizeof(word)))
        if (strcmp(word, name) == 0)
            return true;
    return false;
}

const struct gp_card *gp_bench_card_of(const char *name)
{
    for (size_t i = 0; i < gp_card_count; i++)
        if (has_name(gp_cards[i].names, name))
            return &gp_cards[i];
    return NULL;
}

/* GeForce cards add in FP32 at half of the rate that their data sheets state for FP16 and FP8. */
static double part_of_fp32_sums(const struct gp_card *card)
{
    return card->fp16 > 0 && card->fp16_fp32 > 0 ? card->fp16_fp32 / card->fp16 : 1;
}

double gp_bench_peak_of(const struct gp_card *card, enum gp_bench_precision precision)
{
    if (!card)
        return 0;
    const double part = part_of_fp32_sums(card);
    const double rates[GP_BENCH_PRECISION__COUNT] = {
        [GP_BENCH_FP64] = 0, /* not in the table */
        [GP_BENCH_FP32] = card->fp32,
        [GP_BENCH_TF32] = card->tf32,
        [GP_BENCH_FP16] = part * card->fp16,
        [GP_BENCH_BF16] = card->bf16,
        [GP_BENCH_FP8] = part * card->fp8,
        [GP_BENCH_INT8] = card->int8,
    };
    return rates[precision];
}

double gp_bench_bandwidth_of(const struct gp_card *card)
{
    return card ? card->bandwidth_gbs : 0;
}

double gp_bench_peak_at(const struct gp_card *card, enum gp_bench_precision precision,
                        double clock_mhz)
{
    if (!card || clock_mhz <= 0)
        return 0;
    const bool is_tensor = precision != GP_BENCH_FP32 && card->tensor_mhz > 0;
    const unsigned mhz = is_tensor ? card->tensor_mhz : card->boost_mhz;
    return mhz ? gp_bench_peak_of(card, precision) * clock_mhz / mhz : 0;
}
