/* The commands; each has its own file. */
#ifndef GP_CMD_COMMANDS_H
#define GP_CMD_COMMANDS_H

#include "base/cli.h"

extern const struct gp_cmd gp_cmd_status;
extern const struct gp_cmd gp_cmd_ps;
extern const struct gp_cmd gp_cmd_kill;
extern const struct gp_cmd gp_cmd_reclaim;
extern const struct gp_cmd gp_cmd_suspend;
extern const struct gp_cmd gp_cmd_resume;
extern const struct gp_cmd gp_cmd_pick;
extern const struct gp_cmd gp_cmd_run;
extern const struct gp_cmd gp_cmd_queue;
extern const struct gp_cmd gp_cmd_explain;
extern const struct gp_cmd gp_cmd_bench;
extern const struct gp_cmd gp_cmd_doctor;
extern const struct gp_cmd gp_cmd_why;
extern const struct gp_cmd gp_cmd_advise;
extern const struct gp_cmd gp_cmd_mem;
extern const struct gp_cmd gp_cmd_fit_batch;
extern const struct gp_cmd gp_cmd_query;
extern const struct gp_cmd gp_cmd_set;
extern const struct gp_cmd gp_cmd_events;
extern const struct gp_cmd gp_cmd_record;
extern const struct gp_cmd gp_cmd_report;
extern const struct gp_cmd gp_cmd_diff;
extern const struct gp_cmd gp_cmd_replay;
extern const struct gp_cmd gp_cmd_serve;
extern const struct gp_cmd gp_cmd_sim;
extern const struct gp_cmd gp_cmd_demo;
extern const struct gp_cmd gp_cmd_smi;
extern const struct gp_cmd gp_cmd_top;
extern const struct gp_cmd gp_cmd_completion;

#endif
