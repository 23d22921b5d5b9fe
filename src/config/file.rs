//! The file: reading and checking it, the errors that operators read, and the text of a new one,
//! which is the shipped file with an operator's choices in it.

use super::Config;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason to refuse a configuration: file, line, the mistake, and the allowed values. Nothing was
/// changed.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// A restore left another configuration beside the file, and nobody has chosen yet.
    pub fn unsettled(file: &Path) -> ConfigError {
        let file = file.display();
        ConfigError(format!(
            "{file} is not the configuration of the restored bot, which is beside it: compare both, then take it with \
             `mv {file}.restored {file}`, or keep this one with `rm {file}.restored`"
        ))
    }

    fn unreadable(file: &Path, error: &io::Error) -> ConfigError {
        ConfigError(format!("{} cannot be read ({error}); {}", file.display(), advice(error)))
    }

    fn unwritable(file: &Path, error: &io::Error) -> ConfigError {
        ConfigError(format!("{} cannot be written ({error}); name another with --config", file.display()))
    }

    fn wrong(file: &str, line: usize, what: &str) -> ConfigError {
        ConfigError(format!("{file}, line {line}: {what}"))
    }
}

/// The way to a file that can be read.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "`npubbot init` writes one with the defaults, or name another with --config",
        ErrorKind::PermissionDenied => "run npubbot as the user that runs the bot, or name another with --config",
        _ => "name another with --config",
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// Errors: the mistake, with its line; there is a [`Config::restored`] beside the file.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        Config::read(path).map(|(_, config)| config)
    }

    /// [`Config::load`], with the text of the file.
    ///
    /// Errors: as [`Config::load`].
    pub fn read(path: &Path) -> Result<(String, Config), ConfigError> {
        let file = path.display().to_string();
        if Config::restored(path).exists() {
            return Err(ConfigError::unsettled(path));
        }
        let bytes = std::fs::read(path).map_err(|error| ConfigError::unreadable(path, &error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
            ConfigError::wrong(&file, line, "this is not UTF-8 text; save the file as UTF-8")
        })?;
        Config::parse(&text, &file).map(|config| (text, config))
    }

    /// The file for a restored configuration that differs from an existing one at `path`. Until the
    /// operator takes it or deletes it, the bot does not start: it could dial other relays, without
    /// its proxy.
    pub fn restored(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".restored");
        name.into()
    }

    /// Checks a configuration text. Error messages call it `name`.
    ///
    /// Errors: the mistake, with its line.
    pub fn parse(text: &str, name: &str) -> Result<Config, ConfigError> {
        let wrong = |line, what: String| ConfigError::wrong(name, line, &what);
        let config: Config = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let before = text.get(..at).unwrap_or_default();
            wrong(1 + before.matches('\n').count(), with_key(error.message(), line_at(text, at)))
        })?;
        config.check().map_err(|(table, key, what)| wrong(line_of(text, table, key), what))?;
        Ok(config)
    }

    /// Writes a configuration with these choices and the defaults to `path`, and makes its folder.
    /// Returns `false` and changes nothing if the file exists.
    ///
    /// Errors: the file cannot be written; a choice is not allowed.
    pub fn write_new(path: &Path, choices: &Choices) -> Result<bool, ConfigError> {
        let unwritable = |error: io::Error| ConfigError::unwritable(path, &error);
        let text = choices.text();
        Config::parse(&text, &path.display().to_string())?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(unwritable)?;
        }
        match OpenOptions::new().create_new(true).write(true).open(path) {
            Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true).map_err(|error| {
                // Half a file would be found by the next `init`.
                let _ = std::fs::remove_file(path);
                unwritable(error)
            }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(unwritable(error)),
        }
    }

    /// The default configuration.
    ///
    /// Errors: never in practice; a test checks the shipped file.
    pub fn embedded_default() -> Result<Config, ConfigError> {
        Config::parse(SHIPPED, "relays.toml")
    }
}

fn line_at(text: &str, at: usize) -> &str {
    let begin = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    text.get(begin..).unwrap_or_default().lines().next().unwrap_or_default()
}

/// The key of a line `key = value`.
fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim().trim_matches('"');
    (!key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))).then_some(key)
}

/// The last line that sets this key of this table; 1 if there is none.
fn line_of(text: &str, table: &str, key: &str) -> usize {
    let (mut within, mut line, mut head) = ("", 1, 1);
    for (number, content) in (1..).zip(text.lines()) {
        if let Some(name) = content.trim().strip_prefix('[') {
            within = name.trim_matches(['[', ']', ' ']);
            head = if within == table { number } else { head };
        } else if within == table && !key.is_empty() && key_of(content) == Some(key) {
            line = number;
        }
    }
    if line == 1 && !key.is_empty() { head } else { line }
}

/// A message after the key of its line. Our own begin with a verb; the parser's are sentences.
fn with_key(message: &str, line: &str) -> String {
    let message = message.replace('\n', " ");
    match key_of(line) {
        Some(key) if ["is ", "has "].iter().any(|verb| message.starts_with(verb)) => format!("`{key}` {message}"),
        Some(key) => format!("`{key}`: {message}"),
        None => message,
    }
}

/// The configuration file that ships with npubbot: every key with its default.
pub(super) const SHIPPED: &str = include_str!("../../relays.toml");

/// An operator's choices for a new configuration. Everything else keeps its default.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// The bot's name.
    pub name: Option<String>,
    /// Relays where askers write to the bot. Empty: the shipped ones.
    pub relays: Vec<String>,
    /// The devices that search: `all`, `cpu`, `cuda` or `cuda:N`.
    pub device: Option<String>,
    /// Whether to publish the live status and the daily note.
    pub status: Option<bool>,
}

impl Choices {
    /// The configuration's text, with the comments of the shipped file. It is not checked yet.
    fn text(&self) -> String {
        let quoted = |text: &String| toml::Value::from(text.as_str()).to_string();
        let mut text = SHIPPED.to_owned();
        let is_inbox = |part: &&str| part.starts_with("[[relays]]") && part.contains("\"inbox\"");
        let shipped: Vec<&str> = SHIPPED.split("\n\n").filter(is_inbox).collect();
        if let ([first, others @ ..], false) = (shipped.as_slice(), self.relays.is_empty()) {
            // Relays without the role stay, because they help to find askers' relay lists.
            others.iter().for_each(|relay| text = text.replace(&format!("{relay}\n\n"), ""));
            let roles = first.lines().last().unwrap_or_default();
            let own = self.relays.iter().map(|url| format!("[[relays]]\nurl = {}\n{roles}", quoted(url)));
            text = text.replace(first, &own.collect::<Vec<_>>().join("\n\n"));
        }
        let status = self.status.map(|status| status.to_string());
        let (name, device) = (self.name.as_ref().map(quoted), self.device.as_ref().map(quoted));
        for (key, value) in
            [("name", name), ("device", device), ("live_status", status.clone()), ("daily_note", status)]
        {
            let begin = format!("{key} = ");
            let line = SHIPPED.lines().find(|line| line.starts_with(&begin));
            if let (Some(line), Some(value)) = (line, value) {
                text = text.replacen(&format!("\n{line}\n"), &format!("\n{begin}{value}\n"), 1);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Config;
    use super::*;
    use crate::search::DeviceChoice;

    #[test]
    fn without_choices_the_text_is_the_shipped_file() {
        assert_eq!(Choices::default().text(), SHIPPED);
    }

    #[test]
    fn choices_are_in_the_file_and_its_comments_stay() {
        let choices = Choices {
            name: Some("Ann's \"bot\" \\o/".to_owned()),
            relays: vec!["wss://one.example".to_owned(), "wss://two.example".to_owned()],
            device: Some("cuda:1".to_owned()),
            status: Some(false),
        };
        let text = choices.text();
        let config = Config::parse(&text, "").unwrap();
        let inboxes: Vec<String> =
            config.relays.iter().filter(|relay| relay.inbox).map(|relay| relay.url.to_string()).collect();
        assert_eq!(inboxes, ["wss://one.example", "wss://two.example"]);
        assert!(config.relays.iter().any(|relay| !relay.inbox && relay.discovery), "others help to find relay lists");
        assert_eq!(config.bot.name, "Ann's \"bot\" \\o/");
        assert_eq!(config.search.devices, DeviceChoice::CudaOrdinal(1));
        assert!(!config.bot.live_status && !config.bot.daily_note);
        let comments =
            |text: &str| text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(comments(&text), comments(SHIPPED));
    }

    #[test]
    fn a_relay_that_is_none_is_refused_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/relays.toml");
        let wrong = Choices { relays: vec!["https://one.example".to_owned()], ..Choices::default() };
        let error = Config::write_new(&file, &wrong).unwrap_err().to_string();
        assert!(error.contains("wss://relay.example") && !file.exists(), "{error}");
    }
}
