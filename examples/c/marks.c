/* Reports what it does, and its steps, to the timeline of its job: gpulse run --timeline FILE --
 * marks */
#include <gpulse/gpulse.h>

#include <stdio.h>
#include <time.h>

int main(void)
{
    const struct timespec work = {.tv_nsec = 20 * 1000 * 1000};
    for (int epoch = 0; epoch < 3; epoch++) {
        char name[32];
        snprintf(name, sizeof(name), "epoch %d", epoch);
        gpulse_mark(name);
        gpulse_range_push("step");
        gpulse_range_push("load");
        nanosleep(&work, NULL);
        gpulse_range_pop();
        nanosleep(&work, NULL);
        gpulse_range_pop();
        gpulse_step();
    }
    return 0;
}
