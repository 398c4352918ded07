#include "doctor/checks/apt_fix.h"

#include "doctor/checks/system.h"
#include "doctor/exam.h"
#include "doctor/lines.h"
#include "doctor/readers/apt_pins.h"
#include "doctor/readers/packages.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* Priorities: of every repository, and of the release of -t or APT::Default-Release. */
enum { USUAL = 500, OF_TARGET = 990 };

/* The installed version of a package; "": it is not installed. */
static const char *version_of(struct gp_exam *exam, const char *name)
{
    const struct gp_package *package = gp_packages_installed(&exam->files, &exam->arena, name);
    return package ? package->version : "";
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

/* Whether a version's pattern leaves at most a patch release: "1.7.*", "575.51.03-1ubuntu1". */
static bool is_narrow(const char *pattern)
{
    size_t dots = 0, n = strcspn(pattern, "*?[");
    for (size_t i = 0; i < n; i++)
        dots += pattern[i] == '.';
    return !pattern[n] || dots > 1;
}

/* The highest priority that a repository may have for a package. */
static long highest(const struct gp_apt_pins *pins, const char *package)
{
    long found = OF_TARGET;
    for (size_t i = 0; i < pins->count; i++)
        if (strcmp(pins->list[i].by, "version") != 0 && pins->list[i].priority > found &&
            gp_apt_pin_has(&pins->list[i], package))
            found = pins->list[i].priority;
    return found;
}

/* The pin that certainly keeps a package as it is; NULL: there is none. Only the first entry that
 * may be for it counts: one after it may be for other versions, or for none. */
static const struct gp_apt_pin *find_block(struct gp_exam *exam, const char *package)
{
    const struct gp_apt_pins *pins = gp_apt_pins_of(exam);
    const struct gp_apt_pin *pin = NULL;
    for (size_t i = 0; i < pins->count && !pin; i++)
        if (!gp_apt_pin_is_general(&pins->list[i]) && gp_apt_pin_has(&pins->list[i], package))
            pin = &pins->list[i];
    if (!pin || !gp_apt_pin_names(pin, package))
        return NULL;
    if (is_of_all(pin))
        return pin->priority < 0 ? pin : NULL;
    return strcmp(pin->by, "version") == 0 && is_narrow(pin->value) &&
                   pin->priority > highest(pins, package) &&
                   fnmatch(pin->value, version_of(exam, package), 0) == 0
               ? pin
               : NULL;
}

/* Where the list of packages begins that a command gets from a repository; NULL: it has none. */
static const char *list_in(const char *command)
{
    static const char *const marks[] = {"sudo apt install ", "sudo apt-get install "};
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

/* Puts before a fix how to lift a pin. One that is from a package is left to that package. */
static void put_release(struct gp_exam *exam, struct gp_fix **at, const struct gp_apt_pin *pin,
                        const char *package)
{
    const char *owner = strrchr(pin->path, '/') + 1;
    const char *keeps = pin->priority < 0 ? gp_exam_text(exam, "apt never installs %s", package)
                                          : gp_exam_text(exam, "apt keeps %s as it is", package);
    show_pin(exam, pin);
    if (version_of(exam, owner)[0])
        put_before(exam, at,
                   gp_exam_text(exam,
                                "%s as long as the package %s is installed: remove it, or install "
                                "the one for the wanted version",
                                keeps, owner),
                   NULL);
    else
        put_before(exam, at,
                   gp_exam_text(exam, "%s as long as this entry is there: comment it out", keeps),
                   gp_exam_text(exam, "sudo sed -i '%zu,%zus/^[^#]/# &/' %s", pin->first, pin->last,
                                gp_exam_quoted(exam, pin->path)));
}

/* Adds to the last finding how to release what a command of it installs. */
static void release(struct gp_exam *exam, struct gp_fix **at)
{
    const struct gp_apt_pin *before = NULL;
    const char *list = list_in((*at)->command);
    char package[96];
    while (list && next_package(&list, package)) {
        const struct gp_apt_pin *pin = find_block(exam, package);
        if (!pin || pin == before)
            continue;
        struct gp_fix *own = *at;
        before = pin;
        put_release(exam, at, pin, package);
        at = *at == own ? at : &(*at)->next;
    }
}

void gp_apt_release_pins(struct gp_exam *exam, struct gp_finding *first)
{
    struct gp_finding *last = exam->last;
    for (struct gp_finding *f = gp_machine_has_apt(&exam->machine) ? first : NULL; f; f = f->next) {
        exam->last = f;
        for (struct gp_fix **fix = &f->fixes; *fix; fix = &(*fix)->next) {
            struct gp_fix *own = *fix;
            if (own->command)
                release(exam, fix);
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

/* The pin by which the installed one of these packages is preferred to NVIDIA's; NULL: none. */
static const struct gp_apt_pin *find_preference(struct gp_exam *exam, const char *packages)
{
    const struct gp_apt_pins *pins = gp_apt_pins_of(exam);
    const struct gp_apt_pin *found = NULL;
    long solved = USUAL;
    const char *at = packages, *word;
    size_t n;
    while (gp_lines_word(&at, packages + strlen(packages), &word, &n)) {
        const char *package = gp_exam_text(exam, "%.*s", (int)n, word);
        const char *version = pins->count > 0 ? version_of(exam, package) : "";
        for (size_t i = 0; i < pins->count; i++) {
            const struct gp_apt_pin *pin = &pins->list[i];
            if (strcmp(pin->by, "version") == 0 || !gp_apt_pin_has(pin, package))
                continue;
            if (is_of_nvidia(pin))
                solved = pin->priority > solved ? pin->priority : solved;
            else if (has_mark(version, pin->value) && (!found || pin->priority > found->priority))
                found = pin;
        }
    }
    return found && found->priority > solved ? found : NULL;
}

bool gp_apt_prefer_toolkit(struct gp_exam *exam, const char *packages)
{
    const struct gp_apt_pin *pin =
        gp_machine_has_apt(&exam->machine) ? find_preference(exam, packages) : NULL;
    if (!pin)
        return false;
    show_pin(exam, pin);
    gp_exam_command(exam,
                    "apt prefers the distribution's packages of the toolkit, also to newer ones: "
                    "prefer those of NVIDIA's repository",
                    "printf 'Package: *nvidia-container* nvidia-docker2\\n"
                    "Pin: origin nvidia.github.io\\nPin-Priority: %ld\\n' | sudo tee "
                    "/etc/apt/preferences.d/nvidia-container-toolkit",
                    pin->priority + 1);
    bool is_missing = !gp_apt_has_toolkit(exam);
    if (is_missing)
        gp_exam_remedy(exam, GP_REMEDY_INSTALL_CONTAINER_TOOLKIT, NULL, NULL);
    return is_missing;
}
