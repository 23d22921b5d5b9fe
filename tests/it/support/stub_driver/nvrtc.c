// A libnvrtc.so.12 that compiles nothing, for tests. Each call adds a line to the file that
// STUB_COMPILED names. STUB_NVRTC is its version, such as 12020.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char code[] = "code of the stub";

int nvrtcVersion(int *major, int *minor) {
    const char *version = getenv("STUB_NVRTC");
    int number = version ? atoi(version) : 12020;
    *major = number / 1000;
    *minor = number % 1000 / 10;
    return 0;
}
int nvrtcGetNumSupportedArchs(int *count) {
    *count = 3;
    return 0;
}
int nvrtcGetSupportedArchs(int *architectures) {
    architectures[0] = 75;
    architectures[1] = 89;
    architectures[2] = 90;
    return 0;
}
int nvrtcCreateProgram(void **program, const char *source, const char *name, int count, const char **headers,
                       const char **names) {
    *program = (void *)1;
    return 0;
}
int nvrtcCompileProgram(void *program, int count, const char **options) {
    FILE *file = fopen(getenv("STUB_COMPILED"), "a");
    fprintf(file, "%s\n", options[0]);
    fclose(file);
    return 0;
}
int nvrtcDestroyProgram(void **program) { return 0; }
int nvrtcGetProgramLogSize(void *program, size_t *size) {
    *size = 0;
    return 0;
}
int nvrtcGetProgramLog(void *program, char *log) { return 0; }
int nvrtcGetCUBINSize(void *program, size_t *size) {
    *size = sizeof code;
    return 0;
}
int nvrtcGetCUBIN(void *program, char *image) {
    memcpy(image, code, sizeof code);
    return 0;
}
int nvrtcGetPTXSize(void *program, size_t *size) { return nvrtcGetCUBINSize(program, size); }
int nvrtcGetPTX(void *program, char *image) { return nvrtcGetCUBIN(program, image); }
const char *nvrtcGetErrorString(int code) { return "the stub's own text"; }
