/* Reads nvidia-smi's output, in any of its formats, into one tree. */
#ifndef GPULSE_SIM_CAPTURE_H
#define GPULSE_SIM_CAPTURE_H

#include "base/strbuf.h"
#include "sim/node.h"

struct gp_err;

enum sim_form {
    SIM_FORM_XML,  /* -q -x */
    SIM_FORM_TEXT, /* -q, or sections of it: -q -d … */
    SIM_FORM_CSV,  /* --query-gpu=… --format=csv, with its header */
};

struct sim_capture {
    const char *path;
    enum sim_form form;
    struct sim_tree tree; /* <nvidia_smi_log>, for all formats */
    struct gp_strbuf file;
    char *next; /* the next line of the file */
    long line;  /* number of the previous line */
};

/* Reads a file into a zeroed capture, and detects its format. Fails with GP_EIO, or with GP_EFORMAT
 * and the file and line. Call sim_capture_fini() also after a failure. */
int sim_capture_read(struct sim_capture *capture, const char *path,
                     struct gp_err *err) GP_MUST_CHECK;
void sim_capture_fini(struct sim_capture *capture);

/* The command that prints the format: "nvidia-smi -q". */
const char *sim_form_command(enum sim_form form);

/* For the readers: returns the next line without its newline; NULL after the last. */
char *sim_capture_line(struct sim_capture *capture);

/* For the readers: reports an error in the previous line. */
int sim_capture_refuse(const struct sim_capture *capture, struct gp_err *err, const char *fmt, ...)
    GP_PRINTF(3, 4);

/* One row of capture.def. */
struct sim_capture_row {
    const char *path, *label, *field;
};
extern const struct sim_capture_row sim_capture_rows[];
extern const size_t sim_capture_row_count;

/* The readers, one for each format. The lines up to and including the first that identifies the
 * format were read; the readers of text and CSV start with that one, `line`. */
int sim_read_xml(struct sim_capture *capture, char *line, struct gp_err *err);
int sim_read_text(struct sim_capture *capture, char *line, struct gp_err *err);
int sim_read_csv(struct sim_capture *capture, char *line, struct gp_err *err);

/* Whether a line can be the first of that format. */
bool sim_is_text_start(const char *line);
bool sim_is_csv_header(const char *line);

#endif
