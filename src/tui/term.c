#include "tui/term.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "tui/keys.h"
#include "tui/prefs.h"

#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

enum { DOUBLE_CLICK_MS = 400 };

/* Synchronized output: the terminal shows the frame at once, not line by line. Curses writes a few
 * changed cells at once anyway. */
enum { FEW_CELLS = 100 };
#define SYNC_BEGIN "\033[?2026h"
#define SYNC_END "\033[?2026l"

struct gp_term {
    SCREEN *screen;
    struct gp_cells shown; /* w is 0: unknown */
    bool color, ascii, synchronized, mouse;
    struct gp_term_click click; /* the last click and its time */
    uint64_t click_ns;
    attr_t looks[GP_INK__COUNT];
    short pairs[GP_INK__COUNT];
};

/* ---- crash handler ---- */

static struct termios before;
static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

static void on_crash(int sig)
{
    static const char reset[] = SYNC_END "\033[m\033[?1000l\033[?1006l\033[?1049l\033[?25h\033[?"
                                         "1l\033>\r\ngpulse top has crashed\r\n";
    (void)!write(STDOUT_FILENO, reset, sizeof(reset) - 1);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    (void)raise(sig); /* SA_RESETHAND: terminates the process this time */
}

static void catch_crashes(void)
{
    const struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < GP_ARRAY_LEN(crashes); i++)
        (void)sigaction(crashes[i], &action, NULL);
}

/* ---- looks ---- */

static attr_t attrs_of(unsigned attrs)
{
    return (attrs & GP_ATTR_BOLD ? A_BOLD : A_NORMAL) |
           (attrs & GP_ATTR_REVERSE ? A_REVERSE : A_NORMAL) |
           (attrs & GP_ATTR_UNDERLINE ? A_UNDERLINE : A_NORMAL);
}

static void set_looks(struct gp_term *term, enum gp_theme theme)
{
    const struct gp_look *looks = gp_theme_looks(theme);
    bool colored = term->color && has_colors();
    for (int i = 0; i < GP_INK__COUNT; i++) {
        const struct gp_look *look = &looks[i];
        short fg = look->fg < COLORS ? look->fg : look->fg_of_8;
        short bg = look->bg < COLORS ? look->bg : (short)(look->bg % 8);
        term->looks[i] = attrs_of(colored ? look->attrs : look->no_color);
        term->pairs[i] = 0;
        if (colored && (fg >= 0 || bg >= 0) && init_pair((short)(i + 1), fg, bg) == OK)
            term->pairs[i] = (short)(i + 1);
    }
}

static void set_mouse(bool on)
{
    static const mmask_t events = BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED;
    (void)mousemask(on ? events : 0, NULL);
    (void)mouseinterval(0); /* we detect double clicks, so that ncurses does not delay clicks */
}

void gp_term_set(struct gp_term *term, const struct gp_prefs *prefs)
{
    const char *name = getenv("TERM");
    bool is_console = name && strcmp(name, "linux") == 0;
    /* On the console, ncurses would load libgpm and never unload it. */
    bool mouse = prefs->mouse && !is_console;
    term->ascii = prefs->ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    term->synchronized = prefs->sync && name && strncmp(name, "vt", 2) != 0 && !is_console;
    set_looks(term, (enum gp_theme)prefs->theme);
    if (term->mouse != mouse)
        set_mouse(mouse);
    term->mouse = mouse;
    gp_term_forget(term);
}

/* ---- open and close ---- */

/* Whether terminfo knows the terminal. newterm() would report it too, but leaks memory. */
static bool is_known(const char *name)
{
    int found;
    if (setupterm(name, STDOUT_FILENO, &found) != OK)
        return false;
    (void)del_curterm(cur_term);
    return true;
}

/* Terminals unknown to terminfo mostly behave like a known one. */
static SCREEN *new_screen(void)
{
    const char *own = getenv("TERM");
    const char *const names[] = {own && *own ? own : "unknown", "xterm-256color", "xterm", "vt100"};
    if (strcmp(names[0], "dumb") == 0)
        return NULL;
    for (size_t i = 0; i < GP_ARRAY_LEN(names); i++)
        if (is_known(names[i]))
            return newterm(names[i], stdout, stdin);
    return NULL;
}

/* Key sequences that terminals send but terminfo does not list. */
static void define_keys(void)
{
    static const struct {
        const char *sent;
        int key;
    } keys[] = {
        {"\033[A", KEY_UP},     {"\033[B", KEY_DOWN},   {"\033[C", KEY_RIGHT},
        {"\033[D", KEY_LEFT},   {"\033[H", KEY_HOME},   {"\033[F", KEY_END},
        {"\033OH", KEY_HOME},   {"\033OF", KEY_END},    {"\033[1~", KEY_HOME},
        {"\033[4~", KEY_END},   {"\033[7~", KEY_HOME},  {"\033[8~", KEY_END},
        {"\033[11~", KEY_F(1)}, {"\033[12~", KEY_F(2)}, {"\033[13~", KEY_F(3)},
        {"\033[14~", KEY_F(4)},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++)
        if (key_defined(keys[i].sent) == 0)
            (void)define_key(keys[i].sent, keys[i].key);
}

static bool can_place(void)
{
    const char *clear = tigetstr("clear");
    const char *place = tigetstr("cup");
    return clear && clear != (char *)-1 && place && place != (char *)-1;
}

int gp_term_open(const struct gp_prefs *prefs, bool color, struct gp_term **ret, struct gp_err *err)
{
    struct gp_term *term = calloc(1, sizeof(*term));
    if (!term)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    bool has_termios = tcgetattr(STDIN_FILENO, &before) == 0;
    term->color = color;
    term->screen = has_termios ? new_screen() : NULL;
    if (!term->screen || !can_place()) {
        if (term->screen) {
            (void)endwin();
            delscreen(term->screen);
        }
        free(term);
        return gp_err_set(err, GP_EFAIL, "this terminal does not support cursor addressing");
    }
    catch_crashes();
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)nodelay(stdscr, true);
    (void)keypad(stdscr, true);
    define_keys();
    (void)set_escdelay(25);
    (void)typeahead(-1);
    (void)curs_set(0);
    if (has_colors()) {
        (void)start_color();
        (void)use_default_colors();
    }
    gp_term_set(term, prefs);
    /* Until its first endwin(), ncurses flushes at every cursor movement. The first frame opens the
     * terminal again. */
    (void)endwin();
    (void)reset_prog_mode();
    *ret = term;
    return 0;
}

void gp_term_close(struct gp_term *term)
{
    (void)endwin();
    delscreen(term->screen);
    gp_cells_fini(&term->shown);
    free(term);
}

void gp_term_size(struct gp_term *term, int *ret_w, int *ret_h)
{
    (void)term;
    *ret_w = COLS;
    *ret_h = LINES;
}

void gp_term_forget(struct gp_term *term)
{
    gp_cells_fini(&term->shown);
    (void)clearok(stdscr, true);
}

/* ---- output ---- */

static uint32_t glyph(const struct gp_term *term, uint32_t cp)
{
    return term->ascii ? gp_cell_ascii(cp) : cp;
}

static bool same(const struct gp_cell *a, const struct gp_cell *b)
{
    return a->cp == b->cp && a->ink == b->ink;
}

static void put_cell(struct gp_term *term, const struct gp_cell *cell, int x, int y)
{
    cchar_t c;
    if (!cell->cp && !term->ascii)
        return; /* already drawn by the wide character before it */
    const wchar_t text[2] = {(wchar_t)(cell->cp ? glyph(term, cell->cp) : ' '), 0};
    (void)setcchar(&c, text, term->looks[cell->ink], term->pairs[cell->ink], NULL);
    (void)mvadd_wchnstr(y, x, &c, 1);
}

/* Whether an erased screen shows it already. */
static bool is_blank(const struct gp_term *term, const struct gp_cell *cell)
{
    return cell->cp == ' ' && term->looks[cell->ink] == A_NORMAL && term->pairs[cell->ink] == 0;
}

/* Returns the number of changed cells, which are now the shown ones. */
static size_t put_changes(struct gp_term *term, const struct gp_cells *cells, bool all)
{
    size_t changed = 0;
    for (int y = 0; y < cells->h; y++) {
        const struct gp_cell *row = &cells->cells[(size_t)y * (size_t)cells->w];
        struct gp_cell *old = &term->shown.cells[(size_t)y * (size_t)cells->w];
        const size_t bytes = (size_t)cells->w * sizeof(*row);
        if (!all && memcmp(row, old, bytes) == 0)
            continue;
        for (int x = 0; x < cells->w; x++)
            if (all ? !is_blank(term, &row[x]) : !same(&row[x], &old[x])) {
                put_cell(term, &row[x], x, y);
                changed++;
            }
        memcpy(old, row, bytes);
    }
    return changed;
}

void gp_term_flush(struct gp_term *term, const struct gp_cells *cells)
{
    bool all = term->shown.w != cells->w || term->shown.h != cells->h;
    if (all && gp_cells_resize(&term->shown, cells->w, cells->h) < 0)
        return;
    if (all)
        (void)erase();
    const size_t changed = put_changes(term, cells, all);
    if (changed == 0 && !all)
        return;
    const bool synchronized = term->synchronized && (all || changed > FEW_CELLS);
    (void)wnoutrefresh(stdscr);
    if (synchronized)
        (void)!write(STDOUT_FILENO, SYNC_BEGIN, sizeof(SYNC_BEGIN) - 1);
    (void)doupdate();
    if (synchronized)
        (void)!write(STDOUT_FILENO, SYNC_END, sizeof(SYNC_END) - 1);
}

/* ---- input ---- */

static int from_curses(int key)
{
    static const struct {
        int from, to;
    } keys[] = {
        {KEY_UP, GP_KEY_UP},           {KEY_DOWN, GP_KEY_DOWN},           {KEY_LEFT, GP_KEY_LEFT},
        {KEY_RIGHT, GP_KEY_RIGHT},     {KEY_HOME, GP_KEY_HOME},           {KEY_END, GP_KEY_END},
        {KEY_PPAGE, GP_KEY_PAGE_UP},   {KEY_NPAGE, GP_KEY_PAGE_DOWN},     {KEY_ENTER, GP_KEY_ENTER},
        {KEY_RESIZE, GP_TERM_RESIZED}, {KEY_BACKSPACE, GP_KEY_BACKSPACE},
    };
    for (size_t i = 0; i < GP_ARRAY_LEN(keys); i++)
        if (keys[i].from == key)
            return keys[i].to;
    if (key >= KEY_F(1) && key <= KEY_F(12))
        return GP_KEY_F1 + (key - KEY_F(1));
    return GP_KEY_UNKNOWN;
}

static bool is_closed(void)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR | POLLNVAL));
}

struct gp_term_click gp_term_click(const struct gp_term *term)
{
    return term->click;
}

/* The wheel moves like the keys do. */
static int take_mouse(struct gp_term *term)
{
    MEVENT event;
    if (getmouse(&event) != OK)
        return GP_KEY_UNKNOWN;
    if (event.bstate & BUTTON4_PRESSED)
        return GP_KEY_UP;
    if (event.bstate & BUTTON5_PRESSED)
        return GP_KEY_DOWN;
    if (!(event.bstate & BUTTON1_PRESSED))
        return GP_KEY_UNKNOWN;
    uint64_t now_ns = gp_clock_mono_ns();
    bool again = event.x == term->click.x && event.y == term->click.y &&
                 now_ns - term->click_ns < DOUBLE_CLICK_MS * GP_NS_PER_MS;
    term->click = (struct gp_term_click){event.x, event.y, again};
    term->click_ns = again ? 0 : now_ns;
    return GP_KEY_MOUSE;
}

int gp_term_key(struct gp_term *term)
{
    wint_t c;
    int r = get_wch(&c);
    if (r == ERR)
        return is_closed() ? GP_TERM_CLOSED : 0;
    if (r == KEY_CODE_YES)
        return c == KEY_MOUSE ? take_mouse(term) : from_curses((int)c);
    if (c == '\n')
        return GP_KEY_ENTER;
    if (c == '\b')
        return GP_KEY_BACKSPACE;
    if (c != GP_KEY_ESCAPE)
        return (int)c;
    r = get_wch(&c); /* Alt sends an escape before the key */
    return r == OK ? GP_KEY_ALT + (int)c : GP_KEY_ESCAPE;
}

/* Stops with the signal that the shell expects. A process without a shell that could continue it
 * (started in its own terminal window) is in an orphaned process group, so the kernel ignores the
 * signal. */
static void stop(void)
{
    const struct sigaction stop = {.sa_handler = SIG_DFL};
    struct sigaction ours;
    sigset_t set;
    sigset_t mask;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTSTP);
    (void)sigaction(SIGTSTP, &stop, &ours);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &set, &mask);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)sigaction(SIGTSTP, &ours, NULL);
}

void gp_term_suspend(struct gp_term *term)
{
    (void)endwin();
    stop();
    (void)refresh();
    gp_term_forget(term);
}

void gp_term_resume(struct gp_term *term)
{
    (void)reset_prog_mode();
    gp_term_forget(term);
}
