#include "doctor/readers/pypackage.h"

#include "doctor/version.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

/* Normalized as in PEP 503: runs of - _ . become one -. Names of Python packages begin and end with
 * a letter or digit; one with - before it would be an option in a suggested command. Only conda
 * has others, such as "_libgcc_mutex", which are of no use here. */
static bool normalize(const char *text, size_t length, char name[GP_PYPACKAGE_NAME])
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        bool is_mark = strchr("-_.", text[i]);
        if (!is_mark && !isalnum((unsigned char)text[i]))
            return false;
        if (is_mark && n > 0 && name[n - 1] == '-')
            continue;
        if (n + 1 >= GP_PYPACKAGE_NAME)
            return false;
        name[n++] = is_mark ? '-' : (char)tolower((unsigned char)text[i]);
    }
    name[n] = '\0';
    return n > 0 && name[0] != '-' && name[n - 1] != '-';
}

/* The characters of versions, here and in PEP 440: nothing else may get into a suggested command.
 */
static bool is_version(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !(text[i] && strchr("._+!-", text[i])))
            return false;
    return true;
}

static bool copy(const char *text, size_t length, char *ret, size_t size)
{
    if (length == 0 || length >= size || !is_version(text, length))
        return false;
    memcpy(ret, text, length);
    ret[length] = '\0';
    return true;
}

/* The length without a suffix; 0: it does not have the suffix. */
static size_t without(const char *entry, const char *suffix)
{
    size_t n = strlen(entry), s = strlen(suffix);
    return n > s && strcmp(entry + n - s, suffix) == 0 ? n - s : 0;
}

bool gp_pypackage_split(const char *entry, char name[GP_PYPACKAGE_NAME],
                        char version[GP_PYPACKAGE_VERSION])
{
    size_t end = without(entry, ".dist-info");
    bool is_egg = end == 0;
    if (is_egg)
        end = without(entry, ".egg-info");
    size_t dash = 0;
    for (size_t i = 1; i + 1 < end && dash == 0; i++)
        if (entry[i] == '-' && isdigit((unsigned char)entry[i + 1]))
            dash = i;
    if (dash == 0)
        return false;
    size_t stop = end;
    for (size_t i = dash; is_egg && i + 3 < end && stop == end; i++)
        if (strncmp(entry + i, "-py", 3) == 0)
            stop = i;
    return normalize(entry, dash, name) &&
           copy(entry + dash + 1, stop - dash - 1, version, GP_PYPACKAGE_VERSION);
}

bool gp_pypackage_split_conda(const char *entry, char name[GP_PYPACKAGE_NAME],
                              char version[GP_PYPACKAGE_VERSION], char build[GP_PYPACKAGE_VERSION])
{
    size_t end = without(entry, ".json"), second = end, first;
    while (second > 0 && entry[second - 1] != '-')
        second--;
    if (second < 2)
        return false;
    for (first = second - 1; first > 0 && entry[first - 1] != '-';)
        first--;
    return first > 1 && normalize(entry, first - 1, name) &&
           copy(entry + first, second - 1 - first, version, GP_PYPACKAGE_VERSION) &&
           copy(entry + second, end - second, build, GP_PYPACKAGE_VERSION);
}

/* ---- values in Python ---- */

static bool is_name_part(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The value after a name: `name: Optional[str] = …`, `'name': …` in a dictionary, or `('name', …)`
 * in a list of pairs; a mere mention, as in __all__, has none. */
static const char *value_at(const char *text, const char *name, const char *p)
{
    if (name == text || name[-1] == '\n') {
        p += strspn(p, " ");
        if (*p == ':')
            p += strcspn(p, "=\n");
        return *p == '=' ? p + 1 + strspn(p + 1, " ") : NULL;
    }
    if ((name[-1] != '\'' && name[-1] != '"') || *p != name[-1])
        return NULL;
    bool is_pair = name - 1 > text && name[-2] == '(';
    p += 1 + strspn(p + 1, " ");
    return *p == (is_pair ? ',' : ':') ? p + 1 + strspn(p + 1, " \n") : NULL;
}

static void take_value(const char *p, char *ret, size_t size)
{
    const char *end = p;
    if (*p == '\'' || *p == '"') {
        end = p + 1 + strcspn(p + 1, "'\"\n");
        p++;
    } else if (*p == '[') {
        end = p + strcspn(p, "]");
        p++;
    }
    (void)snprintf(ret, size, "%.*s", (int)(end - p), p);
}

bool gp_python_value(const char *text, const char *name, char *ret, size_t size)
{
    size_t n = strlen(name);
    for (const char *p = strstr(text, name); p; p = strstr(p + 1, name)) {
        const char *value = is_name_part(p[n]) ? NULL : value_at(text, p, p + n);
        if (!value)
            continue;
        take_value(value, ret, size);
        return true;
    }
    return false;
}

bool gp_python_version(const char *text, const char *name, char *ret, size_t size)
{
    bool is_said = gp_python_value(text, name, ret, size);
    if (!is_said || !is_version(ret, strlen(ret)))
        *ret = '\0';
    return is_said;
}

/* ---- requirements ---- */

/* "(==9.1.0.70)", "==2.0,<3": the version after an operator; "" without it, or if it is a range. */
static void read_version(const char *p, size_t length, const char *operator,
                         char ret[GP_PYPACKAGE_VERSION])
{
    ret[0] = '\0';
    for (size_t i = 0; i + 2 < length; i++) {
        if (strncmp(p + i, operator, 2) != 0)
            continue;
        i += 2 + strspn(p + i + 2, "= ");
        size_t n = 0;
        while (i + n < length && !strchr(",) ;", p[i + n]))
            n++;
        if (!memchr(p + i, '*', n))
            (void)copy(p + i, n, ret, GP_PYPACKAGE_VERSION);
        return;
    }
}

/* " (<2.7,>=2.1)" as "<2.7,>=2.1"; "" with anything else, such as an address or an extra. Of one
 * that is too long, the first comparisons. */
static void read_allowed(const char *p, size_t length, struct gp_requirement *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < length && !ret->is_cut; i++) {
        bool is_known = isalnum((unsigned char)p[i]) || strchr("<>=!~.,*+_-", p[i]);
        if (strchr(" ()", p[i]))
            continue;
        if (!is_known) {
            n = 0;
            break;
        }
        ret->is_cut = n + 1 >= sizeof(ret->allowed);
        if (!ret->is_cut)
            ret->allowed[n++] = p[i];
    }
    while (ret->is_cut && n > 0 && ret->allowed[n] != ',')
        n--;
    ret->allowed[n] = '\0';
}

/* Whether a marker asks for this value: `sys_platform == "darwin"`. */
static bool is_equal_to(const char *marker, const char *value)
{
    for (const char *at = strstr(marker, value); at; at = strstr(at + 1, value)) {
        const char *before = at;
        while (before > marker && strchr("'\" ", before[-1]))
            before--;
        if (before - marker >= 2 && strncmp(before - 2, "==", 2) == 0)
            return true;
    }
    return false;
}

/* What a marker compares the version of Python with: `python_version < "3.9"` as "<3.9". */
static void read_python(const char *marker, struct gp_requirement *ret)
{
    static const char name[] = "python_";
    size_t n = 0;
    for (const char *p = strstr(marker, name); p; p = strstr(p + 1, name)) {
        const char *end = p + strcspn(p, " <>=!~'\"()");
        if (end - p < 14 || strncmp(end - 8, "_version", 8) != 0)
            continue; /* platform_python_implementation */
        p = end + strspn(end, " ");
        size_t sign = strspn(p, "<>=!~");
        const char *value = p + sign + strspn(p + sign, " ");
        size_t length = *value == '\'' || *value == '"' ? strcspn(value + 1, "'\"") : 0;
        if (sign == 0 || length == 0 || sign + length + 2 > sizeof(ret->python) - n ||
            strstr(marker, " or ")) {
            ret->is_of_unknown_python = true;
            return;
        }
        n += (size_t)snprintf(ret->python + n, sizeof(ret->python) - n, "%s%.*s%.*s", n ? "," : "",
                              (int)sign, p, (int)length, value + 1);
    }
}

/* The marker after ; : the kind of machine, the extra, the version of Python. */
static void read_marker(const char *p, size_t length, struct gp_requirement *ret)
{
    static const char machine[] = "platform_machine";
    char text[512];
    (void)snprintf(text, sizeof(text), "%.*s", (int)(length < 511 ? length : 511), p);
    ret->is_extra = strstr(text, "extra");
    ret->is_elsewhere = is_equal_to(text, "darwin") || is_equal_to(text, "Darwin") ||
                        is_equal_to(text, "win32") || is_equal_to(text, "Windows");
    read_python(text, ret);
    const char *at = strstr(text, machine);
    at = at ? at + sizeof(machine) - 1 : "";
    at += strspn(at, " ");
    if (strncmp(at, "==", 2) != 0)
        return;
    at += 2 + strspn(at + 2, " ");
    if (*at == '\'' || *at == '"')
        (void)copy(at + 1, strcspn(at + 1, "'\""), ret->machine, sizeof(ret->machine));
}

static bool read_requirement(const char *p, size_t length, struct gp_requirement *ret)
{
    size_t n = 0;
    *ret = (struct gp_requirement){.is_extra = false};
    while (n < length && (isalnum((unsigned char)p[n]) || strchr("-_.", p[n])))
        n++;
    if (!normalize(p, n, ret->name))
        return false;
    const char *marker = memchr(p, ';', length);
    size_t stop = marker ? (size_t)(marker - p) : length;
    read_allowed(p + n, stop - n, ret);
    read_version(p + n, stop - n, "==", ret->version);
    read_version(p + n, stop - n, ">=", ret->least);
    if (marker)
        read_marker(marker, length - stop, ret);
    return true;
}

const char *gp_requirement_next(const char *text, struct gp_requirement *ret)
{
    static const char key[] = "Requires-Dist:";
    while (*text && *text != '\n' && *text != '\r') { /* an empty line ends the header */
        size_t length = strcspn(text, "\n");
        const char *line = text;
        text += length + (text[length] == '\n');
        if (strncmp(line, key, sizeof(key) - 1) != 0)
            continue;
        size_t skip = sizeof(key) - 1 + strspn(line + sizeof(key) - 1, " ");
        if (skip < length && read_requirement(line + skip, length - skip, ret))
            return text;
    }
    return NULL;
}

/* Whether a version begins with those numbers: "2.6.1" with "2.6" of "==2.6.*", and of "~=2.6.0",
 * where the last is left out. */
static bool has_start(const char *version, const char *numbers, bool is_last_free)
{
    for (;;) {
        const char *dot = strchr(numbers, '.');
        if (*numbers == '*' || !*numbers || (is_last_free && !dot))
            return true;
        if (gp_version_major(version) != gp_version_major(numbers))
            return false;
        if (!dot)
            return true;
        numbers = dot + 1;
        version += strcspn(version, ".+");
        version += *version == '.';
    }
}

/* One comparison, "<2.7". */
static bool allows(const char *text, const char *version)
{
    const char *number = text + strspn(text, "<>=!~");
    int order = gp_version_compare(version, number);
    if (text[0] == '~')
        return order >= 0 && has_start(version, number, true);
    if (text[0] == '!')
        return strchr(number, '*') ? !has_start(version, number, false) : order != 0;
    if (text[0] == '=')
        return strchr(number, '*') ? has_start(version, number, false) : order == 0;
    if (order == 0)
        return text[1] == '=';
    return text[0] == '<' ? order < 0 : order > 0;
}

/* All comparisons of a specifier. */
static bool all_allow(const char *specifier, const char *version)
{
    char one[GP_PYPACKAGE_VERSION];
    for (const char *p = specifier; *p;) {
        size_t n = strcspn(p, ",");
        (void)snprintf(one, sizeof(one), "%.*s", (int)n, p);
        if (strchr("<>=!~", one[0]) && one[0] && !allows(one, version))
            return false;
        p += n + (p[n] == ',');
    }
    return true;
}

bool gp_requirement_is_in(const char *text, const char *name)
{
    struct gp_requirement wanted;
    while (text && (text = gp_requirement_next(text, &wanted)))
        if (strcmp(wanted.name, name) == 0 && !wanted.is_extra)
            return true;
    return false;
}

bool gp_requirement_is_for(const struct gp_requirement *requirement, const char *python)
{
    if (requirement->is_of_unknown_python)
        return false;
    return !requirement->python[0] || (python[0] && all_allow(requirement->python, python));
}

bool gp_requirement_allows(const struct gp_requirement *requirement, const char *version)
{
    return all_allow(requirement->allowed, version);
}
