#include "doctor/readers/apt_pins.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 64, MOST_TEXT = 1 << 16 };

/* An entry, as far as it has been read. */
struct reading {
    struct gp_apt_pins *pins;
    struct gp_apt_pin pin;
    char list[2048]; /* its packages */
    size_t length;   /* of the list, also of what is left out */
};

/* The value of "Key: value"; NULL: the line has another key. Keys are in any case. */
static const char *value_of(const char *line, const char *key)
{
    size_t n = strlen(key);
    if (strncasecmp(line, key, n) != 0 || line[n] != ':')
        return NULL;
    return line + n + 1 + strspn(line + n + 1, " \t");
}

/* "release o=Ubuntu", "version 575.*" */
static void read_pin(struct gp_exam *exam, struct gp_apt_pin *pin, const char *words)
{
    size_t n = strcspn(words, " \t"), length;
    pin->by = gp_exam_text(exam, "%.*s", (int)n, words);
    words += n + strspn(words + n, " \t");
    length = strlen(words);
    bool is_quoted = length > 1 && words[0] == '"' && words[length - 1] == '"';
    pin->value = is_quoted ? gp_exam_text(exam, "%.*s", (int)length - 2, words + 1) : words;
}

static void add_packages(struct reading *r, const char *words)
{
    if (r->length < sizeof(r->list))
        (void)snprintf(r->list + r->length, sizeof(r->list) - r->length, "%s", words);
    r->length += strlen(words);
}

static void add(struct gp_exam *exam, struct reading *r)
{
    static const char any[] = "/./"; /* too long a list may have each package */
    struct gp_apt_pin *pin = &r->pin;
    if (r->length > 0 && pin->by && pin->priority != 0 && r->pins->count < GP_APT_PINS) {
        pin->packages = r->length < sizeof(r->list) ? gp_exam_text(exam, "%s", r->list) : any;
        r->pins->list[r->pins->count++] = *pin;
    }
    *pin = (struct gp_apt_pin){.path = pin->path};
    r->length = 0;
}

static void read_file(struct gp_exam *exam, const char *path, struct gp_apt_pins *pins)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    struct reading r = {.pins = pins, .pin.path = path};
    bool is_list = false; /* the line before was of "Package:", which can go on */
    while (gp_lines_next(&lines, &line, &n)) {
        while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
            n--;
        const char *words = gp_exam_text(exam, "%.*s", n < 2000 ? (int)n : 2000, line), *value;
        if (words[0] == '#')
            continue;
        if (!words[0]) {
            add(exam, &r);
            continue;
        }
        r.pin.first = r.pin.first > 0 ? r.pin.first : lines.number;
        r.pin.last = lines.number;
        if (words[0] == ' ' || words[0] == '\t') {
            if (is_list)
                add_packages(&r, gp_exam_text(exam, " %s", words + strspn(words, " \t")));
            continue;
        }
        if ((value = value_of(words, "Package")))
            add_packages(&r, value);
        else if ((value = value_of(words, "Pin")))
            read_pin(exam, &r.pin, value);
        else if ((value = value_of(words, "Pin-Priority")))
            r.pin.priority = strtol(value, NULL, 10);
        is_list = value_of(words, "Package");
    }
    add(exam, &r);
}

/* apt ignores files with other names. */
static bool is_read(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const char *end = strrchr(name, '.');
    return name[0] != '.' && name[strspn(name, plain)] == '\0' &&
           (!end || strcmp(end, ".pref") == 0);
}

const struct gp_apt_pins *gp_apt_pins_of(struct gp_exam *exam)
{
    static const char file[] = "/etc/apt/preferences", folder[] = "/etc/apt/preferences.d";
    static const struct gp_apt_pins none;
    if (exam->apt_pins)
        return exam->apt_pins;
    struct gp_apt_pins *pins = gp_arena_alloc(&exam->arena, 1, sizeof(*pins));
    if (!pins)
        return &none;
    char **names;
    *pins = none;
    read_file(exam, file, pins);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < MOST_FILES && pins->count < GP_APT_PINS; i++)
        if (is_read(names[i]))
            read_file(exam, gp_exam_text(exam, "%s/%s", folder, names[i]), pins);
    exam->apt_pins = pins;
    return pins;
}

bool gp_apt_pin_is_general(const struct gp_apt_pin *pin)
{
    return strcmp(pin->packages, "*") == 0;
}

/* Whether a word of the list is for a package, in apt's fuller forms, too: of an architecture, of a
 * source package, a regular expression (any). */
static bool fits(const char *word, size_t n, const char *package)
{
    static const char source[] = "src:";
    char name[128];
    if (word[0] == '/')
        return true;
    if (strncmp(word, source, sizeof(source) - 1) == 0) {
        word += sizeof(source) - 1;
        n -= sizeof(source) - 1;
    }
    (void)snprintf(name, sizeof(name), "%.*s", n < sizeof(name) ? (int)n : 127, word);
    name[strcspn(name, ":")] = '\0';
    return fnmatch(name, package, 0) == 0;
}

bool gp_apt_pin_has(const struct gp_apt_pin *pin, const char *package)
{
    const char *at = pin->packages, *end = at + strlen(at), *word;
    size_t n;
    while (gp_lines_word(&at, end, &word, &n))
        if (fits(word, n, package))
            return true;
    return false;
}

bool gp_apt_pin_names(const struct gp_apt_pin *pin, const char *package)
{
    const char *at = pin->packages, *end = at + strlen(at), *word;
    size_t n;
    while (gp_lines_word(&at, end, &word, &n))
        if (!memchr(word, ':', n) && !memchr(word, '/', n) && fits(word, n, package))
            return true;
    return false;
}
