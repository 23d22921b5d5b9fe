// Tests of a key's text. A text that fails every test of a launch has none of its patterns.
#pragma once

#include "text.cuh"

// The lowest bit of each character of a text word, and the lower four.
#define LOWEST_BITS 0x02108421u
#define LOWER_BITS (15 * LOWEST_BITS)
#define TEXT_WORD 0x3fffffffu

// The text in words of six characters, the first one uppermost. The last word ends with ten zeros.
struct TextWords {
    u32 word[TEXT_WORDS];
};

FN TextWords text_words_of(const Fe &x, u32 checksum) {
    TextWords t;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int bit = 226 - 30 * i, limb = bit / 32;
        u64 two = x.v[limb] | (u64)(limb < 7 ? x.v[limb + 1] : 0) << 32;
        t.word[i] = (u32)(two >> bit % 32) & TEXT_WORD;
    }
    t.word[8] = (x.v[0] & 0xffff) << 14 | checksum >> 20;
    t.word[9] = (checksum & 0xfffff) << 10;
    return t;
}

// The text without its first character.
FN void move_up(TextWords &t) {
#pragma unroll
    for (int i = 0; i < TEXT_WORDS; i++) {
        u32 next = i + 1 < TEXT_WORDS ? t.word[i + 1] : 0;
        t.word[i] = (t.word[i] << 5 | next >> 25) & TEXT_WORD;
    }
}

// Whether a character at one of these places is zero.
FN bool has_zero(const TextWords &t, const u32 *places) {
    u32 found = 0;
#pragma unroll
    for (int i = 0; i < TEXT_WORDS; i++) {
        // Carries into a character's uppermost bit unless its lower bits are zero, and no farther.
        u32 carried = (t.word[i] & LOWER_BITS) + LOWER_BITS;
        found |= ~(carried | t.word[i]) & places[i];
    }
    return found != 0;
}

// Whether the run begins at one of its places.
FN bool has_run(const TextWords &text, const TextTest &test) {
    TextWords moved = text, unlike = {};
    if (test.is_equal) {
        move_up(moved);
#pragma unroll
        for (int i = 0; i < TEXT_WORDS; i++) moved.word[i] ^= text.word[i];
    }
    for (u32 n = 0; n < test.run; n++) {
        if (n) move_up(moved);
#pragma unroll
        for (int i = 0; i < TEXT_WORDS; i++)
            unlike.word[i] |= (moved.word[i] ^ test.run_value[n]) & test.run_mask[n];
        if ((n == 2 || n + 1 == test.run) && !has_zero(unlike, test.places)) return false;
    }
    return true;
}

// Whether the text passes one of these tests.
FN bool passes_one(const TextTest *tests, u32 count, const TextWords &text) {
    for (u32 at = 0; at < count; at++) {
        const TextTest &test = tests[at];
        u32 unlike = 0;
#pragma unroll
        for (int i = 0; i < TEXT_WORDS; i++)
            if (test.words >> i & 1) unlike |= (text.word[i] ^ test.value[i]) & test.mask[i];
        if (!unlike && (!test.run || has_run(text, test))) return true;
    }
    return false;
}

// Whether the first bits of the checksum have a value that is accepted.
FN bool has_accepted_bits(const WholeSearch &w, const u32 *accepted, const Fe &x) {
    u32 value = 0;
#pragma unroll
    for (int bit = 0; bit < FIRST_BITS; bit++) {
        u32 chosen = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) chosen ^= x.v[i] & w.first_bits[bit][i];
        value = 2 * value + (ones_in(chosen) & 1);
    }
    return accepted[value / 32] >> value % 32 & 1;
}

// Whether a key may have a pattern: whether its text passes a test. `accepted` and `checksums` are
// those of `w`, or copies.
FN bool passes(const WholeSearch &w, const u32 *accepted, const u32 *checksums, const Fe &x) {
    if (w.key_tests && passes_one(w.tests, w.key_tests, text_words_of(x, 0))) return true;
    if (!w.checksum_tests || (w.has_first_bits && !has_accepted_bits(w, accepted, x))) return false;
    return passes_one(w.tests + w.key_tests, w.checksum_tests, text_words_of(x, checksum_of(checksums, x)));
}
