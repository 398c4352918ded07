#include "base/utf8.h"

#include "base/strbuf.h"

#include <string.h>

size_t gp_utf8_decode(const char *s, size_t n, uint32_t *ret_cp)
{
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80) {
        *ret_cp = u[0];
        return 1;
    }
    size_t len = u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : u[0] < 0xf5 ? 4 : 0;
    *ret_cp = 0xfffd;
    if (len == 0 || len > n)
        return 1;
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t cp = u[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 1;
        cp = cp << 6 | (u[i] & 0x3fU);
    }
    if (cp < smallest[len] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        return 1;
    *ret_cp = cp;
    return len;
}

void gp_utf8_add(struct gp_strbuf *sb, uint32_t cp)
{
    static const struct {
        uint32_t below;
        unsigned lead;
        int tail; /* continuation bytes */
    } forms[] = {{0x80, 0, 0}, {0x800, 0xc0, 1}, {0x10000, 0xe0, 2}, {0x110000, 0xf0, 3}};
    size_t i = 0;
    while (i + 1 < GP_ARRAY_LEN(forms) && cp >= forms[i].below)
        i++;
    gp_strbuf_addc(sb, (char)(forms[i].lead | cp >> 6 * forms[i].tail));
    for (int tail = forms[i].tail - 1; tail >= 0; tail--)
        gp_strbuf_addc(sb, (char)(0x80 | (cp >> 6 * tail & 0x3f)));
}

struct range {
    uint32_t first;
    uint32_t last;
};

/* The ranges are sorted. */
static bool in_ranges(uint32_t cp, const struct range *ranges, size_t count)
{
    while (count > 0) {
        size_t half = count / 2;
        if (cp > ranges[half].last) {
            ranges += half + 1;
            count -= half + 1;
        } else if (cp >= ranges[half].first) {
            return true;
        } else {
            count = half;
        }
    }
    return false;
}

/* clang-format off */
/* Short tables instead of wcwidth(), which needs a UTF-8 locale; a C locale is common in cron jobs
 * and containers. */
static const struct range zero[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x0900, 0x0902}, {0x093c, 0x093c}, {0x0941, 0x0948}, {0x094d, 0x094d}, {0x0951, 0x0957},
    {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1160, 0x11ff}, {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x2064}, {0x20d0, 0x20f0},
    {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff},
    {0xe0001, 0xe01ef},
};

static const struct range wide[] = {
    {0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0},
    {0x23f3, 0x23f3}, {0x25fd, 0x25fe}, {0x2614, 0x2615}, {0x2648, 0x2653}, {0x267f, 0x267f},
    {0x2693, 0x2693}, {0x26a1, 0x26a1}, {0x26aa, 0x26ab}, {0x26bd, 0x26be}, {0x26c4, 0x26c5},
    {0x26ce, 0x26ce}, {0x26d4, 0x26d4}, {0x26ea, 0x26ea}, {0x26f2, 0x26f3}, {0x26f5, 0x26f5},
    {0x26fa, 0x26fa}, {0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b}, {0x2728, 0x2728},
    {0x274c, 0x274c}, {0x274e, 0x274e}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797},
    {0x27b0, 0x27b0}, {0x27bf, 0x27bf}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55},
    {0x2e80, 0x303e}, {0x3041, 0x33ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa000, 0xa4cf},
    {0xa960, 0xa97c}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe10, 0xfe19}, {0xfe30, 0xfe6f},
    {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18cff}, {0x1b000, 0x1b2ff}, {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f265},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7f0}, {0x1f900, 0x1f9ff},
    {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};
/* clang-format on */

int gp_utf8_columns(uint32_t cp)
{
    if (cp < 0x300)
        return 1;
    if (in_ranges(cp, zero, GP_ARRAY_LEN(zero)))
        return 0;
    return in_ranges(cp, wide, GP_ARRAY_LEN(wide)) ? 2 : 1;
}

/* Characters that control a terminal, or that change the reading direction of the text after
 * them. */
static bool is_unsafe(uint32_t cp)
{
    static const struct range unsafe[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200e, 0x200f},
        {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfff9, 0xfffb},
    };
    return in_ranges(cp, unsafe, GP_ARRAY_LEN(unsafe));
}

static void format_escape(struct gp_strbuf *sb, uint32_t cp)
{
    switch (cp) {
    case '\n':
        gp_strbuf_adds(sb, "\\n");
        break;
    case '\t':
        gp_strbuf_adds(sb, "\\t");
        break;
    case '\r':
        gp_strbuf_adds(sb, "\\r");
        break;
    default:
        gp_strbuf_addf(sb, cp < 0x100 ? "\\x%02x" : "\\u{%x}", cp);
    }
}

void gp_utf8_add_safe(struct gp_strbuf *sb, const char *s, size_t n, size_t max_cols)
{
    char room[16];
    size_t cols = 0;
    size_t cut = sb->len; /* up to here, "…" still fits after the text */
    for (size_t i = 0; i < n;) {
        /* Most text is plain: copy as much of it as leaves one column in one piece. */
        size_t plain = 0;
        while (i + plain < n && cols + plain + 1 < max_cols && s[i + plain] >= ' ' &&
               s[i + plain] <= '~')
            plain++;
        if (plain > 0) {
            gp_strbuf_add(sb, s + i, plain);
            cols += plain;
            cut = sb->len;
            i += plain;
            continue;
        }
        uint32_t cp;
        size_t len = gp_utf8_decode(s + i, n - i, &cp);
        struct gp_strbuf piece = {.buf = room, .cap = sizeof(room), .max = sizeof(room) - 1};
        room[0] = '\0';
        if (is_unsafe(cp))
            format_escape(&piece, cp);
        else if (cp == 0xfffd)
            gp_strbuf_adds(&piece, "\xef\xbf\xbd");
        else
            gp_strbuf_add(&piece, s + i, len);
        size_t width = is_unsafe(cp) ? piece.len : (size_t)gp_utf8_columns(cp);
        if (width > max_cols - cols) {
            if (max_cols > 0 && !sb->error) {
                gp_strbuf_truncate(sb, cut);
                gp_strbuf_adds(sb, "…");
            }
            return;
        }
        gp_strbuf_add(sb, piece.buf, piece.len);
        cols += width;
        if (cols < max_cols)
            cut = sb->len;
        i += len;
    }
}

/* Columns of s[0..n). */
static size_t columns_of(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp = (unsigned char)s[i];
        i += cp < 0x80 ? 1 : gp_utf8_decode(s + i, n - i, &cp);
        columns += cp < 0x80 ? 1 : (size_t)gp_utf8_columns(cp);
    }
    return columns;
}

size_t gp_utf8_width(const char *s)
{
    return columns_of(s, strlen(s));
}

void gp_utf8_add_padded(struct gp_strbuf *sb, const char *s, size_t cols, bool cut_left)
{
    size_t width = gp_utf8_width(s);
    if (cut_left && cols == 0)
        return;
    if (width > cols && cut_left) {
        gp_strbuf_adds(sb, "…");
        size_t n = strlen(s);
        while (width > cols - 1 && n > 0) {
            uint32_t cp;
            size_t len = gp_utf8_decode(s, n, &cp);
            width -= (size_t)gp_utf8_columns(cp);
            s += len;
            n -= len;
        }
        width++;
    }
    gp_strbuf_adds(sb, s);
    if (width < cols)
        gp_strbuf_fill(sb, ' ', cols - width);
}

void gp_utf8_add_line(struct gp_strbuf *sb, const char *s, size_t n, size_t columns)
{
    gp_utf8_add_safe(sb, s, n, columns > 0 ? columns : SIZE_MAX);
    gp_strbuf_addc(sb, '\n');
}

/* The length of the next word. If it does not fit on a line, it is cut after the last "|" that
 * does. */
static size_t word_length(const char *text, size_t n, size_t columns)
{
    size_t len = 0;
    size_t cut = 0;
    while (len < n && text[len] != ' ' && text[len] != '\n') {
        len++;
        if (text[len - 1] == '|' && len <= columns)
            cut = len;
    }
    return len > columns && cut > 0 ? cut : len;
}

void gp_utf8_add_hanging(struct gp_strbuf *sb, const char *s, size_t n, size_t column,
                         size_t indent, size_t columns)
{
    bool begins = true; /* a line */
    if (columns == 0)
        gp_strbuf_add(sb, s, n);
    for (size_t i = 0; columns > 0 && i < n;) {
        if (s[i] == ' ' || s[i] == '\n') {
            i++;
            continue;
        }
        size_t len = word_length(s + i, n - i, columns > indent ? columns - indent : 1);
        size_t width = columns_of(s + i, len);
        if (!begins && column + 1 + width > columns) {
            gp_strbuf_addc(sb, '\n');
            gp_strbuf_fill(sb, ' ', indent);
            column = indent;
        } else if (!begins && s[i - 1] != '|') {
            gp_strbuf_addc(sb, ' ');
            column++;
        }
        gp_strbuf_add(sb, s + i, len);
        column += width;
        begins = false;
        i += len;
    }
    gp_strbuf_addc(sb, '\n');
}

void gp_utf8_add_wrapped(struct gp_strbuf *sb, const char *s, size_t n, size_t indent,
                         size_t columns)
{
    gp_utf8_add_hanging(sb, s, n, indent, indent, columns);
}

static bool is_safe(const char *s)
{
    uint32_t cp;
    for (size_t n = strlen(s); n > 0;) {
        size_t len = gp_utf8_decode(s, n, &cp);
        if (is_unsafe(cp) || cp == 0xfffd)
            return false;
        s += len;
        n -= len;
    }
    return true;
}

void gp_utf8_add_shell_word(struct gp_strbuf *sb, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "=,.:+-_/@%";
    bool escaped = !is_safe(word);
    if (*word && word[strspn(word, plain)] == '\0') {
        gp_strbuf_adds(sb, word);
        return;
    }
    gp_strbuf_adds(sb, escaped ? "$'" : "'");
    for (const unsigned char *p = (const unsigned char *)word; *p; p++)
        if (escaped && (*p < ' ' || *p > '~'))
            gp_strbuf_addf(sb, "\\x%02x", *p);
        else if (escaped && (*p == '\'' || *p == '\\'))
            gp_strbuf_addf(sb, "\\%c", *p);
        else if (*p == '\'')
            gp_strbuf_adds(sb, "'\\''");
        else
            gp_strbuf_addc(sb, (char)*p);
    gp_strbuf_addc(sb, '\'');
}

void gp_utf8_copy_safe(char *to, size_t size, const char *s)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(size * 4 + 4096);
    gp_utf8_add_safe(&sb, s, strnlen(s, size), size);
    size_t n = sb.len < size ? sb.len : size - 1;
    while (n < sb.len && n > 0 && ((unsigned char)sb.buf[n] & 0xc0) == 0x80)
        n--; /* a character is copied whole or not at all */
    memcpy(to, sb.buf, n);
    to[n] = '\0';
    gp_strbuf_fini(&sb);
}
