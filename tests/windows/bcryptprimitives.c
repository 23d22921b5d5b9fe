/* Wine 8 lacks bcryptprimitives.dll, from which Rust draws random numbers. For tests under Wine. */
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
    return RtlGenRandom(data, (ULONG)length);
}
