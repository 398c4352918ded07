/* Waits for errors of GPUs, and explains each: events [TIMES] */
#include <gpulse/gpulse.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static void explain(const struct gpulse_event *event)
{
    char words[32];
    char *json;
    if (event->number == 0)
        return;
    snprintf(words, sizeof(words), "xid %llu", (unsigned long long)event->number);
    if (gpulse_explain(words, &json, NULL) < 0)
        return;
    printf("%s\n", json);
    gpulse_text_free(json);
}

int main(int argc, char **argv)
{
    gpulse_events *events;
    struct gpulse_error error;
    struct gpulse_event event = {.size = sizeof(event)};
    int left = argc > 1 ? atoi(argv[1]) : -1;
    int r = gpulse_events_open(NULL, "xid,lost", 0, &events, &error);
    if (r < 0)
        return fprintf(stderr, "events: %s\n", error.text), 1;
    struct pollfd fd = {gpulse_events_fd(events), POLLIN, 0};
    while (left != 0 && r >= 0 && poll(&fd, 1, -1) >= 0) /* and other descriptors of the program */
        while (left != 0 && (r = gpulse_events_next(events, &event, &error)) > 0) {
            if (event.gpu < 0) { /* about the stream, such as its start */
                printf("%s: %s\n", event.kind, event.text);
                fflush(stdout);
                continue;
            }
            printf("%s: GPU %d: %s\n", event.kind, event.gpu, event.text);
            fflush(stdout);
            explain(&event);
            left--;
        }
    if (r < 0)
        fprintf(stderr, "events: %s\n", error.text);
    return gpulse_events_close(events) && r >= 0 ? 0 : 1;
}
