/* Marks, ranges and steps of the job that this process belongs to. */
#include "gpulse/gpulse.h"

#include "base/marks.h"

/* Keeps these ranges apart from those of NVTX. */
enum { DOMAIN_ID = 1 };

void gpulse_mark(const char *name)
{
    if (name)
        gp_marks_mark("", name);
}

void gpulse_range_push(const char *name)
{
    /* Without a name it is a range, too: its pop must not end another one. */
    (void)gp_marks_push(DOMAIN_ID, "", name ? name : "");
}

void gpulse_range_pop(void)
{
    (void)gp_marks_pop(DOMAIN_ID);
}

void gpulse_step(void)
{
    gp_marks_step();
}
