/* What is written to a terminal: bytes of small changes, and what a terminal shows after many
 * frames. */
#include "unit.h"

#include "base/strbuf.h"
#include "base/utf8.h"
#include "tui/paint.h"

enum { W = 23, H = 5 };

/* Inks with the looks "", "a", "b", …, of which some need a reset in between. */
static struct gp_palette palette_of_letters(void)
{
    struct gp_palette palette = {.reset = "\033[m"};
    for (int i = 1; i < GP_INK__COUNT; i++) {
        (void)snprintf(palette.inks[i].start, sizeof(palette.inks[i].start), "\033[3%dm", i);
        palette.inks[i].replaces = i % 2 == 0;
    }
    return palette;
}

static struct gp_cells frame_of(const char *text)
{
    struct gp_cells cells = {0, 0, NULL};
    assert_int_equal(gp_cells_resize(&cells, W, H), 0);
    (void)gp_draw(&(struct gp_box){&cells, 0, 0, W, H}, 0, 0, GP_INK_PLAIN, text);
    return cells;
}

static void color(struct gp_cells *cells, int x, int n, enum gp_ink ink)
{
    for (int i = x; i < x + n; i++)
        cells->cells[i].ink = ink;
}

/* Paints the first line from one text to another one, with inks. */
static void check_bytes(const struct gp_palette *palette, const char *from, const char *to,
                        const char *inks, const char *bytes)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_cells shown = frame_of(from);
    struct gp_cells frame = frame_of(to);
    for (int i = 0; inks[i]; i++)
        color(&frame, i, 1, (enum gp_ink)(inks[i] - '0'));
    (void)gp_paint(&sb, palette, &shown, &frame);
    assert_string_equal(sb.buf, bytes);
    assert_memory_equal(shown.cells, frame.cells, sizeof(*frame.cells) * W * H);
    sb.len = 0;
    assert_int_equal(gp_paint(&sb, palette, &shown, &frame), 0);
    assert_int_equal(sb.len, 0);
    gp_cells_fini(&shown);
    gp_cells_fini(&frame);
    gp_strbuf_fini(&sb);
}

static void only_what_changed_is_written(void **state)
{
    (void)state;
    const struct gp_palette palette = palette_of_letters();
    check_bytes(&palette, "same", "same", "", "");
    check_bytes(&palette, "12:04:59", "12:05:00", "", "\033[1;5H5:00");
    check_bytes(&palette, "a...b", "A...B", "", "\033[1;1HA...B");
    check_bytes(&palette, "a....b", "A....B", "", "\033[1;1HA\033[4CB");
    check_bytes(&palette, "a....b", "°....B", "", "\033[1;1H°\033[1;6HB");
    check_bytes(&palette, "a....b", "⣀....B", "", "\033[1;1H⣀\033[4CB");
    check_bytes(&palette, "a.........b", "A.........B", "20000000003",
                "\033[1;1H\033[32mA\033[9C\033[m\033[33mB\033[m");
    check_bytes(&palette, "ab", "ab", "22", "\033[1;1H\033[32mab\033[m");
    check_bytes(&palette, "", "abc", "242", "\033[1;1H\033[32ma\033[34mb\033[32mc\033[m");
    check_bytes(&palette, "", "abc", "232",
                "\033[1;1H\033[32ma\033[m\033[33mb\033[m\033[32mc\033[m");
    check_bytes(&palette, "", "abc", "202", "\033[1;1H\033[32ma\033[mb\033[32mc\033[m");
    check_bytes(&palette, "", "é€\U0001f600x", "", "\033[1;1Hé€\U0001f600x");
    check_bytes(&palette, "\U0001f600x", "abx", "", "\033[1;1Hab");
    check_bytes(&palette, "abx", "\U0001f600x", "", "\033[1;1H\U0001f600");
}

/* Terminals differ in where the cursor is after the last column, and some scroll after the last
 * cell. */
static void the_cursor_is_placed_after_the_last_column(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    struct gp_palette palette = palette_of_letters();
    for (int spares = 0; spares < 2; spares++) {
        struct gp_cells shown = frame_of("");
        struct gp_cells frame = frame_of("");
        palette.spares_corner = spares;
        frame.cells[W - 1].cp = 'a';
        frame.cells[W].cp = 'b';
        frame.cells[W * H - 1].cp = 'c';
        gp_strbuf_reset(&sb);
        assert_int_equal(gp_paint(&sb, &palette, &shown, &frame), spares ? 2 : 3);
        assert_string_equal(sb.buf,
                            spares ? "\033[1;23Ha\033[2;1Hb" : "\033[1;23Ha\033[2;1Hb\033[5;23Hc");
        gp_cells_fini(&shown);
        gp_cells_fini(&frame);
    }
    gp_strbuf_fini(&sb);
}

static void place_in_words(struct gp_strbuf *sb, int x, int y)
{
    gp_strbuf_addf(sb, "<%d,%d>", x, y);
}

static void a_terminal_places_the_cursor_in_its_own_way(void **state)
{
    (void)state;
    struct gp_palette palette = palette_of_letters();
    palette.place = place_in_words;
    check_bytes(&palette, "a.....b", "A.....B", "", "<0,0>A<6,0>B");
}

static void only_ascii_reaches_a_terminal_that_shows_nothing_else(void **state)
{
    (void)state;
    struct gp_palette palette = palette_of_letters();
    palette.ascii = true;
    check_bytes(&palette, "", "─\U0001f600é", "", "\033[1;1H-? ?");
    check_bytes(&palette, "abc", "\U0001f600c", "", "\033[1;1H? ");
}

/* No name of a process can control the terminal, even if it got into the frame. */
static void control_characters_are_never_written(void **state)
{
    (void)state;
    for (int ascii = 0; ascii < 2; ascii++)
        for (uint32_t cp = 1; cp < 0xa0; cp++) {
            struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
            struct gp_palette palette = palette_of_letters();
            struct gp_cells shown = frame_of("\xc2\xa1");
            struct gp_cells frame = frame_of("");
            palette.ascii = ascii;
            frame.cells[0].cp = cp;
            (void)gp_paint(&sb, &palette, &shown, &frame);
            bool is_shown = cp >= ' ' && cp < 0x7f;
            char expected[] = {"\033[1;1H?"};
            expected[6] = is_shown ? (char)cp : '?';
            assert_string_equal(sb.buf, expected);
            gp_cells_fini(&shown);
            gp_cells_fini(&frame);
            gp_strbuf_fini(&sb);
        }
}

/* ---- a small terminal ---- */

static struct screen {
    struct gp_cell cells[H][W]; /* the ink counts from the last reset on */
    int x, y;
    uint32_t ink;
} screen;

static void obey(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        int a = 0;
        int b = 0;
        int used = 0;
        uint32_t cp;
        if (sscanf(s + i, "\033[%d;%dH%n", &a, &b, &used) == 2 && used) {
            screen.y = a - 1;
            screen.x = b - 1;
        } else if (strncmp(s + i, "\033[C", 3) == 0 || strncmp(s + i, "\033[B", 3) == 0 ||
                   (sscanf(s + i, "\033[%d%*[BC]%n", &a, &used) == 1 && used)) {
            used = used ? used : 3;
            a = a ? a : 1;
            *(s[i + (size_t)used - 1] == 'B' ? &screen.y : &screen.x) += a;
            assert_true(screen.x > 0 && screen.x < W && screen.y < H);
        } else if (s[i] == '\b') {
            assert_true(screen.x > 0);
            screen.x--;
            used = 1;
        } else if (sscanf(s + i, "\033[3%dm%n", &a, &used) == 1 && used) {
            /* what needs a reset adds to what is on: that would be seen */
            bool adds = screen.ink && (a % 2 || screen.ink % 2);
            screen.ink = adds ? 99 : (uint32_t)a;
        } else if (strncmp(s + i, "\033[m", 3) == 0) {
            screen.ink = 0;
            used = 3;
        } else {
            used = (int)gp_utf8_decode(s + i, n - i, &cp);
            int w = gp_utf8_columns(cp);
            assert_true(cp >= ' ' && screen.x >= 0 && screen.x + w <= W);
            struct gp_cell *cell = &screen.cells[screen.y][screen.x];
            if (!cell->cp)
                cell[-1].cp = ' ';
            if (screen.x + w < W && !cell[w].cp)
                cell[w].cp = ' ';
            cell[0] = (struct gp_cell){cp & 0xffffff, screen.ink & 0xff};
            if (w == 2)
                cell[1] = (struct gp_cell){0, screen.ink & 0xff};
            screen.x += w;
        }
        i += (size_t)used;
    }
}

static void a_terminal_shows_each_frame(void **state)
{
    (void)state;
    static const char *const words[] = {"",  "GPU", "⣀⣀", "\U0001f600", "漢字",
                                        "0", "x y", "──", " "};
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    const struct gp_palette palette = palette_of_letters();
    struct gp_cells shown = frame_of("");
    struct gp_cells frame = frame_of("");
    const struct gp_box box = {&frame, 0, 0, W, H};
    unsigned seed = 1;
    size_t total = 0;
    memcpy(screen.cells, shown.cells, sizeof(screen.cells));
    for (int n = 0; n < 20000; n++) {
        for (int i = rand_r(&seed) % 4; i > 0; i--) {
            int x = rand_r(&seed) % W;
            int y = rand_r(&seed) % H;
            enum gp_ink ink = (enum gp_ink)(rand_r(&seed) % GP_INK__COUNT);
            (void)gp_draw(&box, x, y, ink, words[(size_t)rand_r(&seed) % GP_ARRAY_LEN(words)]);
            if (rand_r(&seed) % 20 == 0)
                gp_draw_ink(&box, y, ink);
            if (rand_r(&seed) % 50 == 0)
                gp_cells_clear(&frame);
        }
        gp_strbuf_reset(&sb);
        screen.x = -1;
        (void)gp_paint(&sb, &palette, &shown, &frame);
        obey(sb.buf, sb.len);
        total += sb.len;
        assert_int_equal(screen.ink, 0);
        assert_memory_equal(screen.cells, frame.cells, sizeof(screen.cells));
    }
    assert_true(total > 20000);
    gp_cells_fini(&shown);
    gp_cells_fini(&frame);
    gp_strbuf_fini(&sb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_changed_is_written),
        cmocka_unit_test(the_cursor_is_placed_after_the_last_column),
        cmocka_unit_test(a_terminal_places_the_cursor_in_its_own_way),
        cmocka_unit_test(only_ascii_reaches_a_terminal_that_shows_nothing_else),
        cmocka_unit_test(control_characters_are_never_written),
        cmocka_unit_test(a_terminal_shows_each_frame),
    };
    return cmocka_run_group_tests_name("paint", tests, NULL, NULL);
}
