#include "tui/term.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/strbuf.h"
#include "tui/keys.h"
#include "tui/looks.h"
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

/* The terminal is asked for its background once (xterm's OSC 11). Nothing waits for the answer:
 * frames are those for a dark background until it says otherwise. Only who gives the terminal back
 * before it had this time to answer waits, so that the answer is not typed into the shell. */
enum { ANSWER_MS = 200, ANSWER_SIZE = 32, KEY_ANSWER = KEY_MAX + 1 };
#define ASK_BACKGROUND "\033]11;?\033\\"
#define ANSWER_BEGIN "\033]11;"

/* Synchronized output: the terminal shows the frame at once, not line by line. A few changed cells
 * arrive at once anyway. */
enum { FEW_CELLS = 100, OUTPUT_MAX = 1 << 24 };
#define SYNC_BEGIN "\033[?2026h"
#define SYNC_END "\033[?2026l"

struct gp_term {
    SCREEN *screen;
    struct gp_cells shown; /* w is 0: unknown */
    struct gp_palette palette;
    struct gp_strbuf output;
    bool color, synchronized, mouse;
    struct gp_term_click click; /* the last click and its time */
    uint64_t click_ns;
    struct gp_colors colors;
    bool is_true_color; /* it shows 24-bit colors */
    uint64_t asked_ns;  /* for the background; 0: it was not asked */
    bool is_answered, is_answering, is_light;
    char answer[ANSWER_SIZE]; /* as far as it has come */
    size_t answer_n;
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

/* The terminal's string, or NULL. */
static const char *capability(const char *name)
{
    const char *text = tigetstr(name);
    return text && text != (const char *)-1 ? text : NULL;
}

/* Appends a terminal's string without its padding, "$<5>". */
static void add_string(struct gp_strbuf *sb, const char *text)
{
    while (text && *text) {
        size_t n = strcspn(text, "$");
        const char *end = strncmp(text + n, "$<", 2) == 0 ? strchr(text + n, '>') : NULL;
        gp_strbuf_add(sb, text, end ? n : strlen(text));
        text = end ? end + 1 : NULL;
    }
}

/* Terminals that show 24-bit colors say so here; most descriptions of terminals do not. */
static bool has_true_color(void)
{
    const char *value = getenv("COLORTERM");
    return value && (strcmp(value, "truecolor") == 0 || strcmp(value, "24bit") == 0);
}

static void add_attr(struct gp_strbuf *sb, enum gp_attr attr)
{
    add_string(sb, capability(attr == GP_ATTR_BOLD      ? "bold"
                              : attr == GP_ATTR_REVERSE ? "rev"
                                                        : "smul"));
}

static void add_color(struct gp_strbuf *sb, bool is_behind, int color)
{
    const char *set = capability(is_behind ? "setab" : "setaf");
    if (set)
        add_string(sb, tiparm(set, color));
}

static void place(struct gp_strbuf *sb, int x, int y)
{
    add_string(sb, tiparm(capability("cup"), y, x));
}

static void set_looks(struct gp_term *term)
{
    const struct gp_look_codes codes = {term->color ? tigetnum("colors") : 0, term->is_true_color,
                                        add_attr, add_color};
    gp_looks_set(term->palette.inks, &term->colors, term->is_light, &codes);
}

/* What does not depend on preferences. */
static void set_palette(struct gp_palette *palette)
{
    struct gp_strbuf sb = GP_STRBUF_ON(palette->reset, sizeof(palette->reset) - 1);
    /* the rest of xterm's would leave a set of line characters that is never entered */
    const char *all_off = capability("sgr0");
    add_string(&sb, all_off && strstr(all_off, "\033[m") ? "\033[m" : all_off);
    palette->place = strcmp(capability("cup"), "\033[%i%p1%d;%p2%dH") == 0 ? NULL : place;
    palette->spares_corner = tigetflag("am") > 0 && tigetflag("xenl") <= 0;
}

static void set_mouse(bool on)
{
    static const mmask_t events = BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED;
    (void)mousemask(on ? events : 0, NULL);
    (void)mouseinterval(0); /* we detect double clicks, so that ncurses does not delay clicks */
}

static void tell(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

/* Consoles and old terminals would show the question. */
static void ask_background(struct gp_term *term, bool is_old)
{
    if (!term->color || is_old || term->asked_ns || !gp_theme_asks(term->colors.theme))
        return;
    term->asked_ns = gp_clock_mono_ns();
    tell(ASK_BACKGROUND);
}

void gp_term_set(struct gp_term *term, const struct gp_prefs *prefs, const struct gp_colors *colors)
{
    const char *name = getenv("TERM");
    bool is_console = name && strcmp(name, "linux") == 0;
    /* On the console, ncurses would load libgpm and never unload it. */
    bool mouse = prefs->mouse && !is_console;
    term->palette.ascii = prefs->ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    term->palette.is_console = is_console;
    const bool is_old = !name || strncmp(name, "vt", 2) == 0 || is_console;
    term->synchronized = prefs->sync && !is_old;
    term->colors = *colors;
    set_looks(term);
    ask_background(term, is_old);
    if (term->mouse != mouse)
        set_mouse(mouse);
    term->mouse = mouse;
    gp_term_forget(term);
}

/* ---- the background ---- */

/* The answer is complete: a light background changes all colors. */
static void take_answer(struct gp_term *term)
{
    bool is_light;
    term->answer[term->answer_n] = '\0';
    term->is_answered = true;
    term->is_answering = false;
    if (!gp_theme_read_background(term->answer, &is_light) || is_light == term->is_light)
        return;
    term->is_light = is_light;
    set_looks(term);
    gp_term_forget(term);
}

/* Reads like get_wch(), except for the answer of the terminal, which may come in pieces. It ends
 * with BEL or with an escape and a backslash, and has no other characters than these, so that no
 * key is lost behind one that was cut. */
static int read_key(struct gp_term *term, wint_t *ret)
{
    for (;;) {
        int r = get_wch(ret);
        if (r == KEY_CODE_YES && *ret == KEY_ANSWER) {
            term->is_answering = true;
            term->answer_n = 0;
            continue;
        }
        if (r == ERR || !term->is_answering)
            return r;
        if (r == OK && *ret < 0x7f && strchr("0123456789abcdefABCDEFrg:/", (int)*ret) && *ret &&
            term->answer_n < ANSWER_SIZE - 1) {
            term->answer[term->answer_n++] = (char)*ret;
            continue;
        }
        const bool ends = r == OK && (*ret == '\a' || *ret == GP_KEY_ESCAPE);
        take_answer(term);
        if (!ends)
            return r;
        if (*ret == GP_KEY_ESCAPE && (r = get_wch(ret)) != ERR && *ret != '\\')
            return r;
    }
}

/* Waits for an answer that is still to come. */
static void await_answer(struct gp_term *term)
{
    const uint64_t end_ns = term->asked_ns + ANSWER_MS * GP_NS_PER_MS;
    wint_t key;
    while (term->asked_ns && !term->is_answered && gp_clock_mono_ns() < end_ns) {
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        const uint64_t left_ms = (end_ns - gp_clock_mono_ns()) / GP_NS_PER_MS;
        if (poll(&fd, 1, (int)left_ms + 1) <= 0 || !(fd.revents & POLLIN))
            return;
        while (read_key(term, &key) != ERR)
            continue;
    }
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

/* The one that has as many colors as the end of the name promises, of those that every system
 * describes. */
static const char *like(const char *name)
{
    static const char *const likes[][2] = {
        {"-256color", "xterm-256color"}, {"color", "xterm"}, {"-mono", "vt100"}, {"-m", "vt100"}};
    const char *more = getenv("COLORTERM");
    const size_t n = strlen(name);
    for (size_t i = 0; i < GP_ARRAY_LEN(likes) && !(more && *more); i++)
        if (n > strlen(likes[i][0]) && strcmp(name + n - strlen(likes[i][0]), likes[i][0]) == 0)
            return likes[i][1];
    return "xterm-256color";
}

/* Terminals unknown to terminfo mostly behave like a known one. */
static SCREEN *new_screen(void)
{
    const char *own = getenv("TERM");
    own = own && *own ? own : "unknown";
    const char *const names[] = {own, like(own), "xterm-256color", "xterm", "vt100"};
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
    (void)define_key(ANSWER_BEGIN, KEY_ANSWER);
}

int gp_term_open(const struct gp_prefs *prefs, const struct gp_colors *colors, bool color,
                 struct gp_term **ret, struct gp_err *err)
{
    struct gp_term *term = calloc(1, sizeof(*term));
    if (!term)
        return gp_err_set(err, GP_ENOMEM, "out of memory");
    bool has_termios = tcgetattr(STDIN_FILENO, &before) == 0;
    term->color = color;
    term->is_true_color = has_true_color();
    term->screen = has_termios ? new_screen() : NULL;
    if (!term->screen || !capability("clear") || !capability("cup")) {
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
    gp_strbuf_init(&term->output, OUTPUT_MAX);
    set_palette(&term->palette);
    gp_term_set(term, prefs, colors);
    /* Until its first endwin(), ncurses flushes at every cursor movement. The first frame opens the
     * terminal again. */
    (void)endwin();
    (void)reset_prog_mode();
    *ret = term;
    return 0;
}

void gp_term_close(struct gp_term *term)
{
    await_answer(term);
    (void)endwin();
    delscreen(term->screen);
    gp_cells_fini(&term->shown);
    gp_strbuf_fini(&term->output);
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
}

/* ---- output ---- */

/* Curses opens the screen if need be and clears it, and never learns what is shown from then on. */
static bool wipe(struct gp_term *term, int w, int h)
{
    if (gp_cells_resize(&term->shown, w, h) < 0)
        return false;
    if (term->palette.inks[GP_INK_PLAIN].start[0]) /* even blank cells must be written */
        memset(term->shown.cells, 0xff, (size_t)w * (size_t)h * sizeof(*term->shown.cells));
    if (term->synchronized)
        tell(SYNC_BEGIN);
    (void)clearok(stdscr, true);
    (void)erase();
    (void)refresh();
    return true;
}

void gp_term_flush(struct gp_term *term, const struct gp_cells *frame)
{
    struct gp_strbuf *sb = &term->output;
    const bool all = term->shown.w != frame->w || term->shown.h != frame->h;
    if (all && !wipe(term, frame->w, frame->h))
        return;
    gp_strbuf_reset(sb);
    const size_t changed = gp_paint(sb, &term->palette, &term->shown, frame);
    const bool synchronized = term->synchronized && (all || changed > FEW_CELLS);
    if (synchronized && !all)
        tell(SYNC_BEGIN);
    if (sb->error || gp_io_write_all(STDOUT_FILENO, sb->buf, sb->len) < 0)
        gp_term_forget(term);
    if (synchronized)
        tell(SYNC_END);
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
    int r = read_key(term, &c);
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
    r = read_key(term, &c); /* Alt sends an escape before the key */
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
    await_answer(term);
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
