//! Canaries: patterns of known frequency that nobody asked for.

use crate::pattern::{ALPHABET, Pattern, PatternSet, Rate};

/// Length of a canary, in characters, while the device's rate is unknown. One candidate in 2^25
/// matches: frequent enough on a slow device, and not too frequent for a moment on a fast one.
const FIRST_LENGTH: u32 = 5;

/// Least number of canary hits per second. One character more or less changes the number by a
/// factor of 32, so the choice gives 5 to 160: enough to prove that a device works, few enough for
/// the host to verify.
const FEWEST_HITS: f64 = 5.0;

/// Characters of a canary before the checksum, at least: 15 bits of the key, enough for a quick test.
const LEAST_OF_DATA: usize = 3;

/// A random pattern that a device of this rate finds 5 to 160 times a second.
pub fn choose(rate: Option<Rate>) -> Pattern {
    let length = rate.map_or(FIRST_LENGTH, |Rate(rate)| {
        let bits = (rate / FEWEST_HITS).max(1.0).log2();
        ((bits / 5.0) as u32).clamp(1, 12)
    });
    let mut random = [0u8; 12];
    // A canary need not be secret: if the system gives no randomness, a fixed pattern will do.
    let _ = getrandom::fill(&mut random);
    let text: String =
        random.iter().take(length as usize).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    Pattern::parse(&text).expect("up to 12 characters of the alphabet are a pattern")
}

/// The canary of a pass with these patterns, about as frequent as `canary`: at most twice as
/// frequent.
///
/// - Beside a single pattern it is one with which keys of that pattern can begin, so that it adds no
///   interval to the filter: for a single one a GPU has its fastest kernel. Of a prefix the device
///   sees only the shorter pattern, and cannot tell which is the canary.
/// - Where whole keys are compared, its hits show that whole keys are right, with their checksums if
///   those of the others are read. It is of the kind that takes the fewest further tests of every
///   key: it has the end of a pattern that names one, or is a run that begins like the run of one,
///   or is found by one test of a key's lowest bits.
pub fn beside(canary: Pattern, requested: &[Pattern]) -> Pattern {
    if requested.iter().all(Pattern::begins_selectively) {
        return match requested {
            [requested] => Pattern::parse(&requested.start_like(canary.as_str())).unwrap_or(canary),
            _ => canary,
        };
    }
    let reads_checksum = PatternSet::new(requested.to_vec()).text_tests().is_none_or(|tests| tests.need_checksum());
    let text = of_whole_keys(canary.as_str(), requested, reads_checksum);
    text.parse().unwrap_or_else(|_| at_the_end(&canary))
}

/// The text of a canary where whole keys are compared, made of these characters.
fn of_whole_keys(characters: &str, requested: &[Pattern], reads_checksum: bool) -> String {
    if reads_checksum {
        if let Some(end) = requested.iter().find_map(|requested| requested.end_like(characters)) {
            return format!("*{end}");
        }
        // One character more, because it may be at some fifty places.
        let longer = format!("{characters}{}", &characters[..1]);
        if let Some(run) = requested.iter().find_map(|requested| requested.run_like(&longer)) {
            return format!("*{run}*");
        }
    }
    let count = characters.len();
    let of_checksum = if reads_checksum { (count / 3).min(count.saturating_sub(LEAST_OF_DATA)) } else { 0 };
    if reads_checksum && of_checksum == 0 {
        return format!("*{characters}");
    }
    let (of_data, of_checksum) = characters.split_at(count - of_checksum);
    let like = requested.iter().find_map(|requested| requested.data_end_like(of_data));
    format!("*{}?{of_checksum:?>6}", like.as_deref().unwrap_or(of_data))
}

/// The same characters at the end of a key, checksum included.
pub fn at_the_end(canary: &Pattern) -> Pattern {
    format!("*{canary}").parse().unwrap_or_else(|_| canary.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_canary_is_as_frequent_and_shares_the_interval_of_a_longer_or_shorter_pattern() {
        for requested in ["q", "m0ct", "m0ctane", "m0ctanev0st0rxx"] {
            let requested = Pattern::parse(requested).unwrap();
            let canary = choose(Some(Rate(150e9)));
            let nested = beside(canary.clone(), std::slice::from_ref(&requested));
            assert_eq!(nested.bits(), canary.bits());
            assert_eq!(PatternSet::new(vec![nested, requested]).intervals().len(), 1);
        }
    }

    #[test]
    fn beside_a_pattern_of_another_kind_a_canary_adds_no_interval() {
        for rate in [Rate(80e6), Rate(150e9)] {
            for requested in ["m0?tane", "=7", "m0ct*cafe", "~satosh", "hex:0000c0de", "zeros:40", "words:6"] {
                let requested: Pattern = requested.parse().unwrap();
                let canary = choose(Some(rate));
                let nested = beside(canary.clone(), std::slice::from_ref(&requested));
                assert_eq!(nested.bits(), canary.bits());
                let alone = PatternSet::new(vec![requested.clone()]).intervals().len();
                let both = PatternSet::new(vec![nested, requested.clone()]).intervals().len();
                assert!(both <= alone, "{requested}: {both} intervals, {alone} without a canary");
            }
        }
    }

    #[test]
    fn where_whole_keys_are_compared_a_canary_is_of_their_kind_and_reads_what_they_read() {
        let canary: Pattern = "al7ce".parse().unwrap();
        for (requested, expected) in [
            (&["*cafe"][..], "*acafe"),
            (&["*cafe7", "*cafe8"], "*cafe7"),
            (&["*a*[xy]cafe7"], "*cafe7"),
            (&["*[xy]?", "*qqqq"], "*al7ye"),
            (&["*qwerty*"], "*qwerty*"),
            (&["*qwerty*", "*cafe7"], "*cafe7"),
            (&["*m0*"], "*m07cea*"),
            (&["*m0ctane*", "=7*"], "*m0ctan*"),
            (&["*al7ce*", "hex:*beef"], "*al7cea*"),
            (&["*cat*d0g*"], "*al7c??????e"),
            (&["=7*"], "*al7c??????e"),
            (&["=7*", "hex:*c0ffee"], "*qllh??????e"),
            (&["hex:*beef"], "*alhmh???????"),
            (&["hex:*c0ffee"], "*wqllh???????"),
            (&["*qwerty*@40"], "*al7ce???????"),
            (&["m0ctane", "cat"], "al7ce"),
        ] {
            let requested: Vec<Pattern> = requested.iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(beside(canary.clone(), &requested).to_string(), expected);
        }
    }

    #[test]
    fn every_rate_gets_a_canary_that_is_found_often_enough() {
        for rate in [1.0, 1e3, 40e6, 81e6, 1e9, 7e9, 130e9, 1e12] {
            let frequency = rate / choose(Some(Rate(rate))).difficulty().candidates();
            assert!(frequency <= 161.0, "{rate}: {frequency}");
            assert!(frequency >= FEWEST_HITS || rate < 161.0, "{rate}: {frequency}");
        }
    }
}
