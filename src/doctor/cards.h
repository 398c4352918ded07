/* Models of cards: found by their names, and what they compute with. Pure. */
#ifndef GP_DOCTOR_CARDS_H
#define GP_DOCTOR_CARDS_H

#include "doctor/tables.h"

/* The cards in whose names all words of a query stand, in any case ("rtx 4090", "rtx4090", "H100");
 * if one is called exactly this, with or without the maker's words before it, only that one. Stores
 * `max` of them at most, and returns how many there are. */
size_t gp_cards_find(const char *query, const struct gp_card **ret, size_t max);

/* A card's name without the words that most have before it: "RTX 4090" of "GeForce RTX 4090". */
const char *gp_card_short_name(const struct gp_card *card);

/* X(member, name, first, note): kinds of numbers, the first compute capability whose hardware has
 * them, and what is to be said of them. */
#define GP_PRECISIONS(X)                                                                           \
    X(fp32, "FP32", 10, "")                                                                        \
    X(tf32, "TF32", 80, "")                                                                        \
    X(fp16, "FP16", 53, "")                                                                        \
    X(fp16_fp32, "FP16, FP32 sums", 70, "as PyTorch multiplies matrices")                          \
    X(bf16, "BF16", 80, "")                                                                        \
    X(fp8, "FP8", 89, "")                                                                          \
    X(int8, "INT8", 61, "TOP/s")                                                                   \
    X(fp4, "FP4", 100, "")

struct gp_precision {
    const char *member; /* of struct gp_card, and in JSON */
    const char *name;
    size_t offset; /* of its rate in struct gp_card */
    unsigned first_capability;
    const char *note;
};
extern const struct gp_precision gp_precisions[];
extern const size_t gp_precision_count;

/* TFLOP/s without sparsity; 0: none, or not known. */
double gp_card_rate(const struct gp_card *card, const struct gp_precision *precision);

#endif
