// Runs the search kernels alone, to check that all variants find the same hits and to measure the
// speed of each. `kernel-variants.sh` compiles this against one or several folders of kernels and
// runs them.
//
//     kernel_bench [centres per thread] [launches] [seconds with one interval] [seconds with many]
//                  [characters] [seed]
//
// If seconds are given, each variant runs that long, and rate, watts and joules are measured over
// all but the first second. The plain variant runs first and defines the expected hits.
//
//     kernel_bench exact [launches]
//
// compares the hits of every variant with those of a kernel that computes each key in full.
//
// Compiled with `-DBLOCKS=1 -DTABLE=64` it is small enough for `compute-sanitizer --tool
// racecheck`.

#include "search.cu"

#include <algorithm>
#include <chrono>
#include <thread>
#include <dlfcn.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <tuple>
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

using Hit = std::tuple<u32, u32, u32, u32>;

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
__global__ void every_key(Search s, u32 threads) {
    const u64 all = (u64)threads * s.entries;
    for (u64 n = (u64)blockIdx.x * blockDim.x + threadIdx.x; n < all; n += (u64)gridDim.x * blockDim.x) {
        const u32 thread = n % threads, visited = n / threads, stage = thread / 32 % WARPS * STAGES / WARPS;
        const u32 first_entries = s.entries / GROUP * (stage + 1) / STAGES * GROUP, step = visited >= first_entries;
        const u32 entry = step ? visited - first_entries : visited;
        const Point &at = s.centres[(size_t)step * threads + thread];
        const Centre centre = centre_of(fe_load(at.x), fe_load(at.y));
        const Fe d = fe_canonical(fe_sub(centre.z, fe_load(s.table[entry].u)));
        for_each_key(centre, s.table[entry], d, fe_inverse(d), [&](u32 which, const Fe &x) {
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

// A kernel and the sizes that it is launched with. `kind` is 0 for one interval, 1 for a few, 2 for
// many.
struct Kernel {
    const char *name;
    void (*run)(Search);
    u32 kind, block, bytes, coarse_bits;
    bool is_rough() const { return kind < 2; }
};

struct Bench {
    Search search = {};
    u32 lowest = 0, width32 = 0;
    u32 threads, launches, counted_last = 0;
    double seconds = 0;
    u32 *coarse = device<u32>(1 << 15), *fine = device<u32>(1 << (FINE_BITS - 5));
    Interval *intervals = device<Interval>(1 << 17);
    std::vector<Hit> reference;
    Point *starts = nullptr;

    Meter meter;
    Bench(u32 steps, u32 launches, u64 seed) : launches(launches) {
        cudaDeviceProp properties;
        check(cudaGetDeviceProperties(&properties, 0), "no GPU");
        threads = BLOCKS ? BLOCKS * 512 : properties.multiProcessorCount * 512;
        const u32 per_start = 3072, capacity = 1 << 23;
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
        every_key<<<1056, 128>>>(search, threads);
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
        const u32 slack = kernel.is_rough() ? ROUGH_SLACK : SLACK;
        search.first_top = lowest - slack, search.top_width = width32 + 2 * slack;
        check(cudaFuncSetAttribute(kernel.run, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.bytes), kernel.name);
        check(cudaMemset(coarse, 0, 1 << 17), "coarse");
        check(cudaMemset(fine, 0, 1 << (FINE_BITS - 3)), "fine");
        const u32 count = search.interval_count;
        build_filter<<<std::min(count, 1024u), 128>>>(intervals, count, coarse, kernel.coarse_bits, fine, kernel.is_rough());
    }

    void launch(const Kernel &kernel) {
        check(cudaMemset(search.counters, 0, sizeof(Counters)), "counters");
        kernel.run<<<threads / kernel.block, kernel.block, kernel.bytes>>>(search);
        confirm<<<132, 256>>>(search, threads, Checks{});
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
        u32 counted = 0, clocks = 0;
        const bool warm = seconds > 2;  // the first second does not count
        for (u32 number = 0; number < launches || over() < seconds; number++) {
            if (measured == 0 && (!warm || over() > 1)) measured = over(), joules = meter.joules(), counted = number;
            cudaEventRecord(before);
            launch(kernel);
            cudaEventRecord(after);
            if (measured && seconds) {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                megahertz += meter.megahertz(), clocks++;
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
        if (reference.empty()) reference = hits;
        const double candidates = 18.0 * threads * search.steps * TABLE;
        const bool same = hits == reference && counters.suspects <= search.suspect_capacity;
        const double sum = counted * candidates;
        printf("%-12s %5u: wall %.1f best %.1f median %.1f G/s, %4.0f W %.2f GHz %.2f nJ, %zu hits (%.0f), %u suspects%s\n", kernel.name,
               search.interval_count, sum / measured / 1e9, candidates / times.front() / 1e6, candidates / times[times.size() / 2] / 1e6,
               joules / measured, clocks ? megahertz / clocks / 1e3 : 0, joules / sum * 1e9,
               hits.size(), candidates * chance, counters.suspects, same ? "" : ", NOT THE HITS OF THE PLAIN FORM");
        fflush(stdout);
        return same;
    }
};

static constexpr u32 tensor(u32 shared) { return TENSOR_THREADS * (shared * 32 + SCRATCH_BYTES); }
static constexpr u32 bitmap(u32 bits) { return 1u << (bits - 3); }
static constexpr u32 many(u32 bits, u32 block) { return bitmap(bits) + block / 32 * MOST_DEFERRED * DEFERRED_BYTES; }

static const Kernel KERNELS[] = {
    {"plain_one", plain_one, 0, PLAIN_THREADS, 0, PLAIN_COARSE_BITS},
    {"tensor_one", tensor_one, 0, TENSOR_THREADS, tensor(ONE_SHARED), PLAIN_COARSE_BITS},
    {"lean_one", lean_one, 0, TENSOR_THREADS, tensor(LEAN_ONE_SHARED), PLAIN_COARSE_BITS},
    {"plain_few", plain_few, 1, PLAIN_THREADS, bitmap(PLAIN_COARSE_BITS), PLAIN_COARSE_BITS},
    {"tensor_few", tensor_few, 1, TENSOR_THREADS, tensor(FEW_SHARED) + bitmap(TENSOR_FEW_BITS), TENSOR_FEW_BITS},
    {"lean_few", lean_few, 1, TENSOR_THREADS, tensor(LEAN_FEW_SHARED) + bitmap(TENSOR_FEW_BITS), TENSOR_FEW_BITS},
    {"plain_many", plain_many, 2, PLAIN_THREADS, many(PLAIN_COARSE_BITS, PLAIN_THREADS), PLAIN_COARSE_BITS},
    {"tensor_many", tensor_many, 2, TENSOR_THREADS, tensor(MANY_SHARED) + many(TENSOR_COARSE_BITS, TENSOR_THREADS), TENSOR_COARSE_BITS},
    {"lean_many", lean_many, 2, TENSOR_THREADS, tensor(LEAN_MANY_SHARED) + many(PLAIN_COARSE_BITS, TENSOR_THREADS), PLAIN_COARSE_BITS},
};

// Compares all variants with `every_key`. Returns whether they found the same hits.
static bool compare_with_exact(u32 launches) {
    Bench bench(1, 1, 0);
    bench.search.entries = std::min(512, TABLE);
    bool right = true;
    for (const Kernel &kernel : KERNELS) {
        const u32 intervals[] = {1, 16, 1000}, lengths[] = {2, 3, 4};
        bench.look_for(intervals[kernel.kind], lengths[kernel.kind]);
        size_t found = 0, missed = 0, wrong = 0;
        for (u32 launch = 0; launch < launches; launch++) {
            bench.start_at(launch);
            bench.prepare(kernel);
            bench.launch(kernel);
            check(cudaDeviceSynchronize(), kernel.name);
            const std::vector<Hit> hits = bench.hits(), exact = bench.exact_hits();
            std::vector<Hit> lost, more;
            std::set_difference(exact.begin(), exact.end(), hits.begin(), hits.end(), std::back_inserter(lost));
            std::set_difference(hits.begin(), hits.end(), exact.begin(), exact.end(), std::back_inserter(more));
            found += exact.size(), missed += lost.size(), wrong += more.size();
        }
        printf("%-12s %zu hits, %zu missed, %zu wrong\n", kernel.name, found, missed, wrong);
        fflush(stdout);
        right &= found && !missed && !wrong;
    }
    return right;
}

int main(int count, char **arguments) {
    auto argument = [&](int n, double otherwise) { return count > n ? atof(arguments[n]) : otherwise; };
    if (count > 1 && !strcmp(arguments[1], "exact")) return compare_with_exact(argument(2, 1)) ? 0 : 1;
    Bench bench(argument(1, 8), argument(2, 5), argument(6, 0));
    const double seconds = argument(3, 0), many_seconds = argument(4, 0);
    const u32 characters = argument(5, 4);
    bool right = true;
    for (u32 intervals : {1, 16, 1000, 10000, 100000}) {
        const u32 kind = intervals == 1 ? 0 : intervals == 16 ? 1 : 2, length = kind == 2 ? 6 : characters;
        bench.seconds = kind == 0 ? seconds : many_seconds;
        bench.look_for(intervals, length);
        for (const Kernel &kernel : KERNELS)
            if (kernel.kind == kind) right &= bench.run(kernel, intervals * pow(2, -5.0 * length));
    }
    return right ? 0 : 1;
}
