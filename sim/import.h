/* Converts nvidia-smi's output from any machine (a capture) into a machine file. */
#ifndef GPULSE_SIM_IMPORT_H
#define GPULSE_SIM_IMPORT_H

#include <jansson.h>

struct gp_err;

/* Reads the capture at `path`: the XML of `nvidia-smi -q -x` (DTD v10 to v13), the text of `-q` or
 * some of its sections, or the CSV of `--query-gpu`. *ret_machine is a new machine document for
 * sim_machine_load. GP_EFORMAT has the file and line. */
int sim_import(const char *path, json_t **ret_machine, struct gp_err *err);

/* Merges an overlay file into a machine document: its "answers", "fields" and "lists" are merged
 * into every device, the other members ("workload", "faults", "seed", "latency_us", "source",
 * "topology") replace those of the machine. */
int sim_import_overlay(json_t *machine, const char *path, struct gp_err *err);

#endif
