//! Patterns near a given one: the nearest that is searched for at full rate, and cheaper
//! look-alikes.

use super::chance::Effort;
use super::kind::Kind;
use super::pattern::Pattern;

/// The least ratio of the difficulties at which a look-alike is worth naming.
const WORTH_NAMING: f64 = 1.9;

impl Pattern {
    /// The nearest pattern that the fast kernel searches for: this one, or one with the same
    /// characters at the start. `None` if there is none.
    pub fn nearest_searchable(&self) -> Option<Pattern> {
        if self.begins_selectively() {
            return Some(self.clone());
        }
        let text = match self.kind() {
            Kind::Prefix | Kind::Equal(_) | Kind::HexStart(_) | Kind::Zeros(_) | Kind::Words(_) => return None,
            Kind::Open => self.as_str().trim_start_matches('?').to_owned(),
            Kind::LookAlike => format!("~{}", self.as_str().trim_start_matches(['~', '?'])),
            Kind::EqualAnywhere(count) => format!("={count}"),
            Kind::HexEnd(digits) => format!("hex:{digits}"),
            Kind::Parts { start, middle, end, .. } => {
                let longest = middle.iter().chain([end]).max_by_key(|part| part.len())?;
                let mark = if self.as_str().starts_with('~') { "~" } else { "" };
                format!("{mark}{}{}", start.trim_start_matches('~'), longest.trim_start_matches('~'))
            }
        };
        text.parse().ok().filter(Pattern::begins_selectively)
    }

    /// Patterns that people read as the same, and that are found much sooner; the cheapest first.
    pub fn cheaper(&self) -> Vec<Pattern> {
        self.cheaper_within(&mut Effort::full())
    }

    /// [`Pattern::cheaper`] without patterns whose difficulty takes more than `effort` to compute.
    pub fn cheaper_within(&self, effort: &mut Effort) -> Vec<Pattern> {
        if !matches!(self.kind(), Kind::Prefix | Kind::Open | Kind::Parts { .. }) || self.as_str().starts_with('~') {
            return Vec::new();
        }
        let alike = Pattern::read_within(&format!("~{}", self.as_str()), effort).ok();
        let is_cheaper = |other: &Pattern| {
            self.difficulty().candidates() >= WORTH_NAMING * other.difficulty().candidates() && other.is_searchable()
        };
        alike.into_iter().filter(is_cheaper).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_begins_with_nothing_has_a_nearest_one_that_does() {
        for (text, nearest) in [
            ("*cafe", Some("cafe")),
            ("*al7ce*", Some("al7ce")),
            ("m0*cafe", Some("m0cafe")),
            ("~*alice", Some("~alice")),
            ("=7*", Some("=7")),
            ("hex:*beef", Some("hex:beef")),
            ("????????cafe", Some("cafe")),
            ("m0ctane", Some("m0ctane")),
        ] {
            let pattern: Pattern = text.parse().unwrap();
            assert_eq!(pattern.nearest_searchable().as_ref().map(Pattern::as_str), nearest, "{text}");
        }
    }

    #[test]
    fn a_look_alike_is_named_where_it_is_cheaper() {
        let cheaper = |text: &str| text.parse::<Pattern>().unwrap().cheaper();
        assert_eq!(cheaper("m0ctane"), ["~m0ctane".parse().unwrap()]);
        assert_eq!(cheaper("m0ctn*cafe"), ["~m0ctn*cafe".parse().unwrap()]);
        assert_eq!(cheaper("*cafe"), ["~*cafe".parse().unwrap()]);
        assert_eq!((cheaper("kmn"), cheaper("~cat"), cheaper("=7")), (vec![], vec![], vec![]));
    }
}
