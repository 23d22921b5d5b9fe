// The text of a key: 58 characters of 5 bits after `npub1`, of which the last six are a checksum.
#pragma once

#include "points.cuh"

#define CHARACTERS 58
#define DATA_CHARACTERS 52

struct Text {
    Fe x;          // below p
    u32 checksum;  // its first character in the upper 5 of 30 bits
};

// The checksum of x, by one lookup for each byte. The tables are those of `src/pattern/checksum.rs`,
// the most significant byte first, then the checksum of zero.
FN u32 checksum_of(const u32 *tables, const Fe &x) {
    u32 sum = tables[32 * 256];
    for (int i = 0; i < 32; i++) sum ^= tables[256 * i + (x.v[7 - i / 4] >> (24 - 8 * (i % 4)) & 255)];
    return sum;
}

FN Text text_of(const u32 *tables, const Fe &x) { return Text{x, checksum_of(tables, x)}; }

// The character at a place, 0 to 57.
FN u32 character_at(const Text &t, u32 at) {
    if (at >= DATA_CHARACTERS) return t.checksum >> 5 * (CHARACTERS - 1 - at) & 31;
    if (at == DATA_CHARACTERS - 1) return (t.x.v[0] & 1) << 4;  // one bit of the key, and padding
    u32 bit = 251 - 5 * at, limb = bit / 32;
    u64 two = t.x.v[limb] | (u64)(limb < 7 ? t.x.v[limb + 1] : 0) << 32;
    return two >> bit % 32 & 31;
}
