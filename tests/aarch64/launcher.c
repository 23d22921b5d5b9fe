/* Stands for the program npubbot for aarch64 where a shell or a script of another processor starts
 * it: for tests. Beside it lies a link with `.real` at the end of its name. The link leads to the
 * program, which has `qemu` and `root` beside it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ARGUMENTS 4096

int main(int count, char **given) {
    char path[PATH_MAX], link[PATH_MAX + 8], real[PATH_MAX], qemu[PATH_MAX + 8], root[PATH_MAX + 8], preload[PATH_MAX + 32];
    char *arguments[MOST_ARGUMENTS + 10] = {qemu, "-L", root, "-E", preload, "-0", given[0], real};
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length < 0 || count > MOST_ARGUMENTS) return 126;
    snprintf(link, sizeof link, "%.*s.real", (int)length, path);
    if (!realpath(link, real)) return 126;
    int folder = (int)(strrchr(real, '/') - real);
    snprintf(qemu, sizeof qemu, "%.*s/qemu", folder, real);
    snprintf(root, sizeof root, "%.*s/root", folder, real);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%.*s/exec.so", folder, real);
    for (int n = 1; n <= count; n++) arguments[7 + n] = given[n];
    execv(qemu, arguments);
    return 126;
}
