#include "doctor/readers/aptpins.h"

#include "doctor/exam.h"
#include "doctor/lines.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 64, MOST_TEXT = 1 << 16 };

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

static void add(struct gp_apt_pin *pins, size_t *count, const struct gp_apt_pin *pin)
{
    if (pin->packages && pin->by && pin->priority != 0 && *count < GP_APT_PINS)
        pins[(*count)++] = *pin;
}

static void read_file(struct gp_exam *exam, const char *path, struct gp_apt_pin *pins,
                      size_t *count)
{
    size_t size = 0, n;
    const char *line, *text = gp_files_text(&exam->files, &exam->arena, path, MOST_TEXT, &size);
    struct gp_lines lines = gp_lines_of(text, text ? size : 0);
    struct gp_apt_pin pin = {.path = path};
    bool is_list = false; /* the line before was of "Package:", which can go on */
    while (gp_lines_next(&lines, &line, &n)) {
        while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
            n--;
        const char *words = gp_exam_text(exam, "%.*s", n < 2000 ? (int)n : 2000, line), *value;
        if (words[0] == '#')
            continue;
        if (!words[0]) {
            add(pins, count, &pin);
            pin = (struct gp_apt_pin){.path = path};
            continue;
        }
        pin.first = pin.first > 0 ? pin.first : lines.number;
        pin.last = lines.number;
        if (is_list && (words[0] == ' ' || words[0] == '\t'))
            pin.packages = gp_exam_text(exam, "%s%s", pin.packages, words);
        else if ((value = value_of(words, "Package")))
            pin.packages = value;
        else if ((value = value_of(words, "Pin")))
            read_pin(exam, &pin, value);
        else if ((value = value_of(words, "Pin-Priority")))
            pin.priority = strtol(value, NULL, 10);
        is_list = value_of(words, "Package") || (is_list && words[0] == ' ');
    }
    add(pins, count, &pin);
}

/* apt ignores files with other names. */
static bool is_read(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const char *end = strrchr(name, '.');
    return name[0] != '.' && name[strspn(name, plain)] == '\0' &&
           (!end || strcmp(end, ".pref") == 0);
}

size_t gp_apt_pins_read(struct gp_exam *exam, struct gp_apt_pin ret[GP_APT_PINS])
{
    static const char file[] = "/etc/apt/preferences", folder[] = "/etc/apt/preferences.d";
    size_t count = 0;
    char **names;
    read_file(exam, file, ret, &count);
    long n = gp_files_list(&exam->files, &exam->arena, folder, &names);
    for (long i = 0; i < n && i < MOST_FILES; i++)
        if (is_read(names[i]))
            read_file(exam, gp_exam_text(exam, "%s/%s", folder, names[i]), ret, &count);
    return count;
}

bool gp_apt_pin_is_general(const struct gp_apt_pin *pin)
{
    return strcmp(pin->packages, "*") == 0;
}

bool gp_apt_pin_has(const struct gp_apt_pin *pin, const char *package)
{
    static const char source[] = "src:";
    const char *at = pin->packages, *end = at + strlen(at), *word;
    char name[128];
    size_t n;
    while (gp_lines_word(&at, end, &word, &n)) {
        if (strncmp(word, source, sizeof(source) - 1) == 0) {
            word += sizeof(source) - 1;
            n -= sizeof(source) - 1;
        }
        (void)snprintf(name, sizeof(name), "%.*s", n < sizeof(name) ? (int)n : 127, word);
        name[strcspn(name, ":")] = '\0'; /* the architecture */
        if (fnmatch(name, package, 0) == 0)
            return true;
    }
    return false;
}
