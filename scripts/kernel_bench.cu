// The search kernels by themselves: are the hits of all forms the same, and how fast is each?
// `kernel-variants.sh` compiles this against one or several folders of kernels and runs them.
//
//     kernel_bench [centres a thread] [launches]

#include "search.cu"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

#ifndef TABLE
#define TABLE 1024
#endif

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

// (first + n·stride)·G: slow and plain, doubling and adding.
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
    u32 threads, launches;
    u32 *coarse = device<u32>(1 << 15), *fine = device<u32>(1 << (FINE_BITS - 5));
    Interval *intervals = device<Interval>(1 << 16);
    std::vector<Hit> reference;

    Bench(u32 steps, u32 launches) : launches(launches) {
        cudaDeviceProp properties;
        check(cudaGetDeviceProperties(&properties, 0), "no GPU");
        threads = properties.multiProcessorCount * 512;
        const u32 per_base = 3072, bases = (threads + per_base - 1) / per_base, capacity = 1 << 22;
        Point *points = device<Point>(TABLE), *base = device<Point>(bases), *starts = device<Point>(per_base);
        Point *step = device<Point>(1);
        Entry *table = device<Entry>(TABLE);
        auto *matrices = device<unsigned char>((size_t)TABLE * MATRICES * MATRIX_WORDS * 4);
        multiples<<<(TABLE + 127) / 128, 128>>>(points, 1, 1, TABLE);
        multiples<<<(bases + 127) / 128, 128>>>(base, 0x123456789abcdefull, 0x1111111111111ull, bases);
        multiples<<<(per_base + 127) / 128, 128>>>(starts, 16 * (2 * TABLE + 1), 16 * (2 * TABLE + 1), per_base);
        multiples<<<1, 1>>>(step, 2 * TABLE + 1, 1, 1);
        build_table<<<(TABLE + 127) / 128, 128>>>(points, table, TABLE);
        build_matrices<<<(TABLE * 32 + 127) / 128, 128>>>(table, matrices, TABLE);
        check(cudaMemcpy(&search.step, step, sizeof(Point), cudaMemcpyDeviceToHost), "tables");
        search.bases = base, search.starts = starts, search.table = table, search.matrices = matrices;
        search.constants = device<uint4>((size_t)threads * TENSOR_CONSTANTS * 2);
        search.prefixes = device<uint4>((size_t)threads * TABLE * 2);
        search.centres = device<Point>((size_t)threads * steps);
        search.suspects = device<Suspect>(capacity), search.hits = device<Suspect>(capacity);
        search.counters = device<Counters>(1);
        search.coarse = coarse, search.fine = fine, search.intervals = intervals;
        search.entries = TABLE, search.steps = steps, search.threads_per_base = per_base;
        search.suspect_capacity = search.hit_capacity = capacity;
    }

    // `count` random intervals as of patterns of `length` characters.
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
        search.first_top = (u32)(wanted[0].first >> 32) - SLACK;
        search.top_width = (u32)((wanted[0].last >> 32) - (wanted[0].first >> 32)) + 2 * SLACK;
        reference.clear();
    }

    bool run(const char *name, void (*kernel)(Search), u32 block, u32 bytes, u32 coarse_bits, double chance) {
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), name);
        check(cudaMemset(coarse, 0, 1 << 17), "coarse");
        check(cudaMemset(fine, 0, 1 << (FINE_BITS - 3)), "fine");
        const u32 count = search.interval_count;
        build_filter<<<std::min(count, 1024u), 128>>>(intervals, count, coarse, coarse_bits, fine);
        cudaEvent_t before, after;
        cudaEventCreate(&before), cudaEventCreate(&after);
        std::vector<float> times;
        for (u32 launch = 0; launch < launches; launch++) {
            check(cudaMemset(search.counters, 0, sizeof(Counters)), "counters");
            cudaEventRecord(before);
            kernel<<<threads / block, block, bytes>>>(search);
            confirm<<<132, 256>>>(search, threads);
            cudaEventRecord(after);
            check(cudaDeviceSynchronize(), name);
            float milliseconds;
            cudaEventElapsedTime(&milliseconds, before, after);
            times.push_back(milliseconds);
        }
        std::sort(times.begin(), times.end());
        Counters counters;
        check(cudaMemcpy(&counters, search.counters, sizeof counters, cudaMemcpyDeviceToHost), "counters");
        std::vector<Hit> hits(std::min(counters.hits, search.hit_capacity));
        check(cudaMemcpy(hits.data(), search.hits, hits.size() * sizeof(Hit), cudaMemcpyDeviceToHost), "hits");
        std::sort(hits.begin(), hits.end());
        if (reference.empty()) reference = hits;
        const double candidates = 18.0 * threads * search.steps * TABLE;
        const bool same = hits == reference && counters.suspects <= search.suspect_capacity;
        printf("%-12s %5u intervals: best %.1f, median %.1f G/s, %zu hits, %.0f expected, %u suspects%s\n", name,
               search.interval_count, candidates / times.front() / 1e6, candidates / times[times.size() / 2] / 1e6,
               hits.size(), candidates * chance, counters.suspects, same ? "" : ", NOT THE HITS OF THE PLAIN FORM");
        return same;
    }
};

int main(int count, char **arguments) {
    Bench bench(count > 1 ? atoi(arguments[1]) : 8, count > 2 ? atoi(arguments[2]) : 5);
    const u32 tensor = TENSOR_SHARED_BYTES(TENSOR_SHARED), lean = TENSOR_SHARED_BYTES(0);
    const u32 plain_map = 1 << (PLAIN_COARSE_BITS - 3), tensor_map = 1 << (TENSOR_COARSE_BITS - 3);
    bool right = true;
    bench.look_for(1, 4);
    right &= bench.run("plain_one", plain_one, PLAIN_THREADS, 0, PLAIN_COARSE_BITS, pow(2, -20));
    right &= bench.run("tensor_one", tensor_one, TENSOR_THREADS, tensor, TENSOR_COARSE_BITS, pow(2, -20));
    right &= bench.run("lean_one", lean_one, TENSOR_THREADS, lean, PLAIN_COARSE_BITS, pow(2, -20));
    for (u32 intervals : {2, 1000, 10000}) {
        const u32 length = intervals == 2 ? 4 : 6;
        const double chance = intervals * pow(2, -5.0 * length);
        bench.look_for(intervals, length);
        right &= bench.run("plain_many", plain_many, PLAIN_THREADS, plain_map, PLAIN_COARSE_BITS, chance);
        right &= bench.run("tensor_many", tensor_many, TENSOR_THREADS, tensor + tensor_map, TENSOR_COARSE_BITS, chance);
        right &= bench.run("lean_many", lean_many, TENSOR_THREADS, lean + plain_map, PLAIN_COARSE_BITS, chance);
    }
    return right ? 0 : 1;
}
