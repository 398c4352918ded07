/* GPU models: lookup by name, and their compute rates. Pure functions. */
#ifndef GP_DOCTOR_CARDS_H
#define GP_DOCTOR_CARDS_H

#include "doctor/tables.h"

/* The cards whose names contain all words of a query, ignoring case ("rtx 4090", "rtx4090",
 * "H100"). An exact match, with or without the brand, excludes the others. Stores at most `max` of
 * them, and returns how many there are. */
size_t gp_cards_find(const char *query, const struct gp_card **ret, size_t max);

/* A card's name without the common prefix: "RTX 4090" of "GeForce RTX 4090". */
const char *gp_card_short_name(const struct gp_card *card);

/* X(member, name, first, note): number formats, the first compute capability with hardware support,
 * and a remark. */
#define GP_PRECISIONS(X)                                                                           \
    X(fp32, "FP32", 10, "")                                                                        \
    X(tf32, "TF32", 80, "")                                                                        \
    X(fp16, "FP16", 53, "")                                                                        \
    X(fp16_fp32, "FP16, FP32 sums", 70, "with FP32 accumulation, as in PyTorch")                   \
    X(bf16, "BF16", 80, "")                                                                        \
    X(fp8, "FP8", 89, "")                                                                          \
    X(int8, "INT8", 61, "TOP/s")                                                                   \
    X(fp4, "FP4", 100, "")

struct gp_precision {
    const char *member; /* in struct gp_card, and in JSON */
    const char *name;
    size_t offset; /* of its rate in struct gp_card */
    unsigned first_capability;
    const char *note;
};
extern const struct gp_precision gp_precisions[];
extern const size_t gp_precision_count;

/* TFLOP/s without sparsity; 0: none, or unknown. */
double gp_card_rate(const struct gp_card *card, const struct gp_precision *precision);

#endif
