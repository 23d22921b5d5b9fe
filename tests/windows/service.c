/* Starts, stops and looks at the service `npubbot`: for tests.
 *
 *     service.exe start|stop|query|hold
 *
 * Prints the state that it reaches (1 stopped, 4 running; 0: there is no such service), its exit code,
 * and the milliseconds from the request to the state. `hold` keeps Wine's service manager until
 * standard input ends. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

/* Longest wait for a state, in milliseconds. */
#define PATIENCE 120000

static int failed(const char *what) {
    fprintf(stderr, "%s: error %lu\n", what, GetLastError());
    return 1;
}

int main(int count, char **words) {
    SERVICE_STATUS status;
    SC_HANDLE manager = OpenSCManagerA(NULL, NULL, SC_MANAGER_CONNECT), service;
    ULONGLONG since = GetTickCount64();
    DWORD wanted = 0;
    if (!manager || count != 2) return failed("the service manager");
    if (!strcmp(words[1], "hold")) {
        puts("held");
        fflush(stdout);
        while (getchar() != EOF) continue;
        return 0;
    }
    service = OpenServiceA(manager, "npubbot", SERVICE_ALL_ACCESS);
    if (!service && GetLastError() != ERROR_SERVICE_DOES_NOT_EXIST) return failed("the service");
    if (!service) {
        printf("0 0 0\n");
        return 0;
    }
    if (!strcmp(words[1], "start")) {
        wanted = SERVICE_RUNNING;
        /* While Windows starts, other services are started first. */
        while (!StartServiceA(service, 0, NULL)) {
            if (GetLastError() == ERROR_SERVICE_ALREADY_RUNNING) break;
            if (GetLastError() != ERROR_SERVICE_DATABASE_LOCKED || GetTickCount64() - since > PATIENCE)
                return failed("the start");
            Sleep(100);
        }
    } else if (!strcmp(words[1], "stop")) {
        wanted = SERVICE_STOPPED;
        if (!ControlService(service, SERVICE_CONTROL_STOP, &status)) return failed("the stop");
    }
    do {
        if (!QueryServiceStatus(service, &status)) return failed("its state");
        /* A service that has ended reaches no other state. */
        if (!wanted || status.dwCurrentState == wanted || status.dwCurrentState == SERVICE_STOPPED) break;
        Sleep(10);
    } while (GetTickCount64() - since < PATIENCE);
    printf("%lu %lu %llu\n", status.dwCurrentState,
        status.dwWin32ExitCode == ERROR_SERVICE_SPECIFIC_ERROR ? status.dwServiceSpecificExitCode : status.dwWin32ExitCode,
        GetTickCount64() - since);
    return 0;
}
