#include "doctor/readers/boot.h"

#include "doctor/exam.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

long long gp_boot_time(struct gp_exam *exam)
{
    static const char key[] = "\nbtime ";
    if (exam->booted != 0)
        return exam->booted > 0 ? exam->booted : 0;
    const char *text = gp_files_text(&exam->files, &exam->arena, "/proc/stat", 1 << 18, NULL);
    const char *found = text ? strstr(text, key) : NULL;
    long long booted = found ? strtoll(found + sizeof(key) - 1, NULL, 10) : 0;
    exam->booted = booted > 0 ? booted : -1;
    return booted > 0 ? booted : 0;
}

bool gp_boot_is_before(struct gp_exam *exam, const char *path)
{
    long long booted = gp_boot_time(exam);
    struct stat st;
    return booted > 0 && gp_files_stat(&exam->files, path, &st) == 0 && st.st_mtime >= booted;
}

bool gp_boot_is_after(struct gp_exam *exam, const char *path)
{
    return gp_boot_time(exam) > 0 && !gp_boot_is_before(exam, path);
}
