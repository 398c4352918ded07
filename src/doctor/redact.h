/* Takes out of a text what tells one machine, board or person from another: UUIDs, serial numbers,
 * network addresses, hosts of URLs, home folders, and words that are named; what is, or looks like,
 * a password or a token; and with a list of known words every other word. */
#ifndef GP_DOCTOR_REDACT_H
#define GP_DOCTOR_REDACT_H

#include "base/util.h"

struct gp_strbuf;

enum {
    GP_REDACT_WORDS = 4096,
    GP_REDACT_WORD_SIZE = 96,
    GP_REDACT_UUIDS = 256,
    GP_REDACT_RULES = 11
};

struct gp_redactor {
    struct {
        char word[GP_REDACT_WORD_SIZE];
        const char *instead;
        bool has_tail; /* a name of a host, whose domain goes with it */
    } words[GP_REDACT_WORDS];
    size_t word_count;
    char uuids[GP_REDACT_UUIDS][36]; /* lower case; each is shown as its number */
    size_t uuid_count;
    /* How many of the n bytes at `text` are harmless (gp_words_known); NULL: all words are. */
    size_t (*known)(const char *text, size_t n, bool is_fraction);
    size_t counts[GP_REDACT_RULES + 1]; /* taken out, by kind */
};

/* What is counted as number `rule`, "serial numbers"; GP_REDACT_RULES: words that are not known. */
const char *gp_redact_kind(size_t rule);

/* A name to be hidden wherever it stands as a word, or before a _, in any case. What is too short
 * or too common to be a name (nvidia, root, localhost, …) is left alone, and so is what has no
 * room: hosts and serial numbers go first. */
void gp_redact_host(struct gp_redactor *redactor, const char *name);
void gp_redact_user(struct gp_redactor *redactor, const char *name);
void gp_redact_serial(struct gp_redactor *redactor, const char *number);
void gp_redact_folder(struct gp_redactor *redactor, const char *name);

/* Appends the text without them. The same UUID becomes the same one again. */
void gp_redact_add(struct gp_redactor *redactor, struct gp_strbuf *to, const char *text,
                   size_t length);

#endif
