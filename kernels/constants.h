// Constants shared by the kernels and the host. `build.rs` generates a Rust constant from each, so
// the values must be plain numbers.
#pragma once

// Table entries: i·G for i = 1…TABLE.
#ifndef TABLE
#define TABLE 4096
#endif
// The most centres that a thread visits in one launch.
#define MAX_STEPS 16
// Entries whose differences share one prefix product in the tensor variants.
#define GROUP 4

// Warps per block of the variants, and of the tensor variant that uses less energy. One block fills
// a multiprocessor, so that all of its threads share the tables.
#define WARPS 16
#define FEWER_WARPS 12
// Threads of a block of the kernel that computes suspects in full, and its blocks on a multiprocessor.
#define CONFIRM_THREADS 256
#define CONFIRM_BLOCKS 3
// Warps of a block that are in the same phase of a centre. Those of different phases do not all use
// the same execution unit at once.
#ifndef STAGE_WARPS
#define STAGE_WARPS 4
#endif

// Bytes of shared memory that a block of a tensor variant may have, by compute capability: 9.0 and
// 10.0, 8.0 to 8.9 and 12.0, 7.5 ("Technical Specifications per Compute Capability" in NVIDIA's
// CUDA C++ Programming Guide).
#define LARGE_BLOCK 232448
#define MIDDLE_BLOCK 101376
#define SMALL_BLOCK 65536
// Field elements that the tensor variants keep per centre (tensor.cuh names them). As many as fit
// are in shared memory, the others in device memory.
#define CENTRE_CONSTANTS 19
// Shared memory per thread for passing values to the tensor cores and back, in bytes.
#define SCRATCH_BYTES 40

// Bytes of a table entry, of the matrix of one factor, and of all data of a group.
#define ENTRY_BYTES 272
#define MATRIX_BYTES 1024
#define GROUP_BYTES 7296
// Number of matrices of an entry and of a group (matrices.cuh names them).
#define MATRICES 8
#define GROUP_MATRICES 7

// Leading bits of the top word that index the coarse bitmap in shared memory: in large blocks with
// many intervals, in other blocks with many intervals, and with a few.
#define LARGE_BITS 19
#define COARSE_BITS 18
#define FEW_BITS 17
// The most top words that a warp collects for the fine bitmap, if there are many intervals: fewer
// than 32 wait, and up to 32 come at once. And the bytes of each of them.
#define MAX_DEFERRED 64
#define DEFERRED_BYTES 8
// Leading bits of the top word that index the fine bitmap in device memory.
#define FINE_BITS 27

// The error of a candidate's top word that the filter allows for in both directions, if there are
// many intervals. A top word is a sum of twelve truncated products, each with an error of 1
// (standard deviation).
#define SLACK 32
// The error of a top word that the filter allows for with one interval or a few: twelve products,
// each off by at most 743 (field.cuh).
#define ROUGH_SLACK 9216

// Number of words of six characters in a key's text, and the most characters of a run that a test
// compares.
#define TEXT_WORDS 10
#define MAX_RUN 8
// Words in the tables of the checksum: one for each value of each byte, and the checksum of zero.
#define CHECKSUM_WORDS 8193
// Number of bits of the checksum that are compared before the others are computed, and number of
// words with a bit for each of their values.
#define FIRST_BITS 10
#define ACCEPTED_WORDS 32

// The screened search of whole keys: bytes of an entry of its table, and number of field elements
// that it keeps per thread. As many as fit are in shared memory.
#define WHOLE_ENTRY_BYTES 224
#define WHOLE_FIELDS 9
// Number of tests of the lowest limb.
#define LOW_TESTS 2
// Number of values that each half of a limb is compared with, and number of values that it is
// compared with under a mask.
#define RUN_ROUNDS 3
#define MASKED_ROUNDS 12
// The most groups of parities, and the parities of a group. A key passes a group if all of its
// parities are even.
#define PARITY_GROUPS 4
#define PARITIES 16
