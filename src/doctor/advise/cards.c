#include "doctor/advise/cards.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* A name without the common prefix: "RTX 4090" of "GeForce RTX 4090". */
static const char *short_name(const struct gp_card *card)
{
    static const char *const makers[] = {"NVIDIA ", "GeForce ", "Tesla "};
    for (size_t i = 0; i < GP_ARRAY_LEN(makers); i++)
        if (strncmp(card->model, makers[i], strlen(makers[i])) == 0)
            return card->model + strlen(makers[i]);
    return card->model;
}

/* Whether a text begins with this word of n bytes, ignoring case and the spaces in the text. */
static bool begins_with(const char *text, const char *word, size_t n)
{
    for (; n > 0 && *text; text++) {
        if (*text == ' ')
            continue;
        if (tolower((unsigned char)*text) != tolower((unsigned char)*word))
            return false;
        word++;
        n--;
    }
    return n == 0;
}

static bool has_part(const char *text, const char *word, size_t n)
{
    for (; *text; text++)
        if (*text != ' ' && begins_with(text, word, n))
            return true;
    return false;
}

static bool has_all_words(const struct gp_card *card, const char *query)
{
    static const char between[] = " -"; /* "V100-32GB" */
    for (const char *p = query + strspn(query, between); *p; p += strspn(p, between)) {
        size_t n = strcspn(p, between);
        if (!has_part(card->model, p, n) && !has_part(card->names, p, n))
            return false;
        p += n;
    }
    return true;
}

/* Whether it is exactly a name that the driver reports. */
static bool has_name(const struct gp_card *card, const char *query)
{
    size_t length = strlen(query);
    for (const char *p = card->names; *p;) {
        size_t n = strcspn(p, ";");
        if (n == length && strncasecmp(p, query, n) == 0)
            return true;
        p += n + (p[n] == ';');
    }
    return false;
}

size_t gp_cards_find(const char *query, const struct gp_card **ret, size_t max)
{
    size_t count = 0, exact = 0;
    for (size_t i = 0; i < gp_card_count; i++) {
        const struct gp_card *card = &gp_cards[i];
        bool is_exact = strcasecmp(card->model, query) == 0 ||
                        strcasecmp(short_name(card), query) == 0 || has_name(card, query);
        if (is_exact && exact++ == 0)
            count = 0;
        if (!is_exact && (exact > 0 || !has_all_words(card, query)))
            continue;
        if (count < max)
            ret[count] = card;
        count++;
    }
    return count;
}

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < gp_card_count ? short_name(&gp_cards[i]) : NULL;
}

struct gp_cli_hint gp_cards_hint(const char *query)
{
    return gp_cli_hint(query, name_at, NULL);
}
