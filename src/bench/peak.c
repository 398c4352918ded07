#include "bench/peak.h"

#include "doctor/cards.h"

#include <string.h>

/* Whether a list, separated by ;, contains this name. */
static bool has_name(const char *names, const char *name)
{
    size_t wanted = strlen(name);
    while (*names) {
        size_t length = strcspn(names, ";");
        if (length == wanted && memcmp(names, name, length) == 0)
            return true;
        names += length + (names[length] == ';');
    }
    return false;
}

const struct gp_card *gp_bench_card_of(const char *name)
{
    for (size_t i = 0; i < gp_card_count; i++)
        if (has_name(gp_cards[i].names, name))
            return &gp_cards[i];
    return NULL;
}

double gp_bench_peak_of(const struct gp_card *card, enum gp_bench_precision precision)
{
    if (!card)
        return 0;
    switch (precision) {
    case GP_BENCH_FP32:
        return card->fp32;
    case GP_BENCH_TF32:
        return card->tf32;
    case GP_BENCH_FP16: /* gemm adds in FP32 */
        return card->fp16_fp32 > 0 ? card->fp16_fp32 : card->fp16;
    case GP_BENCH_BF16:
        return card->bf16;
    case GP_BENCH_FP8:
        return card->fp8;
    case GP_BENCH_INT8:
        return card->int8;
    case GP_BENCH_FP64: /* not in the table */
    case GP_BENCH_PRECISION__COUNT:
        break;
    }
    return 0;
}

double gp_bench_bandwidth_of(const struct gp_card *card)
{
    return card ? card->bandwidth_gbs : 0;
}

void gp_bench_set_peak(const struct gp_bench *bench, size_t i, double peak,
                       struct gp_bench_result *result)
{
    const struct gp_card *card = bench->cards[i];
    result->peak = peak;
    if (card && card->boost_mhz && result->conditions.clock_mhz > 0)
        result->peak_at_clock = peak * result->conditions.clock_mhz / card->boost_mhz;
}
