// A libcuda.so.1 without a GPU, for tests. It shows one GPU that takes every launch and finds
// nothing. `stub_driver.rs` adds the functions that are not here, which do nothing, and exports those
// of one version only. Variables:
//
// STUB_CUDA     the version of CUDA it serves, such as 12020
// STUB_FAIL     name=code of a function that fails
// STUB_POOLS    if set, the GPU has memory pools, so memory is taken in the order of a stream
// STUB_REFUSES  if set, it loads only what the stub of NVRTC made
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;

static int fails(const char *name) {
    const char *fault = getenv("STUB_FAIL");
    size_t length = strlen(name);
    return fault && !strncmp(fault, name, length) && fault[length] == '=' ? atoi(fault + length + 1) : 0;
}

int cuInit(unsigned flags) { return fails("cuInit"); }
int cuDriverGetVersion(int *version) {
    *version = atoi(getenv("STUB_CUDA"));
    return 0;
}
int cuGetErrorString(int code, const char **text) {
    *text = "the stub's own text";
    return 0;
}

int cuDeviceGetCount(int *count) {
    *count = 1;
    return fails("cuDeviceGetCount");
}
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}
int cuDeviceGetName(char *name, int length, int device) {
    strncpy(name, "a stub without a GPU", length);
    return 0;
}
int cuDeviceGetUuid(void *uuid, int device) {
    memset(uuid, 7, 16);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = (size_t)8 << 30;
    return 0;
}
int cuDeviceGetPCIBusId(char *text, int length, int device) {
    strncpy(text, "0000:01:00.0", length);
    return 0;
}
// Attributes by their numbers in cuda.h: a GPU of compute capability 8.9 with two multiprocessors.
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
        case 1: *value = 1024; break;        // threads of a block
        case 8: *value = 48 << 10; break;    // shared memory of a block
        case 13: *value = 1500000; break;    // clock, kHz
        case 16: *value = 2; break;          // multiprocessors
        case 75: *value = 8; break;          // compute capability
        case 76: *value = 9; break;
        case 97: *value = 99 << 10; break;   // shared memory of a block that asks for it
        case 115: *value = !!getenv("STUB_POOLS"); break;  // memory pools
        default: *value = 1;
    }
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = (void *)1;
    return fails("cuDevicePrimaryCtxRetain");
}
int cuCtxGetCurrent(void **context) {
    *context = (void *)1;
    return 0;
}

static Address next = (Address)1 << 32;
static int allocate(Address *address, size_t bytes) {
    *address = __sync_fetch_and_add(&next, (bytes + 511) / 512 * 512);
    return 0;
}
int cuMemAlloc_v2(Address *address, size_t bytes) { return fails("cuMemAlloc_v2") ?: allocate(address, bytes); }
int cuMemAllocAsync(Address *address, size_t bytes, void *stream) { return allocate(address, bytes); }
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    *memory = calloc(1, bytes + 1);
    return 0;
}
int cuMemFreeHost(void *memory) {
    free(memory);
    return 0;
}
int cuMemGetInfo_v2(size_t *unused, size_t *total) {
    *unused = (size_t)2 << 30;
    *total = (size_t)8 << 30;
    return 0;
}
int cuMemcpyDtoH_v2(void *host, Address device, size_t bytes) {
    memset(host, 0, bytes);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *host, Address device, size_t bytes, void *stream) {
    memset(host, 0, bytes);
    return 0;
}

int cuStreamCreate(void **stream, unsigned flags) {
    *stream = (void *)32;
    return 0;
}
int cuEventCreate(void **event, unsigned flags) {
    *event = (void *)3;
    return 0;
}
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    *milliseconds = 1;
    return 0;
}
int cuEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
    return cuEventElapsedTime(milliseconds, start, end);
}

int cuModuleLoadData(void **module, const void *image) {
    *module = (void *)4;
    // CUDA_ERROR_NO_BINARY_FOR_GPU
    return getenv("STUB_REFUSES") && memcmp(image, "code of the stub", 16) ? 209 : 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = (void *)5;
    return 0;
}
int cuLaunchKernel(void *function, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned shared,
                   void *stream, void **arguments, void **extra) {
    return fails("cuLaunchKernel");
}
