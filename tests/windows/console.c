/* Runs a program in a console of its own and ends it in one of the ways that a person has: for tests.
 *
 *     console.exe PROGRAM ARGUMENTS…
 *
 * Each line of standard input is a deed: `c` is Ctrl-C, `l` is what a window is told at log-off,
 * `k` ends the process by force. When the program has ended, its exit code and the milliseconds
 * since the last deed are printed. (Wine's console tells its programs nothing when its window is
 * closed, so that is for a person to try on Windows.) */
#include <stdio.h>
#include <string.h>
#include <windows.h>

static PROCESS_INFORMATION process;
static volatile ULONGLONG since;

/* Events of the console are the program's affair. */
static BOOL WINAPI stay(DWORD event) {
    if (event != CTRL_C_EVENT) Sleep(INFINITE);
    return TRUE;
}

/* Tells the program's own window, which is never shown, that the session ends. */
static BOOL CALLBACK log_off(HWND window, LPARAM told) {
    DWORD owner = 0;
    GetWindowThreadProcessId(window, &owner);
    if (owner == process.dwProcessId) *(BOOL *)told |= PostMessageA(window, WM_ENDSESSION, TRUE, 0);
    return TRUE;
}

static DWORD WINAPI obey(LPVOID unused) {
    char line[16];
    (void)unused;
    while (fgets(line, sizeof line, stdin)) {
        BOOL done = FALSE;
        since = GetTickCount64();
        if (line[0] == 'c') done = GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0);
        if (line[0] == 'l') EnumWindows(log_off, (LPARAM)&done);
        if (line[0] == 'k') done = TerminateProcess(process.hProcess, 9);
        if (!done) fprintf(stderr, "%c: error %lu\n", line[0], GetLastError());
    }
    return 0;
}

static int failed(const char *what) {
    fprintf(stderr, "%s: error %lu\n", what, GetLastError());
    return 1;
}

int main(int count, char **words) {
    static char line[8192];
    STARTUPINFOA start = {sizeof start};
    DWORD code;
    start.dwFlags = STARTF_USESTDHANDLES;
    start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    start.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    for (int at = 1; at < count; at++) {
        strcat(line, "\"");
        strcat(line, words[at]);
        strcat(line, "\" ");
    }
    FreeConsole();
    if (!AllocConsole()) return failed("the console");
    SetConsoleCtrlHandler(stay, TRUE);
    if (!CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) return failed("the program");
    CreateThread(NULL, 0, obey, NULL, 0, NULL);
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    printf("%lu %llu\n", code, since ? GetTickCount64() - since : 0);
    fflush(stdout);
    ExitProcess(0);
}
