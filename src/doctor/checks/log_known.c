/* Known errors in the logs that no other check has reported. */
#include "doctor/checks/log_show.h"
#include "doctor/exam.h"
#include "doctor/explain/explain_line.h"
#include "doctor/readers/gpuset.h"
#include "doctor/readers/log.h"
#include "model/snapshot.h"

#include <string.h>

/* Whether one of these checks has found something at least this severe. */
static bool has_found(const struct gp_exam *exam, const char *list, enum gp_verdict least)
{
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        if (f->verdict >= least && gp_exam_is_listed(list, f->check->id))
            return true;
    return false;
}

/* The line behind the time that the kernel prints. */
static const char *words_of(const char *line)
{
    const char *end = line[0] == '[' ? strstr(line, "] ") : NULL;
    return end ? end : line;
}

/* Whether a finding quotes the line. */
static bool is_quoted(const struct gp_exam *exam, const struct gp_log_known *known)
{
    for (const struct gp_finding *f = exam->findings; f; f = f->next)
        for (const struct gp_evidence *e = f->evidence; e; e = e->next)
            if (f->verdict >= GP_VERDICT_WARN && strcmp(e->where, known->where) == 0 &&
                strstr(known->text, words_of(e->text)))
                return true;
    return false;
}

/* Whether all NVIDIA GPUs are meant for virtual machines: then programs here have none. */
static bool is_handed_over(const struct gp_exam *exam)
{
    const struct gp_machine *m = &exam->machine;
    for (size_t i = 0; i < m->gpu_count; i++)
        if (m->gpus[i].vendor == GP_PCI_NVIDIA && strcmp(m->gpus[i].driver, "vfio-pci") != 0)
            return false;
    return m->nvidia_count > 0;
}

/* Whether another check has reported what the line is about, or what it follows from: when NVIDIA's
 * driver or its hardware has failed, its messages are consequences. */
static bool is_told(const struct gp_exam *exam, const struct gp_log_known *known)
{
    bool is_of_driver = gp_exam_is_listed("kernel,modules,driver", known->family);
    return known->is_told || is_quoted(exam, known) ||
           has_found(exam, known->look, GP_VERDICT_WARN) ||
           (is_of_driver && has_found(exam, "driver,hardware", GP_VERDICT_FAIL)) ||
           (!gp_exam_is_listed("amd,intel,virtual", known->family) && is_handed_over(exam));
}

/* A module was refused, but is loaded now; or the module that a line names has been replaced. */
static bool is_past(const struct gp_exam *exam, const struct gp_log_known *known)
{
    const char *driver = exam->machine.driver;
    if (strcmp(known->family, "modules") == 0)
        return exam->machine.is_driver_loaded &&
               gp_files_exist(&exam->files, "/sys/module/nvidia_uvm");
    return strcmp(known->id, "nv.version") == 0 && driver[0] && !strstr(known->text, driver);
}

/* Whether the driver reports that every GPU works now. */
static bool is_well(const struct gp_exam *exam)
{
    const struct gp_snapshot *snapshot = exam->snapshot;
    size_t count = snapshot ? snapshot->device_count : 0;
    for (size_t i = 0; i < count; i++)
        if (snapshot->devices[i].status != GP_STATUS_OK)
            return false;
    return count > 0 && count >= exam->machine.nvidia_count;
}

static bool has_log(struct gp_exam *exam)
{
    const struct gp_log *log = gp_log_of(exam);
    return (exam->machine.gpu_count > 0 || exam->machine.is_driver_loaded ||
            exam->machine.is_wsl) &&
           (log->path || log->known_count > 0);
}

/* The last check: known errors in the logs that no other check has reported. */
static void check_known(struct gp_exam *exam)
{
    enum { SHOWN = 8, MANY = 10 };
    const struct gp_log *log = gp_log_of(exam);
    size_t shown = 0;
    for (size_t i = 0; i < log->known_count && shown < SHOWN; i++) {
        const struct gp_log_known *known = &log->known[i];
        struct gp_explanation e;
        if (is_told(exam, known) || is_past(exam, known) ||
            !gp_explain_line(&exam->arena, known->text, &e))
            continue;
        if (gp_log_report_early(exam, known)) {
            shown++;
            continue;
        }
        enum gp_verdict verdict = known->verdict;
        if ((verdict == GP_VERDICT_FAIL && is_well(exam)) ||
            (verdict == GP_VERDICT_INFO && known->times >= MANY))
            verdict = GP_VERDICT_WARN;
        gp_exam_report(exam, verdict, "%s%s", e.words,
                       known->times > 1 ? gp_exam_text(exam, " (logged %llu times)", known->times)
                                        : "");
        gp_log_show_known(exam, known);
        if (e.maybe[0])
            gp_exam_advice(exam, "maybe: %s", e.maybe);
        if (e.check[0])
            gp_exam_advice(exam, "to tell: %s", e.check);
        gp_exam_advice(exam, "%s", e.advice);
        shown++;
    }
}

const struct gp_check gp_checks_known[] = {
    {"log.known", "the logs have no other known error of a GPU", {NULL}, has_log, check_known},
    {0},
};
