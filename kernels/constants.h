// Numbers that the kernels and the host share. `build.rs` makes a Rust constant of each: plain
// numbers only.
#pragma once

// Table entries: i·G for i = 1…TABLE.
#ifndef TABLE
#define TABLE 2048
#endif
// The most centres a thread walks in one launch.
#define MOST_STEPS 16
// Entries whose differences share one prefix product in the tensor variants.
#define GROUP 4
// Phases that the warps of a multiprocessor are spread over, so that not all of them load the same
// unit at once.
#ifndef STAGES
#define STAGES 4
#endif

// Threads of a block of each variant. Either way 512 are on a multiprocessor.
#define PLAIN_THREADS 256
#define TENSOR_THREADS 512

// Field elements that the tensor variants keep of a centre (tensor.cuh names them).
#define CENTRE_CONSTANTS 17
// How many of them stand in shared memory, with one interval and with many; the others stand in
// device memory.
#ifndef ONE_SHARED
#define ONE_SHARED 12
#endif
#ifndef MANY_SHARED
#define MANY_SHARED 8
#endif
// Shared memory a thread for the way to the tensor cores and back.
#define SCRATCH_BYTES 48

// Bytes of a table entry, of a product's matrix, and of all that belongs to a group.
#define ENTRY_BYTES 272
#define MATRIX_BYTES 1024
#define GROUP_BYTES 5248
// Matrices of an entry and of a group (matrices.cuh names them).
#define MATRICES 10
#define GROUP_MATRICES 5

// Bits of the top word that the first bitmap of many intervals tells apart; it stands in shared
// memory.
#define PLAIN_COARSE_BITS 18
#ifndef TENSOR_COARSE_BITS
#define TENSOR_COARSE_BITS 19
#endif
// The same of the second bitmap, in device memory.
#define FINE_BITS 27

// How far the top word of a candidate may be off, in both directions. With many intervals: a sum of
// some twelve truncated products, each off by 1 (standard deviation). With one interval: ten that
// are each off by at most 743 (field.cuh).
#define SLACK 32
#define ROUGH_SLACK 8192
