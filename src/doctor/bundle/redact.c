#include "doctor/bundle/redact.h"

#include "base/strbuf.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* No name or address is longer, so a long line costs no more than many short ones. */
enum { LOOK_MOST = 512 };

/* A text, and the current position. */
struct cursor {
    const char *text;
    size_t length, at;
    size_t looked_at; /* where the last piece ended: a new word begins */
};

static bool is_word_char(int c)
{
    return isalnum(c) || c == '_';
}

static int char_at(const struct cursor *c, size_t at)
{
    return at < c->length ? (unsigned char)c->text[at] : '\0';
}

static bool is_at_word(const struct cursor *c)
{
    bool follows = c->at > 0 && is_word_char(char_at(c, c->at - 1));
    return !follows || (c->at == c->looked_at && is_word_char(char_at(c, c->at)));
}

/* How many characters of this kind follow. */
static size_t whole_span(const struct cursor *c, size_t at, bool (*is_kind)(int))
{
    size_t n = 0;
    while (at + n < c->length && is_kind(char_at(c, at + n)))
        n++;
    return n;
}

/* Likewise, but at most LOOK_MOST. */
static size_t span(const struct cursor *c, size_t at, bool (*is_kind)(int))
{
    const struct cursor near = {.text = c->text,
                                .length = c->length - at < LOOK_MOST ? c->length : at + LOOK_MOST};
    return whole_span(&near, at, is_kind);
}

static bool is_dashed_char(int c)
{
    return is_word_char(c) || c == '-';
}

/* Where the word that ends here begins. */
static size_t word_start(const struct cursor *c, size_t end)
{
    size_t start = end;
    while (start > 0 && end - start < LOOK_MOST && is_dashed_char(char_at(c, start - 1)))
        start--;
    return start;
}

/* ---- words ---- */

static void add_word(struct gp_redactor *r, const char *word, const char *instead, bool has_tail)
{
    size_t n = strlen(word);
    if (n < 2 || n >= GP_REDACT_WORD_SIZE || r->word_count == GP_REDACT_WORDS)
        return;
    for (size_t i = 0; i < r->word_count; i++)
        if (strcmp(r->words[i].word, word) == 0)
            return;
    memcpy(r->words[r->word_count].word, word, n + 1);
    r->words[r->word_count].instead = instead;
    r->words[r->word_count++].has_tail = has_tail;
}

static bool is_common(const char *name)
{
    static const char *const common[] = {
        "root",   "nobody", "user",   "admin",  "nvidia",    "cuda",   "gpu",    "linux",
        "debian", "ubuntu", "fedora", "arch",   "opensuse",  "rocky",  "centos", "docker",
        "kernel", "amd",    "intel",  "python", "localhost", "conda",  "driver", "memory",
        "host",   "system", "home",   "none",   "unknown",   "default"};
    for (size_t i = 0; i < GP_ARRAY_LEN(common); i++)
        if (strcasecmp(common[i], name) == 0)
            return true;
    return false;
}

void gp_redact_host(struct gp_redactor *redactor, const char *name)
{
    char first[GP_REDACT_WORD_SIZE]; /* "gpu01" of "gpu01.example.org" */
    (void)snprintf(first, sizeof(first), "%.*s", (int)strcspn(name, "."), name);
    if (!is_common(first))
        add_word(redactor, first, "HOST", true);
}

void gp_redact_user(struct gp_redactor *redactor, const char *name)
{
    if (!is_common(name))
        add_word(redactor, name, "USER", false);
}

void gp_redact_serial(struct gp_redactor *redactor, const char *number)
{
    if (strspn(number, "0") != strlen(number))
        add_word(redactor, number, "SERIAL", false);
}

void gp_redact_folder(struct gp_redactor *redactor, const char *name)
{
    enum { LEAST = 3 }; /* a shorter one occurs in too many words */
    if (strlen(name) >= LEAST && !is_common(name))
        add_word(redactor, name, "DIR", false);
}

/* Each function checks whether something begins here, appends its replacement, and returns its
 * length; 0: nothing. */
static size_t take_word(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    for (size_t i = 0; i < r->word_count; i++) {
        size_t n = strlen(r->words[i].word);
        if (c->at + n > c->length || strncasecmp(c->text + c->at, r->words[i].word, n) != 0 ||
            isalnum(char_at(c, c->at + n)))
            continue;
        while (r->words[i].has_tail && char_at(c, c->at + n) == '.' &&
               isalpha(char_at(c, c->at + n + 1)))
            n += 1 + span(c, c->at + n + 1, is_word_char);
        gp_strbuf_adds(to, r->words[i].instead);
        return n;
    }
    return 0;
}

/* ---- serial numbers ---- */

static bool is_hex(int c)
{
    return isxdigit(c);
}

/* The n-th distinct UUID becomes 00000000-0000-0000-0000-00000000000n. */
static size_t take_uuid(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    char uuid[36] = {0};
    size_t n = 0, i;
    for (size_t g = 0; g < GP_ARRAY_LEN(groups); g++) {
        if (span(c, c->at + n, is_hex) != groups[g] ||
            (g < 4 && char_at(c, c->at + n + groups[g]) != '-'))
            return 0;
        n += groups[g] + (g < 4);
    }
    for (i = 0; i < n; i++)
        uuid[i] = (char)tolower(char_at(c, c->at + i));
    for (i = 0; i < r->uuid_count; i++)
        if (memcmp(r->uuids[i], uuid, n) == 0)
            break;
    if (i == r->uuid_count && i < GP_REDACT_UUIDS)
        memcpy(r->uuids[r->uuid_count++], uuid, n);
    gp_strbuf_addf(to, "00000000-0000-0000-0000-%012zu", i + 1);
    return n;
}

static bool is_serial_char(int c)
{
    return isalnum(c) || c == '-';
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '"' || c == '\'';
}

/* "Serial Number: 1324523007214", "serial=…", "\"serial\": \"…\"", "serial number is …": the
 * number, recognized by the words before it. */
static size_t take_serial(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    static const char word[] = "serial", is[] = " is";
    enum { LEAST = 4, FAR = 24, WORD = sizeof(word) - 1, IS = sizeof(is) - 1 };
    size_t n = span(c, c->at, is_serial_char), at = c->at;
    (void)r;
    if (n < LEAST)
        return 0;
    while (at > 0 && c->at - at < FAR && is_blank(char_at(c, at - 1)))
        at--;
    if (at > 0 && (char_at(c, at - 1) == ':' || char_at(c, at - 1) == '='))
        at--;
    else if (at >= IS && at < c->at && memcmp(c->text + at - IS, is, IS) == 0)
        at -= IS;
    else
        return 0;
    for (size_t i = at; i > 0 && at - i < FAR && !strchr("\n:=", char_at(c, i - 1)); i--)
        if (at - i + 1 >= WORD && strncasecmp(c->text + i - 1, word, WORD) == 0) {
            gp_strbuf_adds(to, "SERIAL");
            return whole_span(c, c->at, is_serial_char);
        }
    return 0;
}

/* ---- addresses ---- */

static bool is_hex_or_colon(int c)
{
    return isxdigit(c) || c == ':';
}

static bool is_digit_or_dot(int c)
{
    return isdigit(c) || c == '.';
}

/* MAC, IPv6, the GUID of an InfiniBand port: more colons than in a PCI address or a time. */
static size_t take_colons(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    enum { LONGEST = 45 }; /* IPv6 with an IPv4 address in it */
    size_t n = 0, colons = 0;
    bool has_gap = false, has_digits = false;
    (void)r;
    while (n <= LONGEST && is_hex_or_colon(char_at(c, c->at + n)))
        n++;
    if (n > LONGEST)
        return 0;
    for (size_t i = 0; i < n; i++) {
        bool is_colon = char_at(c, c->at + i) == ':';
        colons += is_colon;
        has_gap = has_gap || (is_colon && i > 0 && char_at(c, c->at + i - 1) == ':');
        has_digits = has_digits || !is_colon;
    }
    if (!has_digits || (colons < 3 && !has_gap) || is_word_char(char_at(c, c->at + n)))
        return 0;
    if (char_at(c, c->at + n) == '.') /* "::ffff:10.1.2.3" ends as IPv4 does */
        n += span(c, c->at + n, is_digit_or_dot);
    gp_strbuf_adds(to, "ADDRESS");
    return n;
}

static bool is_between(int c)
{
    return c == ' ' || c == ':' || c == '"' || c == '\'' || c == '(';
}

/* Library versions have four numbers too; the words before one identify it as a version. */
static bool is_version(const struct cursor *c)
{
    static const char *const words[] = {"version", "cu",  "lib",    "nvidia", "nvcc",   "torch",
                                        "tensor",  "jax", "nccl",   "drive",  "toolki", "onnx",
                                        "rocm",    "hip", "python", "linux",  "kernel"};
    size_t end = c->at, start;
    int before = end > 0 ? char_at(c, end - 1) : ' ';
    bool is_assigned = before == '=';
    if (before == '-' || before == '+' || before == '~' ||
        (is_assigned && end > 1 && char_at(c, end - 2) == '='))
        return true;
    if (before == '/')
        return false;
    end -= is_assigned;
    while (end > 0 && is_between(char_at(c, end - 1)))
        end--;
    start = word_start(c, end);
    if (is_assigned) /* the name of a variable: NCCL_VERSION, and not NCCL_COMM_ID */
        return end - start >= 7 && strncasecmp(c->text + end - 7, "version", 7) == 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(words); i++)
        if (end - start >= strlen(words[i]) &&
            strncasecmp(c->text + start, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

static size_t take_ipv4(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    size_t n = 0;
    (void)r;
    for (size_t part = 0; part < 4; part++) {
        unsigned value = 0;
        size_t digits = 0;
        while (digits < 4 && isdigit(char_at(c, c->at + n + digits)))
            value = value * 10 + (unsigned)(char_at(c, c->at + n + digits++) - '0');
        n += digits;
        if (digits == 0 || value > 255 || (part < 3 && char_at(c, c->at + n++) != '.'))
            return 0;
    }
    int next = char_at(c, c->at + n);
    int before = c->at > 0 ? char_at(c, c->at - 1) : ' ';
    bool goes_on = is_word_char(next) || next == '+' ||
                   (strchr(".-", next) && isdigit(char_at(c, c->at + n + 1)));
    /* a file of settings may be called by an address, but not by a version of four parts */
    const char *after = c->text + c->at + n;
    bool is_file = c->length - c->at - n >= 5 && memcmp(after, ".conf", 5) == 0;
    if (goes_on || before == '.' || isalnum(before) || (!is_file && is_version(c)))
        return 0;
    gp_strbuf_adds(to, "ADDRESS");
    return n;
}

/* ---- home directories ---- */

static bool is_name_char(int c)
{
    return is_word_char(c) || c == '-' || c == '.' || c == '@' || c >= 0x80;
}

/* Whether a directory name continues after a space: a '/' then follows before the end of the line.
 */
static bool has_more_words(const struct cursor *c, size_t at)
{
    enum { WORDS_MOST = 4 };
    for (int i = 0; i < WORDS_MOST && char_at(c, at) == ' '; i++) {
        size_t n = span(c, at + 1, is_name_char);
        if (n > 0 && char_at(c, at + 1 + n) == '/')
            return true;
        at += 1 + n;
    }
    return false;
}

static size_t take_home(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    static const char *const homes[] = {"/home/", "/Users/"};
    (void)r;
    for (size_t i = 0; i < GP_ARRAY_LEN(homes); i++) {
        size_t n = strlen(homes[i]);
        if (c->at + n >= c->length || memcmp(c->text + c->at, homes[i], n) != 0)
            continue;
        size_t name = span(c, c->at + n, is_name_char);
        if (name == 0)
            return 0;
        while (i == 1 && has_more_words(c, c->at + n + name)) /* "/mnt/c/Users/First Last/…" */
            name += 1 + span(c, c->at + n + name + 1, is_name_char);
        gp_strbuf_adds(to, homes[i]);
        gp_strbuf_adds(to, "USER");
        return n + name;
    }
    return 0;
}

/* "user:password@" of an address: the text between :// and @. */
static size_t take_login(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    static const char mark[] = "://";
    enum { MARK = sizeof(mark) - 1, LONGEST = 256 };
    (void)r;
    if (c->at < MARK || memcmp(c->text + c->at - MARK, mark, MARK) != 0)
        return 0;
    for (size_t n = 0; n < LONGEST; n++) {
        int sign = char_at(c, c->at + n);
        if (sign == '@' && n > 0) {
            gp_strbuf_adds(to, "LOGIN");
            return n;
        }
        if (sign <= ' ' || sign == '/' || sign == '"' || sign == '\'')
            return 0;
    }
    return 0;
}

static bool is_mail_char(int c)
{
    return is_dashed_char(c) || c == '.' || c == '+';
}

/* "name@example.org" */
static size_t take_mail(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    size_t n = span(c, c->at, is_mail_char);
    size_t domain;
    (void)r;
    if (n == 0 || char_at(c, c->at + n) != '@')
        return 0;
    domain = span(c, c->at + n + 1, is_name_char);
    if (domain < 3 || !memchr(c->text + c->at + n + 1, '.', domain))
        return 0;
    gp_strbuf_adds(to, "MAIL");
    return n + 1 + domain;
}

/* The host of an address, except well-known download hosts. */
static size_t take_url_host(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    static const char *const known[] = {"developer.download.nvidia.com",
                                        "docs.nvidia.com",
                                        "developer.nvidia.com",
                                        "www.nvidia.com",
                                        "nvidia.github.io",
                                        "download.pytorch.org",
                                        "pytorch.org",
                                        "pypi.org",
                                        "github.com",
                                        "repo.radeon.com",
                                        "www.debian.org",
                                        "bugs.debian.org",
                                        "ubuntu.com",
                                        "www.ubuntu.com",
                                        "help.ubuntu.com",
                                        "bugs.launchpad.net",
                                        "fedoraproject.org",
                                        "bugzilla.redhat.com",
                                        "archlinux.org",
                                        "kernel.org",
                                        "repository.tensorflow.org"};
    size_t n = span(c, c->at, is_name_char);
    (void)r;
    if (c->at < 3 || memcmp(c->text + c->at - 3, "://", 3) != 0 || n == 0)
        return 0;
    for (size_t i = 0; i < GP_ARRAY_LEN(known); i++)
        if (strlen(known[i]) == n && strncasecmp(known[i], c->text + c->at, n) == 0)
            return 0;
    gp_strbuf_adds(to, "HOST");
    return n;
}

/* ---- secrets ---- */

static bool is_token_char(int c)
{
    return isalnum(c) || c == '_' || c == '-' || c == '+' || c == '/' || c == '=' || c == '.' ||
           c == '%';
}

static bool is_dense_char(int c)
{
    return isalnum(c) || c == '_' || c == '-' || c == '+';
}

static bool is_before_uuid(const struct cursor *c)
{
    const char *text = c->text + c->at;
    return c->length - c->at > 4 && (memcmp(text, "GPU-", 4) == 0 || memcmp(text, "MIG-", 4) == 0);
}

/* Known prefixes of service tokens, and text as random as a token: much longer than words and
 * numbers, with digits and letters of both cases, or all hexadecimal. */
static size_t take_token(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    static const char *const beginnings[] = {
        "ghp_", "gho_",    "ghs_",   "ghu_",     "github_pat_", "glpat-",    "hf_",
        "sk-",  "xoxb-",   "xoxp-",  "xoxa-",    "AKIA",        "ASIA",      "eyJ",
        "AIza", "ya29.",   "npm_",   "pypi-",    "nvapi-",      "dckr_pat_", "SG.",
        "hvs.", "dop_v1_", "wandb_", "rk_live_", "sk_live_",    "pk_live_",  "-----BEGIN"};
    enum { LEAST = 12, DENSE = 20, HEX = 32 };
    size_t n = span(c, c->at, is_token_char);
    size_t dense = span(c, c->at, is_dense_char);
    size_t hex = span(c, c->at, is_hex);
    size_t digits = 0;
    size_t upper = 0;
    size_t lower = 0;
    (void)r;
    for (size_t i = 0; i < GP_ARRAY_LEN(beginnings); i++)
        if (n >= LEAST && strncmp(c->text + c->at, beginnings[i], strlen(beginnings[i])) == 0) {
            gp_strbuf_adds(to, "TOKEN");
            return whole_span(c, c->at, is_token_char);
        }
    for (size_t i = 0; i < dense; i++) {
        int sign = char_at(c, c->at + i);
        digits += isdigit(sign) != 0;
        upper += isupper(sign) != 0;
        lower += islower(sign) != 0;
    }
    if (is_before_uuid(c))
        return 0;
    bool is_random = dense >= DENSE && digits > 1 && upper > 1 && lower > 1;
    if (!is_random && !(hex >= HEX && hex == dense))
        return 0;
    gp_strbuf_adds(to, "TOKEN");
    return whole_span(c, c->at, is_random ? is_token_char : is_hex);
}

/* Where a telling name is assigned: "password=…", "api_key: …", "--token …", "Bearer …". */
static size_t take_secret(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    static const char *const names[] = {"password",      "passwd",      "passphrase", "secret",
                                        "token",         "apikey",      "api_key",    "api-key",
                                        "access_key",    "private_key", "credential", "bearer",
                                        "authorization", "pwd",         "psk"};
    static const char blanks[] = " \t\"'";
    enum { FAR = 4 };
    size_t end = c->at;
    size_t start;
    size_t n = 0;
    bool is_set = false;
    (void)r;
    while (end > 0 && c->at - end < FAR && strchr(blanks, char_at(c, end - 1)) &&
           char_at(c, end - 1))
        end--;
    if (end > 0 && (char_at(c, end - 1) == '=' || char_at(c, end - 1) == ':')) {
        is_set = true;
        end--;
        while (end > 0 && char_at(c, end - 1) && strchr(blanks, char_at(c, end - 1)))
            end--;
    }
    start = word_start(c, end);
    bool is_option = end - start > 2 && c->text[start] == '-' && c->text[start + 1] == '-';
    bool is_bearer = end - start == 6 && strncasecmp(c->text + start, "bearer", 6) == 0;
    if (!is_set && !is_option && !is_bearer)
        return 0;
    bool is_named = is_bearer;
    for (size_t i = 0; i < GP_ARRAY_LEN(names) && !is_named; i++)
        for (size_t k = start; k + strlen(names[i]) <= end && !is_named; k++)
            is_named = strncasecmp(c->text + k, names[i], strlen(names[i])) == 0;
    while (is_named && char_at(c, c->at + n) > ' ' && !strchr("\"',;", char_at(c, c->at + n)))
        n++;
    if (n > 0 && !(n == 6 && strncasecmp(c->text + c->at, "bearer", 6) == 0)) {
        gp_strbuf_adds(to, "SECRET");
        return n;
    }
    return 0;
}

/* ---- all other words ---- */

static bool is_run_char(int c)
{
    return is_mail_char(c) || c >= 0x80;
}

/* Anything that is neither a word in gpulse's own texts nor a number: it may be a name or a
 * password. */
static size_t take_unknown(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    int first = char_at(c, c->at);
    if (!r->known || !(is_word_char(first) || first >= 0x80))
        return 0;
    gp_strbuf_adds(to, "…");
    return whole_span(c, c->at, is_run_char);
}

/* "0000:c1:00" */
static size_t bus_id_length(const struct cursor *c)
{
    size_t domain = span(c, c->at, is_hex);
    size_t end = c->at + domain;
    bool is_one = (domain == 4 || domain == 8) && char_at(c, end) == ':' &&
                  span(c, end + 1, is_hex) == 2 && char_at(c, end + 3) == ':' &&
                  span(c, end + 4, is_hex) == 2;
    return is_one ? domain + 6 : 0;
}

/* A number or an address that continues on the next line. */
static bool is_broken(const struct cursor *c, size_t length)
{
    size_t end = c->at + length;
    bool goes_on = char_at(c, end) == '\n' && is_digit_or_dot(char_at(c, end + 1)) &&
                   is_digit_or_dot(char_at(c, end - 1));
    bool went_on = c->at > 1 && char_at(c, c->at - 1) == '\n' && isdigit(char_at(c, c->at)) &&
                   is_digit_or_dot(char_at(c, c->at - 2));
    return goes_on || went_on;
}

/* How much of the following text is known to be harmless. */
static size_t known_length(const struct gp_redactor *r, const struct cursor *c)
{
    size_t n = is_before_uuid(c) ? 3 : bus_id_length(c);
    size_t run = span(c, c->at, is_run_char);
    bool is_fraction = c->at > 1 && char_at(c, c->at - 1) == '.' && isdigit(char_at(c, c->at - 2));
    if (n == 0 && run > 0 && !is_broken(c, run))
        n = r->known(c->text + c->at, run, is_fraction);
    return n;
}

/* ---- the whole text ---- */

typedef size_t taker(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c);

static const struct {
    const char *kind;
    taker *take;
    bool anywhere; /* also in the middle of a word */
} rules[GP_REDACT_RULES] = {
    {"home directories", take_home, true},
    {"logins in addresses", take_login, false},
    {"passwords", take_secret, false},
    {"mail addresses", take_mail, false},
    {"hosts in addresses", take_url_host, false},
    {"UUIDs", take_uuid, false},
    {"serial numbers", take_serial, false},
    {"hardware and IPv6 addresses", take_colons, false},
    {"IPv4 addresses", take_ipv4, false},
    {"tokens and keys", take_token, false},
    {"names of users, hosts and directories", take_word, false},
};

static const char other_words[] = "other words";

const char *gp_redact_kind(size_t rule)
{
    return rule < GP_REDACT_RULES ? rules[rule].kind : other_words;
}

/* Removes what begins here; returns its length. */
static size_t take(struct gp_redactor *r, struct gp_strbuf *to, const struct cursor *c)
{
    bool at_word = is_at_word(c);
    for (size_t i = 0; i < GP_REDACT_RULES; i++) {
        size_t n = at_word || rules[i].anywhere ? rules[i].take(r, to, c) : 0;
        r->counts[i] += n > 0;
        if (n > 0)
            return n;
    }
    return 0;
}

void gp_redact_add(struct gp_redactor *redactor, struct gp_strbuf *to, const char *text,
                   size_t length)
{
    struct cursor c = {.text = text, .length = length};
    while (c.at < length) {
        size_t n = take(redactor, to, &c);
        size_t known = n == 0 && redactor->known && is_at_word(&c) ? known_length(redactor, &c) : 0;
        if (n == 0 && known == 0 && is_at_word(&c)) {
            n = take_unknown(redactor, to, &c);
            redactor->counts[GP_REDACT_RULES] += n > 0;
        }
        size_t copied = n > 0 ? 0 : known > 0 ? known : 1;
        gp_strbuf_add(to, text + c.at, copied);
        c.at += n + copied;
        if (n + known > 0)
            c.looked_at = c.at;
    }
}
