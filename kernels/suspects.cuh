// Suspects: candidates that passed the tests of a search kernel. `confirm.cuh` computes them in
// full.
#pragma once

#include "points.cuh"

// Reports the candidates of an entry whose bits are set in `found`.
FN void report(const Search &s, u32 thread, u32 step, u32 entry, u32 found) {
    while (found) {
        u32 which = __ffs(found) - 1;
        found &= found - 1;
        u32 slot = atomicAdd(&s.counters->suspects, 1);
        if (slot < s.suspect_capacity) s.suspects[slot] = Suspect{thread, step, entry, which};
    }
}

// The number of this thread in the launch. It is needed rarely, so it is recomputed each time and
// occupies no register in between.
FN u32 thread_number() {
    u32 block, size, thread;
    asm volatile("mov.u32 %0, %%ctaid.x; mov.u32 %1, %%ntid.x; mov.u32 %2, %%tid.x;" : "=r"(block), "=r"(size), "=r"(thread));
    return block * size + thread;
}

// A candidate of a thread in one number: the thread's step, the entry, and which of the entry's
// candidates it is. The bits from NAME_BITS up are free.
#define NAME_BITS 22
FN u32 name_of(u32 step, u32 entry, u32 which) { return step << 17 | entry << 5 | which; }
static_assert(TABLE <= 1 << 12 && MAX_STEPS < 1 << 5, "name_of");

FN void report_named(const Search &s, u32 thread, u32 name) {
    report(s, thread, name >> 17 & 31, name >> 5 & 4095, 1u << (name & 31));
}
