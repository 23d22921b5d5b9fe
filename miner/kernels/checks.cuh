// Whether a key meets the further conditions of its interval: other characters at the start, parts
// anywhere, and the end, checksum included. `src/pattern/checks.rs` has the encoding.
#pragma once

#include "text.cuh"

// Whether the characters from `at` on are in these sets.
FN bool are_in(const Text &t, const u32 *sets, u32 count, u32 at) {
    for (u32 i = 0; i < count; i++)
        if (!(sets[i] >> character_at(t, at + i) & 1)) return false;
    return true;
}

// Whether the text has the shape at `words`; moves `words` behind the shape. Each part is taken at its
// first place after the part before.
FN bool has_shape(const Text &t, const u32 *&words) {
    const u32 lengths = *words++, start = lengths & 255, parts = lengths >> 8 & 255, end = lengths >> 16 & 255;
    u32 to = lengths >> 24;
    if (to > CHARACTERS - end) to = CHARACTERS - end;
    bool fits = are_in(t, words, start, 0) && are_in(t, words + start, end, CHARACTERS - end);
    words += start + end;
    u32 at = start;
    for (u32 part = 0; part < parts; part++) {
        const u32 length = *words++;
        while (fits && !(at + length <= to && are_in(t, words, length, at))) fits = ++at + length <= to;
        at += length;
        words += length;
    }
    return fits;
}

// Whether the text has one of a pattern's shapes.
FN bool has_pattern(const Text &t, const u32 *words) {
    u32 count = *words++;
    for (u32 i = 0; i < count; i++)
        if (has_shape(t, words)) return true;
    return false;
}

// Whether the key x, below p and in this interval of the launch, has a pattern.
FN bool meets_conditions(const Checks &c, u32 interval, const Fe &x) {
    if (!c.first_member) return true;  // the intervals say all
    const u64 top = (u64)x.v[7] << 32 | x.v[6];
    const Text text = text_of(c.checksums, x);
    for (u32 i = c.first_member[interval]; i < c.first_member[interval + 1]; i++) {
        const Member &member = c.members[i];
        if (top < member.first || member.last < top) continue;
        if (member.words == MEMBER_ALL || has_pattern(text, c.words + member.words)) return true;
    }
    return false;
}

// Whether the key x, below p, is one that the launch hands back.
FN bool is_wanted(const Search &s, const Checks &checks, const Fe &x) {
    const u64 top = (u64)x.v[7] << 32 | x.v[6];
    u32 low = 0, high = s.interval_count;  // the first interval that does not end before `top`
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (s.intervals[middle].last < top) low = middle + 1; else high = middle;
    }
    return low < s.interval_count && s.intervals[low].first <= top && meets_conditions(checks, low, x);
}
