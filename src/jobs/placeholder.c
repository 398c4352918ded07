#include "jobs/placeholder.h"

#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

bool gp_step_is_name(const char *name)
{
    size_t n = strspn(name, NAME_CHARACTERS);
    return n > 0 && n < GP_STEP_NAME_SIZE && name[n] == '\0' && *name != '.' && *name != '-';
}

/* The length of the placeholder that starts at this brace; 0: it is none. */
static size_t parse(const char *at, struct gp_placeholder *ret)
{
    static const char word[] = "{batch";
    const char *p = at + strlen(word);
    ret->name[0] = '\0';
    if (strncmp(at, word, strlen(word)) != 0)
        return 0;
    if (*p == ':') {
        size_t n = strspn(++p, NAME_CHARACTERS);
        if (n >= sizeof(ret->name))
            return 0;
        (void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)n, p);
        if (!gp_step_is_name(ret->name))
            return 0;
        p += n;
    }
    return *p == '}' ? (size_t)(p + 1 - at) : 0;
}

bool gp_placeholder_next(const char *text, struct gp_placeholder *ret)
{
    for (const char *at = text; (at = strchr(at, '{')); at++) {
        ret->at = at;
        ret->length = at > text && at[-1] == '$' ? 0 : parse(at, ret);
        if (ret->length > 0)
            return true;
    }
    return false;
}

void gp_placeholder_fill(struct gp_strbuf *sb, const char *text,
                         uint64_t (*batch_of)(void *context, const char *name), void *context)
{
    struct gp_placeholder p;
    for (; gp_placeholder_next(text, &p); text = p.at + p.length) {
        gp_strbuf_add(sb, text, (size_t)(p.at - text));
        gp_strbuf_addf(sb, "%llu", (unsigned long long)batch_of(context, p.name));
    }
    gp_strbuf_adds(sb, text);
}
