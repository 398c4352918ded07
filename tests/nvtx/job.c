/* A job that reports to NVTX: job WHAT. Compiled with NVTX's own headers or with small.h. */
#ifdef REAL
#include <nvtx3/nvToolsExt.h>
#else
#include "small.h"
#endif

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 100 };

static nvtxEventAttributes_t event_of(int type)
{
    nvtxEventAttributes_t event = {0};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = type;
    return event;
}

static void pause_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static void everything(void)
{
    nvtxMarkA("a mark");
    nvtxMarkW(L"größer ∑ 😀");
    assert(nvtxRangePushA("outer") == 0);
    assert(nvtxRangePushA("inner") == 1);
    pause_ms(20);
    assert(nvtxRangePop() == 1);
    assert(nvtxRangePop() == 0);
    assert(nvtxRangePop() < 0);

    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    assert(domain && domain == nvtxDomainCreateA("library"));
    nvtxEventAttributes_t event = event_of(NVTX_MESSAGE_TYPE_ASCII);
    event.message.ascii = "of a library";
    assert(nvtxDomainRangePushEx(domain, &event) == 0);
    assert(nvtxRangePushA("crossed") == 1);
    assert(nvtxDomainRangePop(domain) == 0); /* not the innermost one */
    assert(nvtxRangePop() == 0);
    event = event_of(NVTX_MESSAGE_TYPE_REGISTERED);
    event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainMarkEx(domain, &event);
    event = event_of(NVTX_MESSAGE_TYPE_UNICODE);
    event.message.unicode = L"wide";
    nvtxDomainMarkEx(domain, &event);
    event = event_of(99);
    nvtxDomainMarkEx(domain, &event);
    event.size = 4; /* of another version */
    nvtxDomainMarkEx(NULL, &event);
}

static void *end_range(void *id)
{
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "finisher");
    nvtxMarkA("on the finisher");
    pause_ms(20);
    nvtxRangeEnd(*(nvtxRangeId_t *)id);
    return NULL;
}

static void across_threads(void)
{
    pthread_t thread;
    nvtxRangeId_t id = nvtxRangeStartA("asynchronous");
    nvtxRangeId_t open = nvtxRangeStartA("never ends");
    assert(id && open && id != open);
    assert(pthread_create(&thread, NULL, end_range, &id) == 0);
    assert(pthread_join(thread, NULL) == 0);
    nvtxRangeEnd(id); /* twice: ignored */
    nvtxRangeEnd(12345);
}

static void *repeat(void *context)
{
    for (int i = 0; i < ROUNDS; i++) {
        nvtxRangePushA("step");
        nvtxRangePushA((const char *)context);
        nvtxRangePop();
        nvtxRangePop();
    }
    return NULL;
}

static void threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, repeat, "work") == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
}

static void forks(void)
{
    nvtxRangePushA("parent");
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            nvtxRangePushA("child");
            nvtxRangePop();
            _exit(0);
        }
        int status;
        assert(waitpid(child, &status, 0) == child && status == 0);
    }
    nvtxRangePop();
}

/* Deeper and more than there is room for. */
static void too_much(void)
{
    for (int i = 0; i < 1000; i++)
        nvtxRangePushA("deep");
    for (int i = 0; i < 1000; i++)
        nvtxRangePop();
    for (int i = 0; i < 1000; i++)
        (void)nvtxRangeStartA("many");
    char text[100001];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    nvtxMarkA(text);
    nvtxMarkA("the last");
}

/* Prints the mean time of a range in nanoseconds: in bursts that a reader can follow. */
static void bench(void)
{
    enum { BURSTS = 40, RANGES = 4000 };
    double best = 1e9;
    nvtxMarkA("warm");
    for (int burst = 0; burst < BURSTS; burst++) {
        struct timespec a;
        struct timespec b;
        (void)clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < RANGES; i++) {
            nvtxRangePushA("forward");
            nvtxRangePop();
        }
        (void)clock_gettime(CLOCK_MONOTONIC, &b);
        double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
        best = ns / RANGES < best ? ns / RANGES : best;
        pause_ms(70);
    }
    fprintf(stderr, "%.0f ns\n", best);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } jobs[] = {{"everything", everything}, {"across-threads", across_threads},
                {"threads", threads},       {"forks", forks},
                {"too-much", too_much},     {"bench", bench}};
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        if (argc == 2 && strcmp(argv[1], jobs[i].name) == 0)
            return jobs[i].function(), 0;
    return 2;
}
