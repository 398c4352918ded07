/* gpulse-doctor for thousands of machines, for tests/check_doctor.py: it has the program's own
 * objects, and its main() runs in a child for each. With a sanitizer, a start takes five times as
 * long as the examination itself.
 *
 * examine: reads requests from standard input, one a line, of words that are separated by tabs:
 *   OUTPUT USER [NAME=VALUE]... -- ARGUMENT...
 * OUTPUT is a file for what is printed; USER the user and group to run as, 0: the caller's own. For
 * each it prints the exit status, 128 + N after signal N. */
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 64, CANNOT_START = 125 };

int __wrap_main(void);
int __real_main(int argc, char **argv);

static void must(bool is_done, const char *what)
{
    if (is_done)
        return;
    perror(what);
    _exit(CANNOT_START);
}

/* In the child: becomes what the request asks for, and examines. */
static _Noreturn void examine(char **words, int count)
{
    static char name[] = "gpulse-doctor";
    const char *output = words[0];
    const unsigned user = (unsigned)strtoul(words[1], NULL, 10);
    int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0, output);
    int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    must(none >= 0 && dup2(none, STDIN_FILENO) >= 0, "/dev/null");
    must(user == 0 || (setgroups(0, NULL) == 0 && setgid(user) == 0 && setuid(user) == 0),
         words[1]);
    int at = 2;
    for (; at < count && strcmp(words[at], "--") != 0; at++)
        must(putenv(words[at]) == 0, words[at]);
    must(at < count, "a request without --");
    words[at] = name;
    int status = __real_main(count - at, words + at);
    (void)fflush(NULL);
    /* A sanitizer ends as slowly as it starts, and tests/cli looks for leaks. */
    _exit(status);
}

int __wrap_main(void)
{
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        char *words[WORDS_MAX + 1], *rest = line;
        int count = 0, status = 0;
        line[strcspn(line, "\n")] = '\0';
        while (count < WORDS_MAX && (words[count] = strsep(&rest, "\t")))
            count++;
        words[count] = NULL;
        pid_t child = fork();
        if (child == 0)
            examine(words, count);
        must(child > 0 && waitpid(child, &status, 0) == child, "fork");
        printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
        (void)fflush(stdout);
    }
    free(line);
    return 0;
}
