/* Removes from a text what identifies a machine, board or person: UUIDs, serial numbers, network
 * addresses, hosts of URLs, home directories, and given names; whatever is or looks like a password
 * or a token; and, with a list of known words, every other word. */
#ifndef GP_DOCTOR_BUNDLE_REDACT_H
#define GP_DOCTOR_BUNDLE_REDACT_H

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
        bool has_tail; /* a host name, whose domain is removed too */
    } words[GP_REDACT_WORDS];
    size_t word_count;
    char uuids[GP_REDACT_UUIDS][36]; /* lower case; each is shown as its number */
    size_t uuid_count;
    /* How many of the n bytes at `text` are harmless (gp_words_known); NULL: all words are. */
    size_t (*known)(const char *text, size_t n, bool is_fraction);
    size_t counts[GP_REDACT_RULES + 1]; /* removed, by kind */
};

/* The kind counted by rule number `rule`, "serial numbers"; GP_REDACT_RULES: unknown words. */
const char *gp_redact_kind(size_t rule);

/* A name to hide wherever it occurs as a word, or before a _, ignoring case. Names too short or too
 * common to identify anything (nvidia, root, localhost, …) are ignored, as are names beyond the
 * capacity: add hosts and serial numbers first. */
void gp_redact_host(struct gp_redactor *redactor, const char *name);
void gp_redact_user(struct gp_redactor *redactor, const char *name);
void gp_redact_serial(struct gp_redactor *redactor, const char *number);
void gp_redact_folder(struct gp_redactor *redactor, const char *name);

/* Appends the text without them. The same UUID always gets the same replacement. */
void gp_redact_add(struct gp_redactor *redactor, struct gp_strbuf *to, const char *text,
                   size_t length);

#endif
