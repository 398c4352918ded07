/* Linked into every program and library of the build whose coverage is measured: marks each basic
 * block that runs in a file that all processes map, so that a process that is killed counts too.
 * The file's name is made of the number of the bats test and of the image's header: programs run
 * under other names as well. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((visibility("hidden"))) extern const char __ehdr_start[], etext[];

static unsigned char *map;

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
    if (map != NULL) {
        map[(const char *)__builtin_return_address(0) - __ehdr_start] = 1;
    }
}

__attribute__((constructor(101))) static void start(void)
{
    const char *folder = getenv("MUTATE_COVER");
    const char *number = getenv("BATS_TEST_NUMBER");
    const ElfW(Ehdr) *image = (const ElfW(Ehdr) *)(const void *)__ehdr_start;
    char path[4096];
    size_t size = (size_t)(etext - __ehdr_start) + 1;
    int fd;

    if (folder == NULL) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/%s.%llx-%llx", folder, number ? number : "",
                   (unsigned long long)image->e_entry, (unsigned long long)image->e_shoff);
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        return;
    }
    (void)fchmod(fd, 0666);
    if (ftruncate(fd, (off_t)size) == 0) {
        void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        map = found != MAP_FAILED ? found : NULL;
    }
    (void)close(fd);
}
