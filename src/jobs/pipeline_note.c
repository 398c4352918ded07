#include "jobs/pipeline_run.h"

#include "base/err.h"
#include "base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void gp_pipeline_find_note(struct gp_pipeline_run *run)
{
    char folder[GP_PATH_SIZE];
    if (gp_io_user_folder(folder, "XDG_STATE_HOME", ".local/state", "pipelines") &&
        gp_io_make_folders(folder) == 0)
        (void)snprintf(run->note, sizeof(run->note), "%.4000s/%016llx.json", folder,
                       (unsigned long long)gp_hash(GP_HASH_INIT, run->pipeline->path));
}

/* The kernel releases the lock when the process terminates, however that happens. The file stays:
 * removing it would let two processes lock two files of the same name. */
int gp_pipeline_lock(const struct gp_pipeline_run *run, struct gp_err *err)
{
    char path[GP_PATH_SIZE + 8];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    (void)snprintf(path, sizeof(path), "%s.lock", run->note);
    int fd = run->note[0] ? gp_outfile_create(path, 0, 0600, NULL) : -1;
    if (fd < 0 || fcntl(fd, F_SETLK, &lock) == 0 || (errno != EACCES && errno != EAGAIN))
        return 0;
    (void)fcntl(fd, F_GETLK, &lock);
    (void)close(fd);
    if (lock.l_type == F_UNLCK) /* it has exited meanwhile */
        return gp_pipeline_lock(run, err);
    return gp_err_set(err, GP_EBUSY,
                      "%s is already running, as process %d; wait until it has finished",
                      run->pipeline->path, (int)lock.l_pid);
}

uint64_t gp_pipeline_read_note(struct gp_pipeline_run *run)
{
    json_t *note = run->note[0] ? json_load_file(run->note, 0, NULL) : NULL;
    uint64_t set = 0;
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(note, "done"), i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        json_int_t hash = json_integer_value(json_object_get(entry, "hash"));
        json_int_t batch = json_integer_value(json_object_get(entry, "batch"));
        size_t at = name ? gp_pipeline_find(run->pipeline, name) : GP_STEPS_MAX;
        if (at == GP_STEPS_MAX || hash != (json_int_t)run->pipeline->steps[at].hash ||
            (run->pipeline->steps[at].is_fit && batch <= 0))
            continue;
        run->batches[at] = (uint64_t)batch;
        set |= gp_step_bit(at);
    }
    json_decref(note);
    return set;
}

int gp_pipeline_write_note(const struct gp_pipeline_run *run, struct gp_err *err)
{
    const struct gp_steps *graph = &run->pipeline->graph;
    uint64_t set = gp_steps_in(graph, GP_STEP_OK) | gp_steps_in(graph, GP_STEP_OK_BEFORE);
    json_t *done = json_array();
    for (size_t i = 0; i < graph->count; i++)
        if (gp_steps_has(set, i))
            (void)json_array_append_new(done, json_pack("{s:s, s:I, s:I}", "name",
                                                        run->pipeline->steps[i].name, "hash",
                                                        (json_int_t)run->pipeline->steps[i].hash,
                                                        "batch", (json_int_t)run->batches[i]));
    json_t *note = json_pack("{s:s, s:s, s:o}", "schema", "gpulse.pipeline/1", "file",
                             run->pipeline->path, "done", done);
    char *text = note ? json_dumps(note, JSON_INDENT(2)) : NULL;
    int r = text ? 0 : gp_err_set(err, GP_ENOMEM, "out of memory");
    if (text && run->note[0])
        r = gp_outfile_replace(run->note, 0600, text, strlen(text), true, err);
    free(text);
    json_decref(note);
    return r;
}
