/* Explains the errors at the end of a failed job's output, other than those about memory. */
#ifndef GP_CMD_RUN_EXPLAIN_H
#define GP_CMD_RUN_EXPLAIN_H

struct gp_tail;
struct gp_watch;

/* Prints what the first known error means, or nothing if there is none. */
void gp_run_explain(struct gp_watch *watch, const struct gp_tail *tail);

#endif
