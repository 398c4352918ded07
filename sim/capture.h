/* What nvidia-smi printed, in whichever of its forms, read into one tree. */
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
    struct sim_tree tree; /* <nvidia_smi_log>, whatever the form */
    struct gp_strbuf file;
    char *next; /* of the lines of the file: the first not yet taken */
    long line;  /* number of the one taken last */
};

/* Reads a file into a zeroed capture, recognised by its content. GP_EIO, or GP_EFORMAT with file
 * and line; end it with sim_capture_fini also after a failure. */
int sim_capture_read(struct sim_capture *capture, const char *path,
                     struct gp_err *err) GP_MUST_CHECK;
void sim_capture_fini(struct sim_capture *capture);

/* How the form is asked for: "nvidia-smi -q". */
const char *sim_form_command(enum sim_form form);

/* For the readers: takes the next line, without its end; NULL after the last. */
char *sim_capture_line(struct sim_capture *capture);

/* For the readers: says what is wrong with the line taken last. */
int sim_capture_refuse(const struct sim_capture *capture, struct gp_err *err, const char *fmt, ...)
    GP_PRINTF(3, 4);

/* One row of capture.def. */
struct sim_capture_row {
    const char *path, *label, *field;
};
extern const struct sim_capture_row sim_capture_rows[];
extern const size_t sim_capture_row_count;

/* The readers, one for each form. The lines up to and with the first that shows the form are taken;
 * the readers of text and CSV begin with that one, which is `line`. */
int sim_read_xml(struct sim_capture *capture, char *line, struct gp_err *err);
int sim_read_text(struct sim_capture *capture, char *line, struct gp_err *err);
int sim_read_csv(struct sim_capture *capture, char *line, struct gp_err *err);

/* Whether a line can be the first of that form. */
bool sim_is_text_start(const char *line);
bool sim_is_csv_header(const char *line);

#endif
