// Runs the search kernels alone: do all variants find the same hits, and how fast is each?
// `kernel-variants.sh` compiles this against one or several folders of kernels and runs them.
//
//     kernel_bench [centres per thread] [launches] [seconds with one interval] [seconds with many]
// [characters] [seed]
//
// If seconds are given, each variant runs that long, and rate, watts and joules are measured over
// all but the first second. The plain variant runs first and defines the expected hits.

#include "search.cu"

#include <algorithm>
#include <chrono>
#include <thread>
#include <dlfcn.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

// The driver's energy counter and a clock. Zero if there is no counter.
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

struct Bench {
    Search search = {};
    u32 lowest = 0, width32 = 0;
    u32 threads, launches, counted_last = 0;
    double seconds = 0;
    u32 *coarse = device<u32>(1 << 15), *fine = device<u32>(1 << (FINE_BITS - 5));
    Interval *intervals = device<Interval>(1 << 16);
    std::vector<Hit> reference;

    Meter meter;
    Bench(u32 steps, u32 launches, u64 seed) : launches(launches) {
        cudaDeviceProp properties;
        check(cudaGetDeviceProperties(&properties, 0), "no GPU");
        threads = properties.multiProcessorCount * 512;
        const u32 per_start = 3072, starts = (threads + per_start - 1) / per_start, capacity = 1 << 22;
        Point *points = device<Point>(TABLE), *start = device<Point>(starts), *stretches = device<Point>(per_start);
        Point *step = device<Point>(1);
        Entry *table = device<Entry>(TABLE);
        auto *matrices = device<unsigned char>((size_t)TABLE * MATRICES * MATRIX_BYTES);
        multiples<<<(TABLE + 127) / 128, 128>>>(points, 1, 1, TABLE);
        multiples<<<(starts + 127) / 128, 128>>>(start, 0x123456789abcdefull + (seed << 40), 0x1111111111111ull, starts);
        multiples<<<(per_start + 127) / 128, 128>>>(stretches, 17 * (2 * TABLE + 1), 17 * (2 * TABLE + 1), per_start);
        multiples<<<1, 1>>>(step, 2 * TABLE + 1, 1, 1);
        build_table<<<(TABLE + 127) / 128, 128>>>(points, table, TABLE);
        build_matrices<<<(TABLE * 32 + 127) / 128, 128>>>(table, matrices, TABLE);
        auto *groups = device<unsigned char>((size_t)TABLE / GROUP * GROUP_BYTES);
        build_groups<<<(TABLE / GROUP * 32 + 127) / 128, 128>>>(table, groups, TABLE / GROUP);
        search.groups = groups;
        check(cudaMemcpy(&search.step, step, sizeof(Point), cudaMemcpyDeviceToHost), "tables");
        search.start_points = start, search.stretches = stretches, search.table = table, search.matrices = matrices;
        search.constants = device<uint4>((size_t)threads * CENTRE_CONSTANTS * 2);
        search.prefixes = device<uint4>((size_t)threads * TABLE * 2);
        search.centres = device<Point>((size_t)threads * (steps + 1));
        search.suspects = device<Suspect>(capacity), search.hits = device<Suspect>(capacity);
        search.counters = device<Counters>(1);
        search.coarse = coarse, search.fine = fine, search.intervals = intervals;
        search.entries = TABLE, search.steps = steps, search.threads_per_start = per_start;
        search.suspect_capacity = search.hit_capacity = capacity;
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

    bool run(const char *name, void (*kernel)(Search), u32 block, u32 bytes, u32 coarse_bits, double chance, u32 slack) {
        search.first_top = lowest - slack, search.top_width = width32 + 2 * slack;
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), name);
        check(cudaMemset(coarse, 0, 1 << 17), "coarse");
        check(cudaMemset(fine, 0, 1 << (FINE_BITS - 3)), "fine");
        const u32 count = search.interval_count;
        build_filter<<<std::min(count, 1024u), 128>>>(intervals, count, coarse, coarse_bits, fine);
        cudaEvent_t before, after;
        cudaEventCreate(&before), cudaEventCreate(&after);
        std::vector<float> times;
        const double seconds = reference.empty() ? 0 : this->seconds;
        auto began = std::chrono::steady_clock::now();
        auto over = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
        double joules = 0, measured = 0, megahertz = 0;
        u32 counted = 0, clocks = 0;
        const bool warm = seconds > 2;  // the first second does not count
        for (u32 launch = 0; launch < launches || over() < seconds; launch++) {
            if (measured == 0 && (!warm || over() > 1)) measured = over(), joules = meter.joules(), counted = launch;
            check(cudaMemset(search.counters, 0, sizeof(Counters)), "counters");
            cudaEventRecord(before);
            kernel<<<threads / block, block, bytes>>>(search);
            confirm<<<132, 256>>>(search, threads);
            cudaEventRecord(after);
            if (measured && seconds) {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                megahertz += meter.megahertz(), clocks++;
            }
            check(cudaDeviceSynchronize(), name);
            counted_last = launch + 1;
            float milliseconds;
            cudaEventElapsedTime(&milliseconds, before, after);
            times.push_back(milliseconds);
        }
        joules = meter.joules() - joules, measured = over() - measured, counted = counted_last - counted;
        std::sort(times.begin(), times.end());
        Counters counters;
        check(cudaMemcpy(&counters, search.counters, sizeof counters, cudaMemcpyDeviceToHost), "counters");
        std::vector<Hit> hits(std::min(counters.hits, search.hit_capacity));
        check(cudaMemcpy(hits.data(), search.hits, hits.size() * sizeof(Hit), cudaMemcpyDeviceToHost), "hits");
        std::sort(hits.begin(), hits.end());
        if (reference.empty()) reference = hits;
        const double candidates = 18.0 * threads * search.steps * TABLE;
        const bool same = hits == reference && counters.suspects <= search.suspect_capacity;
        const double sum = counted * candidates;
        printf("%-12s %5u: wall %.1f best %.1f median %.1f G/s, %4.0f W %.2f GHz %.2f nJ, %zu hits (%.0f), %u suspects%s\n", name,
               search.interval_count, sum / measured / 1e9, candidates / times.front() / 1e6, candidates / times[times.size() / 2] / 1e6,
               joules / measured, clocks ? megahertz / clocks / 1e3 : 0, joules / sum * 1e9,
               hits.size(), candidates * chance, counters.suspects, same ? "" : ", NOT THE HITS OF THE PLAIN FORM");
        fflush(stdout);
        return same;
    }
};

int main(int count, char **arguments) {
    auto argument = [&](int n, double otherwise) { return count > n ? atof(arguments[n]) : otherwise; };
    Bench bench(argument(1, 8), argument(2, 5), argument(6, 0));
    const double seconds = argument(3, 0), many_seconds = argument(4, 0);
    const u32 characters = argument(5, 4);
    bool right = true;
    const u32 one = Tensor<ONE_SHARED>::SHARED_BYTES, many = Tensor<MANY_SHARED>::SHARED_BYTES, lean = Tensor<0>::SHARED_BYTES;
    const u32 plain_map = 1 << (PLAIN_COARSE_BITS - 3), tensor_map = 1 << (TENSOR_COARSE_BITS - 3);
    auto one_interval = [&](const char *name, void (*kernel)(Search), u32 block, u32 bytes) {
        right &= bench.run(name, kernel, block, bytes, PLAIN_COARSE_BITS, pow(2, -5.0 * characters), ROUGH_SLACK);
    };
    bench.seconds = seconds;
    bench.look_for(1, characters);
    one_interval("plain_one", plain_one, PLAIN_THREADS, 0);
    one_interval("tensor_one", tensor_one, TENSOR_THREADS, one);
    one_interval("lean_one", lean_one, TENSOR_THREADS, lean);
    bench.seconds = many_seconds;
    for (u32 intervals : {2, 1000, 10000}) {
        const u32 length = intervals == 2 ? characters : 6;
        const double chance = intervals * pow(2, -5.0 * length);
        auto several = [&](const char *name, void (*kernel)(Search), u32 block, u32 bytes, u32 coarse_bits) {
            right &= bench.run(name, kernel, block, bytes, coarse_bits, chance, SLACK);
        };
        bench.look_for(intervals, length);
        several("plain_many", plain_many, PLAIN_THREADS, plain_map, PLAIN_COARSE_BITS);
        several("tensor_many", tensor_many, TENSOR_THREADS, many + tensor_map, TENSOR_COARSE_BITS);
        several("lean_many", lean_many, TENSOR_THREADS, lean + plain_map, PLAIN_COARSE_BITS);
    }
    return right ? 0 : 1;
}
