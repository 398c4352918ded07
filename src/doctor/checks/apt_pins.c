#include "doctor/checks/apt_pins.h"

#include "doctor/checks/services.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/aptpins.h"
#include "doctor/readers/packages.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

enum { USUAL = 500, OF_TARGET = 990 }; /* priorities: of every repository, and with -t */

static bool is_apt(const struct gp_exam *exam)
{
    return exam->machine.distro == GP_DISTRO_DEBIAN || exam->machine.distro == GP_DISTRO_UBUNTU;
}

/* The installed version of a package; "": it is not installed. */
static const char *version_of(struct gp_exam *exam, const char *name)
{
    const char *const words[] = {name, NULL};
    struct gp_package *packages;
    long n = gp_packages_read(&exam->files, &exam->arena, words, &packages);
    for (long i = 0; i < n; i++)
        if (strcmp(packages[i].name, name) == 0 && strcmp(packages[i].state, "installed") == 0)
            return packages[i].version;
    return "";
}

static void show_pin(struct gp_exam *exam, const struct gp_apt_pin *pin)
{
    gp_exam_evidence(exam, gp_exam_text(exam, "%s:%zu", pin->path, pin->first),
                     "%.120s: %s %.120s, priority %ld", pin->packages, pin->by, pin->value,
                     pin->priority);
}

/* ---- versions that apt keeps, and those that it never installs ---- */

/* Whether a pin is for each version of a package, from anywhere. */
static bool is_of_all(const struct gp_apt_pin *pin)
{
    return strcmp(pin->value, "*") == 0 ||
           (strcmp(pin->by, "release") == 0 && pin->value[0] && strcmp(pin->value + 1, "=*") == 0);
}

/* The pin that keeps a package as it is, though a repository of this priority has a newer version;
 * NULL: there is none. */
static const struct gp_apt_pin *find_block(struct gp_exam *exam, const struct gp_apt_pin *pins,
                                           size_t count, const char *package, long priority)
{
    const char *version = version_of(exam, package);
    for (size_t i = 0; i < count; i++) {
        const struct gp_apt_pin *pin = &pins[i];
        if (gp_apt_pin_is_general(pin) || !gp_apt_pin_has(pin, package))
            continue;
        if (pin->priority < 0 && is_of_all(pin))
            return pin;
        if (strcmp(pin->by, "version") == 0 && version[0] &&
            fnmatch(pin->value, version, 0) == 0) /* it counts, and others do not */
            return pin->priority > priority && !is_of_all(pin) ? pin : NULL;
    }
    return NULL;
}

/* The highest priority that a repository may have for a package. */
static long highest(const struct gp_apt_pin *pins, size_t count, const char *package,
                    const char *command)
{
    long found = strstr(command, " -t ") ? OF_TARGET : USUAL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(pins[i].by, "version") != 0 && pins[i].priority > found &&
            gp_apt_pin_has(&pins[i], package))
            found = pins[i].priority;
    return found;
}

/* Where the list of packages begins that a command gets from a repository; NULL: it has none. */
static const char *list_in(const char *command)
{
    static const char *const marks[] = {"apt install ", "apt-get install "};
    for (size_t i = 0; i < GP_ARRAY_LEN(marks); i++) {
        const char *found = strstr(command, marks[i]);
        if (found && !strstr(found, "--reinstall"))
            return found + strlen(marks[i]);
    }
    return NULL;
}

/* The next package of the list whose version is left to apt; false: none is left. */
static bool next_package(const char **at, char ret[96])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789.+-";
    const char *word, *end = *at + strlen(*at);
    size_t n;
    while (gp_lines_word(at, end, &word, &n) && !strchr("&|;#<>", word[0])) {
        if (gp_lines_is(word, n, "-t")) {
            (void)gp_lines_word(at, end, &word, &n);
        } else if (islower((unsigned char)word[0]) && n < 96 && strspn(word, plain) >= n) {
            (void)snprintf(ret, 96, "%.*s", (int)n, word);
            return true;
        }
    }
    return false;
}

/* Puts a command before a fix. */
static void put_before(struct gp_exam *exam, struct gp_fix **at, const char *note,
                       const char *command)
{
    struct gp_fix *fix = gp_arena_alloc(&exam->arena, 1, sizeof(*fix));
    if (!fix)
        return;
    *fix = (struct gp_fix){.command = command, .note = note, .next = *at};
    *at = fix;
}

/* Adds to the last finding how to release what a command of it installs. */
static void release(struct gp_exam *exam, struct gp_fix **at, const struct gp_apt_pin *pins,
                    size_t count)
{
    const struct gp_apt_pin *before = NULL;
    const char *command = (*at)->command, *list = list_in(command);
    char package[96];
    while (list && next_package(&list, package)) {
        const struct gp_apt_pin *pin =
            find_block(exam, pins, count, package, highest(pins, count, package, command));
        if (!pin || pin == before)
            continue;
        before = pin;
        show_pin(exam, pin);
        put_before(exam, at,
                   gp_exam_text(exam,
                                pin->priority < 0 ? "apt never installs %s as long as this entry "
                                                    "is there: comment it out"
                                                  : "apt keeps %s as it is as long as this entry "
                                                    "is there: comment it out",
                                package),
                   gp_exam_text(exam, "sudo sed -i '%zu,%zus/^/# /' %s", pin->first, pin->last,
                                gp_exam_quoted(exam, pin->path)));
        at = &(*at)->next;
    }
}

void gp_checks_finish(struct gp_exam *exam, struct gp_finding *first)
{
    struct gp_apt_pin pins[GP_APT_PINS];
    struct gp_finding *last = exam->last;
    size_t count = first && is_apt(exam) ? gp_apt_pins_read(exam, pins) : 0;
    for (struct gp_finding *f = first; f && count > 0; f = f->next) {
        exam->last = f;
        for (struct gp_fix **fix = &f->fixes; *fix; fix = &(*fix)->next) {
            struct gp_fix *own = *fix;
            if (own->command)
                release(exam, fix, pins, count);
            while (*fix != own)
                fix = &(*fix)->next;
        }
    }
    exam->last = last;
}

/* ---- the container toolkit ---- */

/* Whether a version and the name of where it is from have a word in common: "1.5.1-1pop1~…" and
 * "o=pop-os-release". */
static bool has_mark(const char *version, const char *origin)
{
    enum { SHORTEST = 3 };
    size_t n;
    for (const char *p = version; *p; p += n > 0 ? n : 1) {
        n = 0;
        while (isalpha((unsigned char)p[n]))
            n++;
        for (const char *o = origin; n >= SHORTEST && *o; o++)
            if (strncasecmp(o, p, n) == 0 && !isalpha((unsigned char)o[n]) &&
                (o == origin || !isalpha((unsigned char)o[-1])))
                return true;
    }
    return false;
}

static bool is_of_nvidia(const struct gp_apt_pin *pin)
{
    return strcasestr(pin->value, "nvidia") != NULL;
}

/* The pin by which the installed one of these packages was preferred to NVIDIA's; NULL: none. */
static const struct gp_apt_pin *find_preference(struct gp_exam *exam, const struct gp_apt_pin *pins,
                                                size_t count, const char *packages)
{
    const struct gp_apt_pin *found = NULL;
    const char *at = packages, *word;
    size_t n;
    while (gp_lines_word(&at, packages + strlen(packages), &word, &n)) {
        const char *package = gp_exam_text(exam, "%.*s", (int)n, word);
        const char *version = version_of(exam, package);
        for (size_t i = 0; i < count; i++) {
            const struct gp_apt_pin *pin = &pins[i];
            if (pin->priority <= USUAL || strcmp(pin->by, "version") == 0 ||
                !gp_apt_pin_has(pin, package))
                continue;
            if (is_of_nvidia(pin))
                return NULL; /* there is an entry for that repository already */
            found = has_mark(version, pin->value) && (!found || pin->priority > found->priority)
                        ? pin
                        : found;
        }
    }
    return found;
}

void gp_apt_prefer_toolkit(struct gp_exam *exam, const char *packages)
{
    struct gp_apt_pin pins[GP_APT_PINS];
    size_t count = is_apt(exam) ? gp_apt_pins_read(exam, pins) : 0;
    const struct gp_apt_pin *pin = find_preference(exam, pins, count, packages);
    if (!pin)
        return;
    show_pin(exam, pin);
    gp_exam_command(exam,
                    "apt prefers the distribution's packages of the toolkit, also to newer ones: "
                    "prefer those of NVIDIA's repository",
                    "printf 'Package: *nvidia-container* nvidia-docker2\\n"
                    "Pin: origin nvidia.github.io\\nPin-Priority: %ld\\n' | sudo tee "
                    "/etc/apt/preferences.d/nvidia-container-toolkit",
                    pin->priority + 1);
    if (!gp_apt_has_toolkit(exam))
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
}
