/* The first program of a virtual machine for aarch64: runs each test that the file /tests names,
 * shows what it said, and switches the machine off. */
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int passed = 0, failed = 0, network = socket(AF_INET, SOCK_DGRAM, 0);
    char name[512];
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    if (ioctl(network, SIOCSIFFLAGS, &loopback)) perror("lo");
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("HOME", "/tmp", 1);
    FILE *tests = fopen("/tests", "r");
    while (tests && fgets(name, sizeof name, tests)) {
        int status = 0, seconds = 0;
        name[strcspn(name, "\n")] = 0;
        pid_t test = fork();
        if (test == 0) {
            execl("/it", "it", name, "--exact", "--test-threads", "1", NULL);
            _exit(126);
        }
        /* Orphans are this program's too. */
        for (;;) {
            pid_t ended = waitpid(-1, &status, WNOHANG);
            if (ended == test) break;
            if (ended > 0) continue;
            if (seconds++ == 600) kill(test, SIGKILL);
            sleep(1);
        }
        printf("machine: %s %s, %d s\n", status ? "FAILED" : "ok", name, seconds);
        fflush(stdout);
        *(status ? &failed : &passed) += 1;
    }
    printf("machine: %d ok, %d failed\n", passed, failed);
    fflush(stdout);
    sync();
    reboot(RB_POWER_OFF);
    return 0;
}
