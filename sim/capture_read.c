/* Reads a capture, in the form that its first line shows. */
#include "sim/capture.h"

#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FILE = 64 << 20 };

#define UTF8_MARK "\xef\xbb\xbf"

static const struct {
    const char *command;
    int (*read)(struct sim_capture *capture, char *line, struct gp_err *err);
} forms[] = {
    [SIM_FORM_XML] = {"nvidia-smi -q -x", sim_read_xml},
    [SIM_FORM_TEXT] = {"nvidia-smi -q", sim_read_text},
    [SIM_FORM_CSV] = {"nvidia-smi --query-gpu", sim_read_csv},
};

const char *sim_form_command(enum sim_form form)
{
    return forms[form].command;
}

static int read_file(struct sim_capture *capture, struct gp_err *err)
{
    struct gp_strbuf *sb = &capture->file;
    FILE *file = fopen(capture->path, "re");
    if (!file)
        return gp_err_system(err, errno, GP_EIO, "cannot open '%s'", capture->path);
    char chunk[16384];
    size_t n;
    while (!sb->error && (n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        gp_strbuf_add(sb, chunk, n);
    int result = GP_OK;
    if (ferror(file))
        result = gp_err_system(err, errno, GP_EIO, "cannot read '%s'", capture->path);
    else if (sb->error == GP_ETOOBIG)
        result =
            gp_err_set(err, GP_EFORMAT, "%s: larger than %d MiB", capture->path, MAX_FILE >> 20);
    else if (sb->error)
        result = gp_err_set(err, GP_ENOMEM, "out of memory");
    (void)fclose(file);
    return result;
}

/* Checks for lines of UTF-8 without control characters, of which the last one is complete. */
static int check_text(struct sim_capture *capture, struct gp_err *err)
{
    const char *limit = capture->file.buf + capture->file.len;
    const long before = capture->line;
    capture->line++;
    for (const char *s = capture->next; s < limit;) {
        uint32_t cp;
        size_t n = gp_utf8_decode(s, (size_t)(limit - s), &cp);
        if ((cp < ' ' && !strchr("\t\r\n", (int)cp)) || cp == 0 || cp == 0x7f ||
            (cp == 0xfffd && n == 1))
            return sim_capture_refuse(
                capture, err, "not a text: it contains the byte 0x%02x; a capture is %s",
                (unsigned int)(unsigned char)*s, "UTF-8, as nvidia-smi -q -x -f FILE writes it");
        capture->line += cp == '\n';
        s += n;
    }
    if (limit[-1] != '\n')
        return sim_capture_refuse(capture, err,
                                  "the line has no newline; was the capture cut off?");
    capture->line = before;
    return GP_OK;
}

/* ---- files of several outputs ---- */

#define RULE "########"

/* The output of the command in this line, "# $ nvidia-smi -q", which ends the heading of a section;
 * NULL: it is another one. */
static char *output_of(char *line, const char *words, bool is_whole)
{
    static const char start[] = "# $ nvidia-smi ";
    char *end = line + strcspn(line, "\n");
    size_t n = strlen(words);
    if (strncmp(line, start, strlen(start)) != 0 || strncmp(line + strlen(start), words, n) != 0 ||
        (is_whole &&
         strspn(line + strlen(start) + n, " \t\r") != (size_t)(end - (line + strlen(start) + n))))
        return NULL;
    if (*end && strncmp(end + 1, RULE, strlen(RULE)) == 0)
        end += 1 + strcspn(end + 1, "\n");
    return *end ? end + 1 : end;
}

/* The first section with this command; NULL: the file has none. */
static char *find_section(char *text, const char *words, bool is_whole)
{
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *output = output_of(line, words, is_whole);
        if (output)
            return output;
    }
    return NULL;
}

/* Collections such as those of nvidia_gpu_exporter have a section for each command. Leaves that of
 * the first -q or, if there is none, of the first --query-gpu. */
static void choose_section(struct sim_capture *capture)
{
    char *section = find_section(capture->next, "-q", true);
    if (!section)
        section = find_section(capture->next, "--query-gpu=", false);
    if (!section)
        return;
    char *end = strstr(section, "\n" RULE);
    if (end) {
        end[1] = '\0';
        capture->file.len = (size_t)(end + 1 - capture->file.buf);
    }
    for (const char *s = capture->next; s < section; s++)
        capture->line += *s == '\n';
    capture->next = section;
}

/* ---- one output ---- */

/* Finds the first line of the capture, which may follow the command that was typed. */
static int find_start(struct sim_capture *capture, char **ret_line, struct gp_err *err)
{
    if (strncmp(capture->next, UTF8_MARK, strlen(UTF8_MARK)) == 0)
        capture->next += strlen(UTF8_MARK);
    capture->line = 0;
    choose_section(capture);
    int result = check_text(capture, err);
    char *line = NULL;
    while (result == GP_OK && (line = sim_capture_line(capture))) {
        if (sim_is_text_start(line))
            capture->form = SIM_FORM_TEXT;
        else if (sim_is_csv_header(line))
            capture->form = SIM_FORM_CSV;
        else
            continue;
        *ret_line = line;
        return GP_OK;
    }
    if (result < 0)
        return result;
    capture->line = 1;
    return sim_capture_refuse(capture, err,
                              "not a capture: no output of nvidia-smi -q -x, -q, or "
                              "--query-gpu=uuid,pci.bus_id,… --format=csv");
}

/* XML starts with '<', possibly after a byte order mark. PowerShell converts it to UTF-16. */
static bool is_xml(const struct gp_strbuf *file)
{
    const char *s = file->buf;
    if (file->len >= 4 && (memcmp(s, "\xff\xfe", 2) == 0 || memcmp(s, "\xfe\xff", 2) == 0))
        return s[2] == '<' || s[3] == '<';
    if (strncmp(s, UTF8_MARK, strlen(UTF8_MARK)) == 0)
        s += strlen(UTF8_MARK);
    return s[strspn(s, " \t\r\n")] == '<';
}

int sim_capture_read(struct sim_capture *capture, const char *path, struct gp_err *err)
{
    gp_strbuf_init(&capture->file, MAX_FILE);
    capture->path = path;
    capture->line = 1;
    int result = read_file(capture, err);
    if (result == GP_OK && capture->file.len == 0)
        result = sim_capture_refuse(capture, err, "the file is empty");
    if (result < 0)
        return result;
    char *line = NULL;
    capture->next = capture->file.buf;
    if (is_xml(&capture->file))
        capture->form = SIM_FORM_XML;
    else
        result = find_start(capture, &line, err);
    return result < 0 ? result : forms[capture->form].read(capture, line, err);
}

void sim_capture_fini(struct sim_capture *capture)
{
    sim_tree_fini(&capture->tree);
    gp_strbuf_fini(&capture->file);
}
