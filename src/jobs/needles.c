#include "jobs/needles.h"

#include <string.h>

static uint32_t word_at(const char *text)
{
    uint32_t word;
    memcpy(&word, text, sizeof(word));
    return word;
}

/* Below GP_NEEDLE_FILTER_BITS. */
static uint32_t hash_of(uint32_t word)
{
    return (word * UINT32_C(0x9e3779b1)) >> 16;
}

static void add_word(struct gp_needles *needles, size_t needle, size_t offset)
{
    uint16_t at = (uint16_t)(needle * GP_NEEDLE_STRIDE + offset);
    uint32_t word = word_at(needles->texts[needle] + offset);
    uint32_t hash = hash_of(word);
    uint16_t *chain = &needles->chains[hash % GP_NEEDLE_CHAINS];
    needles->filter[hash / 64] |= UINT64_C(1) << (hash % 64);
    needles->words[at] = (struct gp_needle_word){
        .word = word, .next = *chain, .needle = (uint8_t)needle, .offset = (uint8_t)offset};
    *chain = (uint16_t)(at + 1);
}

void gp_needles_add(struct gp_needles *needles, const char *text)
{
    needles->texts[needles->count] = text;
    needles->lengths[needles->count] = strlen(text);
    for (size_t offset = 0; offset < GP_NEEDLE_STRIDE; offset++)
        add_word(needles, needles->count, offset);
    needles->count++;
}

/* The next position, from `at` on, that may be a word of a needle; `size` or slightly less:
 * none. */
static size_t next_word(const struct gp_needles *needles, const char *text, size_t size, size_t at)
{
    for (; at + GP_NEEDLE_STRIDE <= size; at += GP_NEEDLE_STRIDE) {
        uint32_t hash = hash_of(word_at(text + at));
        if ((needles->filter[hash / 64] >> (hash % 64)) & 1)
            break;
    }
    return at;
}

static bool stands_there(const struct gp_needles *needles, const struct gp_needle_word *word,
                         const char *text, size_t size, size_t at)
{
    size_t length = needles->lengths[word->needle];
    return word->word == word_at(text + at) && word->offset <= at &&
           length <= size - (at - word->offset) &&
           memcmp(text + at - word->offset, needles->texts[word->needle], length) == 0;
}

static const struct gp_needle_word *word_by_link(const struct gp_needles *needles, uint16_t link)
{
    return link ? &needles->words[link - 1] : NULL;
}

static const struct gp_needle_word *chain_of(const struct gp_needles *needles, const char *text)
{
    uint32_t hash = hash_of(word_at(text));
    return word_by_link(needles, needles->chains[hash % GP_NEEDLE_CHAINS]);
}

/* Collects all needles or, without a set, stops at the first one and returns it. */
static const char *search(const struct gp_needles *needles, const char *text, size_t size,
                          struct gp_needle_set *set)
{
    for (size_t at = 0; (at = next_word(needles, text, size, at)) + GP_NEEDLE_STRIDE <= size;
         at += GP_NEEDLE_STRIDE) {
        const struct gp_needle_word *word = chain_of(needles, text + at);
        for (; word; word = word_by_link(needles, word->next)) {
            if (!stands_there(needles, word, text, size, at))
                continue;
            if (!set)
                return text + at - word->offset;
            set->bits[word->needle / 64] |= UINT64_C(1) << (word->needle % 64);
        }
    }
    return NULL;
}

const char *gp_needles_find(const struct gp_needles *needles, const char *text, size_t size)
{
    return search(needles, text, size, NULL);
}

struct gp_needle_set gp_needles_in(const struct gp_needles *needles, const char *text, size_t size)
{
    struct gp_needle_set set = {{0}};
    (void)search(needles, text, size, &set);
    return set;
}
