#include "doctor/remedy.h"

const struct gp_remedy_row gp_remedies[GP_REMEDY__COUNT] = {
#define REMEDY(name, words, ...) [GP_REMEDY_##name] = {#name, words, {__VA_ARGS__}},
#include "doctor/remedy.def"
#undef REMEDY
};
