// Runs the search kernels alone, to check that all variants find the same hits and to measure the
// speed of each. `measure_gpu.py kernels` compiles this and runs it.
//
//     [ONLY=tensor] [COUNTS="1 16 1000"] kernel_bench [centres per thread] [launches] [seconds] [repeats] [seed]
//
// If seconds are given, each variant runs that long, and rate, watts and joules are measured over
// all but the first second. The plain variant runs first and defines the expected hits. The real
// clock is the cycle counter over the time: NVML reports 1.98 GHz where it is 1.81.
//
// `CARVEOUT=100` leaves only the smallest L1 cache, as GPUs with 99 KB of shared memory have it.
//
//     kernel_bench exact [launches]
//
// compares the hits of every variant with those of a kernel that computes each key in full.
//
// Compiled with `-DBLOCKS=1 -DTABLE=64` it is small enough for `compute-sanitizer --tool
// racecheck`.

#include "search.cu"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <dlfcn.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <vector>

// Blocks of a launch, or 0: one for each multiprocessor.
#ifndef BLOCKS
#define BLOCKS 0
#endif

// Reads the energy counter and the clock rate of the GPU from the driver. Both are zero if the
// driver does not have them.
struct Meter {
    void *device = nullptr;
    int (*energy)(void *, unsigned long long *) = nullptr;
    int (*clock)(void *, int, unsigned *) = nullptr;
    Meter() {
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        if (!library) return;
        ((int (*)())dlsym(library, "nvmlInit_v2"))();
        ((int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2"))(0, &device);
        energy = (decltype(energy))dlsym(library, "nvmlDeviceGetTotalEnergyConsumption");
        clock = (decltype(clock))dlsym(library, "nvmlDeviceGetClockInfo");
    }
    double joules() const {
        unsigned long long millijoules = 0;
        if (energy) energy(device, &millijoules);
        return millijoules / 1e3;
    }
    unsigned megahertz() const {
        unsigned value = 0;
        if (clock) clock(device, 1, &value);
        return value;
    }
};

// Threads of a start point for each warp of a block, as in src/search/cuda/geometry.rs.
#define STARTS_PER_WARP 192

using Hit = std::array<u32, 4>;  // as in `Suspect`

static void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

template <class T>
static T *device(size_t count) {
    T *at;
    check(cudaMalloc(&at, count * sizeof(T)), "cudaMalloc");
    return at;
}

static __device__ void add_points(Fe &x, Fe &y, const Fe &slope, const Fe &other) {
    Fe sum = fe_sub(fe_sub(fe_sqr(slope), x), other);
    y = fe_sub(fe_mul(slope, fe_sub(x, sum)), y);
    x = sum;
}

// Computes (first + n·stride)·G by doubling and adding: slow and simple.
__global__ void multiples(Point *out, u64 first, u64 stride, u32 count) {
    u32 n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= count) return;
    Fe x = Fe{{0x16f81798u, 0x59f2815bu, 0x2dce28d9u, 0x029bfcdbu, 0xce870b07u, 0x55a06295u, 0xf9dcbbacu, 0x79be667eu}};
    Fe y = Fe{{0xfb10d4b8u, 0x9c47d08fu, 0xa6855419u, 0xfd17b448u, 0x0e1108a8u, 0x5da4fbfcu, 0x26a3c465u, 0x483ada77u}};
    Fe rx, ry;
    bool any = false;
    for (u64 k = first + stride * n; k; k >>= 1) {
        if (k & 1) {
            if (any) {
                add_points(rx, ry, fe_mul(fe_sub(y, ry), fe_inverse(fe_sub(x, rx))), x);
            } else {
                rx = x, ry = y, any = true;
            }
        }
        Fe xx = fe_sqr(x);
        add_points(x, y, fe_mul(fe_add(fe_add(xx, xx), xx), fe_inverse(fe_add(y, y))), x);
    }
    rx = fe_canonical(rx), ry = fe_canonical(ry);
    for (int i = 0; i < 8; i++) out[n].x[i] = rx.v[i], out[n].y[i] = ry.v[i];
}

// Finds the hits of a launch with one centre per thread by computing every key in full.
// `search.centres` has the centres that a search has visited.
__global__ void every_key(Search s, const WholeEntry *table, u32 threads, u32 warps) {
    const u64 all = (u64)threads * s.entries;
    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < all; n += (u64)gridDim.x * blockDim.x) {
        const u32 thread = n % threads, visited = n / threads, first = first_entries(s.entries, thread, warps);
        const u32 step = visited >= first, entry = step ? visited - first : visited;
        const Point &at = s.centres[(size_t)step * threads + thread];
        for_each_key(fe_load(at.x), fe_load(at.y), table[entry], [&](u32 which, const Fe &x) {
            const u64 top = (u64)x.v[7] << 32 | x.v[6];
            u32 low = 0, high = s.interval_count;  // the first interval that ends at `top` or later
            while (low < high) {
                const u32 middle = (low + high) / 2;
                if (s.intervals[middle].last < top) low = middle + 1; else high = middle;
            }
            if (low == s.interval_count || s.intervals[low].first > top) return;
            const u32 slot = atomicAdd(&s.counters->hits, 1);
            if (slot < s.hit_capacity) s.hits[slot] = Suspect{thread, step, entry, which};
        });
    }
}

// Notes the cycle counter of multiprocessor 0 and the time in nanoseconds.
__global__ void note_clock(u64 *at) {
    u32 multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    if (multiprocessor || threadIdx.x) return;
    at[0] = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(at[1]));
}

// A kernel and the sizes that it is launched with. `kind` is 0 for one interval, 1 for a few, 2 for
// many.
struct Kernel {
    const char *name;
    void (*run)(Search);
    u32 kind, warps, bytes, coarse_bits;
    bool is_rough() const { return kind < 2; }
};

struct Bench {
    Search search = {};
    u32 lowest = 0, width32 = 0;
    u32 multiprocessors, threads, launches, counted_last = 0;
    double seconds = 0;
    u32 warps = WARPS;
    u64 *clocks = device<u64>(4);  // of multiprocessor 0, before and after a launch: cycles and nanoseconds
    u32 *coarse = device<u32>(1 << 15), *fine = device<u32>(1 << (FINE_BITS - 5));
    Interval *intervals = device<Interval>(1 << 17);
    WholeEntry *whole_table = device<WholeEntry>(TABLE);
    std::vector<Hit> reference, common_reference;
    Point *starts = nullptr;

    Meter meter;
    Bench(u32 steps, u32 launches, u64 seed) : launches(launches) {
        cudaDeviceProp properties;
        check(cudaGetDeviceProperties(&properties, 0), "no GPU");
        multiprocessors = BLOCKS ? BLOCKS : properties.multiProcessorCount;
        threads = multiprocessors * 32 * WARPS;
        const u32 per_start = STARTS_PER_WARP * WARPS, capacity = 1 << 23;
        starts = device<Point>((threads + per_start - 1) / per_start);
        Point *points = device<Point>(TABLE), *stretches = device<Point>(per_start);
        Point *step = device<Point>(1);
        Entry *table = device<Entry>(TABLE);
        auto *matrices = device<unsigned char>((size_t)TABLE * MATRICES * MATRIX_BYTES);
        multiples<<<(TABLE + 127) / 128, 128>>>(points, 1, 1, TABLE);
        multiples<<<(per_start + 127) / 128, 128>>>(stretches, 17 * (2 * TABLE + 1), 17 * (2 * TABLE + 1), per_start);
        multiples<<<1, 1>>>(step, 2 * TABLE + 1, 1, 1);
        build_table<<<(TABLE + 127) / 128, 128>>>(points, table, TABLE);
        build_matrices<<<(TABLE * 32 + 127) / 128, 128>>>(table, matrices, TABLE);
        auto *groups = device<unsigned char>((size_t)TABLE / GROUP * GROUP_BYTES);
        build_groups<<<(TABLE / GROUP * 32 + 127) / 128, 128>>>(table, groups, TABLE / GROUP);
        search.groups = groups;
        build_whole_table<<<(TABLE + 127) / 128, 128>>>(points, whole_table, TABLE, device<unsigned char>(MATRIX_BYTES));
        check(cudaMemcpy(&search.step, step, sizeof(Point), cudaMemcpyDeviceToHost), "tables");
        search.start_points = starts, search.stretches = stretches, search.table = table, search.matrices = matrices;
        search.constants = device<uint4>((size_t)threads * CENTRE_CONSTANTS * 2);
        search.prefixes = device<uint4>((size_t)threads * TABLE * 2);
        search.centres = device<Point>((size_t)threads * (steps + 1));
        search.suspects = device<Suspect>(capacity), search.hits = device<Suspect>(capacity);
        search.counters = device<Counters>(1);
        search.coarse = coarse, search.fine = fine, search.intervals = intervals;
        search.entries = TABLE, search.steps = steps, search.threads_per_start = per_start;
        search.suspect_capacity = search.hit_capacity = capacity;
        start_at(seed);
    }

    void start_at(u64 seed) {
        const u32 count = (threads + search.threads_per_start - 1) / search.threads_per_start;
        multiples<<<(count + 127) / 128, 128>>>(starts, 0x123456789abcdefull + (seed << 40), 0x1111111111111ull, count);
    }

    // Those of the hits that every variant finds, whatever number of warps a block has: of the
    // centres that are searched whole, and of threads that all have.
    std::vector<Hit> common(const std::vector<Hit> &hits) const {
        std::vector<Hit> common;
        for (auto [thread, step, entry, which] : hits) {
            const u32 start = thread / search.threads_per_start, own = thread % search.threads_per_start;
            bool is_common = step && step < search.steps && own < STARTS_PER_WARP * FEWER_WARPS;
            for (u32 warps : {FEWER_WARPS, WARPS})
                is_common &= start * STARTS_PER_WARP * warps + own < multiprocessors * 32 * warps;
            if (is_common) common.push_back({start * STARTS_PER_WARP * WARPS + own, step, entry, which});
        }
        return common;
    }

    // The hits of the last launch, sorted.
    std::vector<Hit> hits() const {
        Counters counters;
        check(cudaMemcpy(&counters, search.counters, sizeof counters, cudaMemcpyDeviceToHost), "counters");
        std::vector<Hit> hits(std::min(counters.hits, search.hit_capacity));
        check(cudaMemcpy(hits.data(), search.hits, hits.size() * sizeof(Hit), cudaMemcpyDeviceToHost), "hits");
        std::sort(hits.begin(), hits.end());
        return hits;
    }

    std::vector<Hit> exact_hits() const {
        check(cudaMemset(search.counters, 0, sizeof(Counters)), "counters");
        every_key<<<1056, 128>>>(search, whole_table, threads, warps);
        check(cudaDeviceSynchronize(), "every_key");
        return hits();
    }

    // Makes `count` random intervals like those of patterns of `length` characters.
    void look_for(u32 count, u32 length) {
        std::vector<Interval> wanted;
        const u64 width = 1ull << (64 - 5 * length);
        srand(count);
        for (u32 i = 0; i < count; i++) {
            u64 first = ((u64)rand() << 40 ^ (u64)rand() << 20 ^ rand()) / width * width;
            wanted.push_back({first, first + width - 1});
        }
        std::sort(wanted.begin(), wanted.end(), [](auto &a, auto &b) { return a.first < b.first; });
        check(cudaMemcpy(intervals, wanted.data(), count * sizeof(Interval), cudaMemcpyHostToDevice), "intervals");
        search.interval_count = count;
        lowest = (u32)(wanted[0].first >> 32), width32 = (u32)((wanted[0].last >> 32) - (wanted[0].first >> 32));
        reference.clear();
    }

    // Prepares the filter for a kernel.
    void prepare(const Kernel &kernel) {
        warps = kernel.warps, threads = multiprocessors * 32 * warps;
        search.threads_per_start = STARTS_PER_WARP * warps;
        const u32 slack = kernel.is_rough() ? ROUGH_SLACK : SLACK;
        search.first_top = lowest - slack, search.top_width = width32 + 2 * slack;
        check(cudaFuncSetAttribute(kernel.run, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.bytes), kernel.name);
        if (const char *share = getenv("CARVEOUT"))
            check(cudaFuncSetAttribute(kernel.run, cudaFuncAttributePreferredSharedMemoryCarveout, atoi(share)), kernel.name);
        check(cudaMemset(coarse, 0, 1 << 17), "coarse");
        check(cudaMemset(fine, 0, 1 << (FINE_BITS - 3)), "fine");
        const u32 count = search.interval_count;
        build_filter<<<std::min(count, 1024u), 128>>>(intervals, count, coarse, kernel.coarse_bits, fine, kernel.is_rough());
    }

    void launch(const Kernel &kernel) {
        check(cudaMemset(search.counters, 0, sizeof(Counters)), "counters");
        note_clock<<<1056, 32>>>(clocks);
        kernel.run<<<multiprocessors, 32 * warps, kernel.bytes>>>(search);
        note_clock<<<1056, 32>>>(clocks + 2);
        confirm<<<multiprocessors * CONFIRM_BLOCKS, CONFIRM_THREADS>>>(search, threads, 128, Checks{}, WholeSearch{});
    }

    bool run(const Kernel &kernel, double chance) {
        prepare(kernel);
        cudaEvent_t before, after;
        cudaEventCreate(&before), cudaEventCreate(&after);
        std::vector<float> times;
        const double seconds = reference.empty() ? 0 : this->seconds;
        auto began = std::chrono::steady_clock::now();
        auto over = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
        double joules = 0, measured = 0, megahertz = 0;
        u32 counted = 0, samples = 0;
        const bool warm = seconds > 2;  // the first second does not count
        for (u32 number = 0; number < launches || over() < seconds; number++) {
            if (measured == 0 && (!warm || over() > 1)) measured = over(), joules = meter.joules(), counted = number;
            cudaEventRecord(before);
            launch(kernel);
            cudaEventRecord(after);
            if (measured && seconds) {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                megahertz += meter.megahertz(), samples++;
            }
            check(cudaDeviceSynchronize(), kernel.name);
            counted_last = number + 1;
            float milliseconds;
            cudaEventElapsedTime(&milliseconds, before, after);
            times.push_back(milliseconds);
        }
        joules = meter.joules() - joules, measured = over() - measured, counted = counted_last - counted;
        std::sort(times.begin(), times.end());
        Counters counters;
        check(cudaMemcpy(&counters, search.counters, sizeof counters, cudaMemcpyDeviceToHost), "counters");
        const std::vector<Hit> hits = this->hits();
        if (reference.empty()) reference = hits, common_reference = common(hits);
        u64 noted[4];
        check(cudaMemcpy(noted, clocks, sizeof noted, cudaMemcpyDeviceToHost), "clocks");
        const double gigahertz = (double)(noted[2] - noted[0]) / (noted[3] - noted[1]);
        const double candidates = 18.0 * threads * search.steps * TABLE;
        const bool is_alike = warps == WARPS ? hits == reference : common(hits) == common_reference;
        const bool same = is_alike && counters.suspects <= search.suspect_capacity;
        const double sum = counted * candidates;
        printf("%-12s %5u: wall %.1f best %.1f median %.1f G/s, %4.0f W, NVML %.2f GHz, real %.3f GHz, %.2f nJ, %zu hits (%.0f), %u suspects%s\n", kernel.name,
               search.interval_count, sum / measured / 1e9, candidates / times.front() / 1e6, candidates / times[times.size() / 2] / 1e6,
               joules / measured, samples ? megahertz / samples / 1e3 : 0, gigahertz, joules / sum * 1e9,
               hits.size(), candidates * chance, counters.suspects, same ? "" : ", NOT THE HITS OF THE PLAIN FORM");
        fflush(stdout);
        return same;
    }
};

#define PLAIN(form, kind, bits, ...) {"plain_" #form, plain_##form, kind, WARPS, __VA_ARGS__::SHARED_BYTES, bits}
#define TENSOR_OF(variant, form, kind, bytes, warps, bits, ...) \
    {#variant "_" #form, variant##_##form, kind, warps, Tensor<bytes, warps, __VA_ARGS__>::SHARED_BYTES + __VA_ARGS__::SHARED_BYTES, bits}

static const Kernel KERNELS[] = {
    PLAIN(one, 0, 0, OneInterval),
    PLAIN(few, 1, FEW_BITS, Cells<FEW_BITS>),
    PLAIN(many, 2, COARSE_BITS, Bitmaps<COARSE_BITS>),
#if HAS_LARGE_BLOCKS
    TENSOR_OF(tensor, one, 0, LARGE_BLOCK, WARPS, 0, OneInterval),
    TENSOR_OF(tensor, few, 1, LARGE_BLOCK, WARPS, FEW_BITS, Cells<FEW_BITS>),
    TENSOR_OF(tensor, many, 2, LARGE_BLOCK, WARPS, LARGE_BITS, Bitmaps<LARGE_BITS>),
    TENSOR_OF(saving, one, 0, LARGE_BLOCK, FEWER_WARPS, 0, OneInterval),
    TENSOR_OF(saving, few, 1, LARGE_BLOCK, FEWER_WARPS, FEW_BITS, Cells<FEW_BITS>),
    TENSOR_OF(saving, many, 2, LARGE_BLOCK, FEWER_WARPS, LARGE_BITS, Bitmaps<LARGE_BITS>),
#endif
#if HAS_MIDDLE_BLOCKS
    TENSOR_OF(middle, one, 0, MIDDLE_BLOCK, WARPS, 0, OneInterval),
    TENSOR_OF(middle, few, 1, MIDDLE_BLOCK, WARPS, FEW_BITS, Cells<FEW_BITS>),
    TENSOR_OF(middle, many, 2, MIDDLE_BLOCK, WARPS, COARSE_BITS, Bitmaps<COARSE_BITS>),
#endif
#if HAS_SMALL_BLOCKS
    TENSOR_OF(small, one, 0, SMALL_BLOCK, WARPS, 0, OneInterval),
    TENSOR_OF(small, few, 1, SMALL_BLOCK, WARPS, FEW_BITS, Cells<FEW_BITS>),
    TENSOR_OF(small, many, 2, SMALL_BLOCK, WARPS, COARSE_BITS, Bitmaps<COARSE_BITS>),
#endif
};

static const char *variable(const char *name, const char *otherwise) { return getenv(name) ? getenv(name) : otherwise; }
static bool is_plain(const Kernel &kernel) { return !strncmp(kernel.name, "plain", 5); }
static bool is_chosen(const Kernel &kernel) { return is_plain(kernel) || strstr(kernel.name, variable("ONLY", "")); }

// Compares all variants with `every_key`. Returns whether they found the same hits.
static bool compare_with_exact(u32 launches) {
    Bench bench(1, 1, 0);
    bench.search.entries = std::min(512, TABLE);
    const u32 intervals[] = {1, 32, 1000}, lengths[] = {2, 3, 4};
    bool right = true;
    for (u32 kind = 0; kind < 3; kind++) {
        std::vector<const Kernel *> kernels;
        for (const Kernel &kernel : KERNELS)
            if (kernel.kind == kind && is_chosen(kernel)) kernels.push_back(&kernel);
        std::vector<std::array<size_t, 3>> sums(kernels.size());  // hits, missed, wrong
        bench.look_for(intervals[kind], lengths[kind]);
        for (u32 launch = 0; launch < launches; launch++) {
            bench.start_at(launch);
            std::map<u32, std::vector<Hit>> exact_hits;  // by the warps of a block
            for (size_t n = 0; n < kernels.size(); n++) {
                bench.prepare(*kernels[n]);
                bench.launch(*kernels[n]);
                check(cudaDeviceSynchronize(), kernels[n]->name);
                const std::vector<Hit> hits = bench.hits();
                std::vector<Hit> &exact = exact_hits[bench.warps], lost, more;
                if (exact.empty()) exact = bench.exact_hits();
                std::set_difference(exact.begin(), exact.end(), hits.begin(), hits.end(), std::back_inserter(lost));
                std::set_difference(hits.begin(), hits.end(), exact.begin(), exact.end(), std::back_inserter(more));
                sums[n][0] += exact.size(), sums[n][1] += lost.size(), sums[n][2] += more.size();
            }
        }
        for (size_t n = 0; n < kernels.size(); n++) {
            auto [found, missed, wrong] = sums[n];
            printf("%-12s %zu hits, %zu missed, %zu wrong\n", kernels[n]->name, found, missed, wrong);
            fflush(stdout);
            right &= found && !missed && !wrong;
        }
    }
    return right;
}

int main(int count, char **arguments) {
    auto argument = [&](int n, double otherwise) { return count > n ? atof(arguments[n]) : otherwise; };
    if (count > 1 && !strcmp(arguments[1], "exact")) return compare_with_exact(argument(2, 1)) ? 0 : 1;
    Bench bench(argument(1, 8), argument(2, 3), argument(5, 0));
    const u32 repeats = argument(4, 1);
    bool right = true;
    for (const char *at = variable("COUNTS", "1 16 1000 10000 100000"); *at;) {
        char *end;
        const u32 intervals = strtoul(at, &end, 10), kind = intervals == 1 ? 0 : intervals <= 80 ? 1 : 2;
        const u32 length = kind == 2 ? 6 : 4;
        at = *end ? end + 1 : end;
        bench.seconds = argument(3, 0);
        bench.look_for(intervals, length);
        for (const Kernel &kernel : KERNELS) {
            if (kernel.kind != kind || !is_chosen(kernel)) continue;
            for (u32 n = 0; n < (is_plain(kernel) ? 1 : repeats); n++) right &= bench.run(kernel, intervals * pow(2, -5.0 * length));
        }
    }
    return right ? 0 : 1;
}
