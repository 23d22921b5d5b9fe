/* Starts programs for aarch64 under qemu-user on a machine of another processor: for tests.
 *
 * qemu-user hands a program's own execve to the kernel, which cannot run programs for aarch64
 * unless an administrator has told it how (binfmt_misc). This library is loaded into every program
 * (LD_PRELOAD) and puts qemu-user before such a program. Others start as they are.
 *
 * It lies beside `qemu` and `root`, the folder with the C library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
#define MOST_ARGUMENTS 4096

typedef int (*exec_call)(const char *, char *const[], char *const[]);
typedef int (*spawn_call)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                          const posix_spawnattr_t *, char *const[], char *const[]);

/* Found when the library is loaded: after a fork the dynamic linker may be locked for ever. */
static char qemu[PATH_MAX + 8], root[PATH_MAX + 8], preload[PATH_MAX + 16];
static exec_call real_execve, real_execvpe;
static spawn_call real_spawn, real_spawnp;

__attribute__((constructor)) static void load(void) {
    Dl_info self;
    char *slash, folder[PATH_MAX];
    real_execve = (exec_call)dlsym(RTLD_NEXT, "execve");
    real_execvpe = (exec_call)dlsym(RTLD_NEXT, "execvpe");
    real_spawn = (spawn_call)dlsym(RTLD_NEXT, "posix_spawn");
    real_spawnp = (spawn_call)dlsym(RTLD_NEXT, "posix_spawnp");
    /* Programs of other processors could not load it. */
    unsetenv("LD_PRELOAD");
    if (!dladdr((void *)load, &self)) return;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", self.dli_fname);
    snprintf(folder, sizeof folder, "%s", self.dli_fname);
    if ((slash = strrchr(folder, '/'))) *slash = 0;
    snprintf(qemu, sizeof qemu, "%s/qemu", folder);
    snprintf(root, sizeof root, "%s/root", folder);
}

/* What is given to the kernel in place of a program and its arguments. */
struct start {
    char program[PATH_MAX];
    char *arguments[MOST_ARGUMENTS + 10];
};

static int is_for_us(const char *path) {
    unsigned char head[20];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, head, sizeof head);
    if (file >= 0) close(file);
    return length == sizeof head && !memcmp(head, ELFMAG, SELFMAG) && head[18] == EM_AARCH64 && head[19] == 0;
}

/* Finds a program as execvp does. Leaves the name as it is if there is none. */
static void find(const char *name, char *found) {
    const char *at = strchr(name, '/') ? NULL : getenv("PATH");
    for (; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        snprintf(found, PATH_MAX, "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (access(found, X_OK) == 0) return;
    }
    snprintf(found, PATH_MAX, "%s", name);
}

/* The path and the arguments that the kernel gets. */
static const char *prepare(struct start *start, const char *name, char *const given[], int search) {
    int count = 0, at = 0;
    if (search) find(name, start->program);
    else snprintf(start->program, PATH_MAX, "%s", name);
    /* The link is qemu-user's own file for the kernel, and this program's for qemu-user. */
    if (!strcmp(start->program, "/proc/self/exe")) {
        char path[PATH_MAX];
        ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
        if (length > 0) snprintf(start->program, PATH_MAX, "%.*s", (int)length, path);
    }
    while (given[count]) count++;
    if (count > MOST_ARGUMENTS || !is_for_us(start->program)) return NULL;
    start->arguments[at++] = qemu;
    start->arguments[at++] = "-L";
    start->arguments[at++] = root;
    start->arguments[at++] = "-E";
    start->arguments[at++] = preload;
    start->arguments[at++] = "-0";
    start->arguments[at++] = count ? given[0] : start->program;
    start->arguments[at++] = start->program;
    for (int n = 1; n < count; n++) start->arguments[at++] = given[n];
    start->arguments[at] = NULL;
    return qemu;
}

static int execute(const char *name, char *const arguments[], char *const environment[], int search) {
    struct start start;
    const char *ours = prepare(&start, name, arguments, search);
    if (ours) return real_execve(ours, start.arguments, environment);
    return (search ? real_execvpe : real_execve)(name, arguments, environment);
}

int execve(const char *name, char *const arguments[], char *const environment[]) {
    return execute(name, arguments, environment, 0);
}
int execv(const char *name, char *const arguments[]) { return execute(name, arguments, environ, 0); }
int execvp(const char *name, char *const arguments[]) { return execute(name, arguments, environ, 1); }
int execvpe(const char *name, char *const arguments[], char *const environment[]) {
    return execute(name, arguments, environment, 1);
}

static int begin(pid_t *id, const char *name, const posix_spawn_file_actions_t *files,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[],
                 int search) {
    struct start start;
    const char *ours = prepare(&start, name, arguments, search);
    if (ours) return real_spawn(id, ours, files, attributes, start.arguments, environment);
    /* qemu-user has no vfork: the child's memory is a copy, in which its error stays. */
    if (access(start.program, X_OK)) return errno;
    return (search ? real_spawnp : real_spawn)(id, name, files, attributes, arguments, environment);
}

int posix_spawn(pid_t *id, const char *name, const posix_spawn_file_actions_t *files,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return begin(id, name, files, attributes, arguments, environment, 0);
}
int posix_spawnp(pid_t *id, const char *name, const posix_spawn_file_actions_t *files,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return begin(id, name, files, attributes, arguments, environment, 1);
}
