//! Checks of single values, with their line in error messages.

use super::error::ConfigError;
use crate::duration;
use std::net::SocketAddr;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;
use toml::Spanned;

/// Longest text in a profile, in bytes. Relays refuse longer ones.
const LONGEST_TEXT: usize = 2000;

/// The file being checked, for error messages.
pub(super) struct Place<'a> {
    /// The file's text.
    pub text: &'a str,
    /// The file's name.
    pub file: &'a str,
}

impl Place<'_> {
    /// The error for a mistake at a place of the text.
    pub fn wrong(&self, span: Range<usize>, what: String) -> ConfigError {
        let before = self.text.get(..span.start).unwrap_or_default();
        ConfigError::Wrong { file: self.file.to_owned(), line: 1 + before.matches('\n').count(), what }
    }

    /// A whole number within `allowed`, or `default` if the key is missing.
    pub fn number(
        &self,
        key: &str,
        value: &Option<Spanned<i64>>,
        default: u32,
        allowed: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, ConfigError> {
        let Some(value) = value else { return Ok(default) };
        u32::try_from(*value.get_ref()).ok().filter(|number| allowed.contains(number)).ok_or_else(|| {
            let (least, most) = (allowed.start(), allowed.end());
            self.wrong(value.span(), format!("`{key}` is {}; allowed is {least} to {most}", value.get_ref()))
        })
    }

    /// A duration of at least `least`, or `default` if the key is missing. `why` says what is wrong
    /// with a shorter one. `default` and `least` are texts, because error messages quote them.
    pub fn duration(
        &self,
        key: &str,
        value: &Option<Spanned<String>>,
        default: &str,
        (least, why): (&str, &str),
    ) -> Result<Duration, ConfigError> {
        let (text, span) = value.as_ref().map_or((default, 0..0), |value| (value.get_ref().as_str(), value.span()));
        let Ok(time) = duration::parse(text) else {
            return Err(self.wrong(span, format!("`{key}` is \"{text}\"; allowed is {}", duration::ALLOWED)));
        };
        if duration::parse(least).is_ok_and(|least| time < least) {
            let what = format!(
                "`{key}` is \"{text}\", and {why}; write \"{least}\" or more (it is \"{default}\" if you say nothing)"
            );
            return Err(self.wrong(span, what));
        }
        Ok(time)
    }

    /// A value that `T` parses; `None` if the key is missing.
    pub fn choice<T: FromStr<Err: std::fmt::Display>>(
        &self,
        key: &str,
        value: &Option<Spanned<String>>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(value) = value else { return Ok(None) };
        let chosen = value.get_ref().parse();
        chosen.map(Some).map_err(|error: T::Err| self.wrong(value.span(), format!("`{key}`: {error}")))
    }

    /// An address and a port, like `example`; `None` if it is missing or empty.
    pub fn address(
        &self,
        key: &str,
        value: Option<Spanned<String>>,
        example: &str,
    ) -> Result<Option<SocketAddr>, ConfigError> {
        let Some(value) = value.filter(|value| !value.get_ref().is_empty()) else { return Ok(None) };
        value.get_ref().parse().map(Some).map_err(|_| {
            let text = value.get_ref();
            let what = format!("`{key}` is \"{text}\"; allowed is an address and a port, like \"{example}\"");
            self.wrong(value.span(), what)
        })
    }

    /// A text; `None` if it is missing or empty.
    pub fn text(&self, key: &str, value: Option<Spanned<String>>) -> Result<Option<String>, ConfigError> {
        let Some(value) = value else { return Ok(None) };
        if value.get_ref().len() > LONGEST_TEXT {
            return Err(self.wrong(value.span(), format!("`{key}` is longer than {LONGEST_TEXT} bytes")));
        }
        Ok(Some(value.into_inner()).filter(|text| !text.is_empty()))
    }
}
