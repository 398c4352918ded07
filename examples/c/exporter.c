/* Metrics for Prometheus on http://127.0.0.1:PORT/metrics: exporter [PORT] */
#include <gpulse/gpulse.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static const char *const names[] = {"utilization.gpu", "memory.used", "temperature.gpu",
                                    "power.draw"};

static void write_metrics(FILE *out, const gpulse_sample *sample)
{
    int uuid = gpulse_metric_find("uuid", NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        int metric = gpulse_metric_find(names[i], NULL);
        for (size_t row = 0; row < gpulse_sample_rows(sample, GPULSE_GPU); row++) {
            const char *id = gpulse_sample_text(sample, uuid, row);
            double number;
            if (!id || !gpulse_sample_number(sample, metric, row, &number))
                continue;
            fputs("gpu_", out);
            for (const char *c = names[i]; *c; c++)
                fputc(*c == '.' ? '_' : *c, out);
            fprintf(out, "{uuid=\"%s\"} %g\n", id, number);
        }
    }
}

static void serve(FILE *client, gpulse_session *session)
{
    char line[1024];
    gpulse_sample *sample;
    struct gpulse_error error;
    while (fgets(line, sizeof(line), client) && line[0] != '\r' && line[0] != '\n')
        continue; /* the same answer for every request */
    if (gpulse_take(session, &sample, &error) < 0) {
        fprintf(client, "HTTP/1.0 500 Internal Server Error\r\n\r\n%s\n", error.text);
        return;
    }
    fputs("HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\r\n", client);
    write_metrics(client, sample);
    gpulse_sample_free(sample);
}

int main(int argc, char **argv)
{
    const struct gpulse_options options = {
        .size = sizeof(options),
        .fields = "uuid,utilization.gpu,memory.used,temperature.gpu,power.draw"};
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port =
                                            htons((uint16_t)atoi(argc > 1 ? argv[1] : "9400")),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    gpulse_session *session;
    struct gpulse_error error;
    const int one = 1;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(server, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(server, 16) < 0) {
        perror("exporter");
        return 1;
    }
    if (gpulse_open(&options, &session, &error) < 0) {
        fprintf(stderr, "exporter: %s\n", error.text);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int fd = accept(server, NULL, NULL);
        FILE *client = fd >= 0 ? fdopen(fd, "r+") : NULL;
        if (client) {
            serve(client, session);
            fclose(client);
        }
    }
}
