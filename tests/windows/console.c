/* Runs a program in a console of its own and ends it in one of the ways that a person has: for tests.
 *
 *     console.exe [-e] PROGRAM ARGUMENTS…
 *
 * Each line of standard input is a deed: `c` is Ctrl-C, `w` closes the console's window, `k`
 * ends the process by force. When the program has ended, its exit
 * code and the milliseconds since the last deed are printed. With -e its standard error is the
 * console, and whether that shows colours by then (0 or 1) is printed too.
 *
 * Wine's console tells its programs nothing when its window is closed. So `w` does what Windows does
 * then: in each program of the console it starts a thread that runs the program's handlers. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

/* Milliseconds after which a program that does not end is ended by force, with code 99. */
#define PATIENCE 30000

static PROCESS_INFORMATION process;
static volatile ULONGLONG since;

/* Events of the console are the program's affair. */
static BOOL WINAPI stay(DWORD event) {
    if (event != CTRL_C_EVENT) Sleep(INFINITE);
    return TRUE;
}

/* Returns whether the program itself was told. The vault may be closed to us, as to any other. */
static BOOL close_window(void) {
    DWORD programs[16], count = GetConsoleProcessList(programs, 16);
    FARPROC run = GetProcAddress(GetModuleHandleA("kernelbase.dll"), "CtrlRoutine");
    BOOL told = FALSE;
    if (!run) return FALSE;
    for (DWORD at = 0; at < count && at < 16; at++) {
        HANDLE program, thread;
        if (programs[at] == GetCurrentProcessId()) continue;
        program = OpenProcess(PROCESS_ALL_ACCESS, FALSE, programs[at]);
        thread = CreateRemoteThread(program, NULL, 0, (LPTHREAD_START_ROUTINE)(void *)run,
                                    (void *)(UINT_PTR)CTRL_CLOSE_EVENT, 0, NULL);
        if (!thread) fprintf(stderr, "program %lu: error %lu\n", programs[at], GetLastError());
        told |= thread && programs[at] == process.dwProcessId;
    }
    return told;
}

static DWORD WINAPI obey(LPVOID unused) {
    char line[16];
    (void)unused;
    while (fgets(line, sizeof line, stdin)) {
        BOOL done = FALSE;
        since = GetTickCount64();
        if (line[0] == 'c') done = GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0);
        if (line[0] == 'w') done = close_window();
        if (line[0] == 'k') done = TerminateProcess(process.hProcess, 9);
        if (!done) fprintf(stderr, "%c: error %lu\n", line[0], GetLastError());
        if (WaitForSingleObject(process.hProcess, PATIENCE) == WAIT_TIMEOUT) TerminateProcess(process.hProcess, 99);
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
    HANDLE screen;
    DWORD code, mode = 0;
    int at = 1, has_screen = count > 1 && !strcmp(words[1], "-e");
    start.dwFlags = STARTF_USESTDHANDLES;
    start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    start.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    for (at += has_screen; at < count; at++) {
        strcat(line, "\"");
        strcat(line, words[at]);
        strcat(line, "\" ");
    }
    FreeConsole();
    if (!AllocConsole()) return failed("the console");
    SetConsoleCtrlHandler(stay, TRUE);
    screen = CreateFileA("CONOUT$", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                         OPEN_EXISTING, 0, NULL);
    if (has_screen) {
        SetHandleInformation(screen, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
        start.hStdError = screen;
    }
    if (!CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) return failed("the program");
    CreateThread(NULL, 0, obey, NULL, 0, NULL);
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    printf("%lu %llu", code, since ? GetTickCount64() - since : 0);
    if (has_screen) printf(" %d", GetConsoleMode(screen, &mode) && (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING));
    printf("\n");
    fflush(stdout);
    ExitProcess(0);
}
