//! Reading and writing the configuration file.

use super::edit::{Choices, SHIPPED};
use super::error::ConfigError;
use super::raw;
use super::types::Config;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

impl Config {
    /// Reads and checks a file.
    ///
    /// Errors: [`ConfigError`], with the line. [`ConfigError::Unsettled`] while there is a
    /// [`Config::restored`] beside it.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let file = path.display().to_string();
        if Config::restored(path).exists() {
            return Err(ConfigError::Unsettled { file });
        }
        let bytes = std::fs::read(path).map_err(|error| ConfigError::Unreadable { file: file.clone(), error })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            ConfigError::NotUtf8 { line: 1 + good.iter().filter(|&&byte| byte == b'\n').count(), file: file.clone() }
        })?;
        Config::parse(&text, &file)
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
    /// Errors: [`ConfigError::Wrong`].
    pub fn parse(text: &str, name: &str) -> Result<Config, ConfigError> {
        raw::read(text, name)
    }

    /// Writes a configuration with these choices and the defaults to `path`, and makes its folder.
    /// Returns `false` and changes nothing if the file exists.
    ///
    /// Errors: [`ConfigError::Unwritable`], or a choice that is not allowed.
    pub fn write_new(path: &Path, choices: &Choices) -> Result<bool, ConfigError> {
        let unwritable = |error| ConfigError::Unwritable { file: path.display().to_string(), error };
        let text = choices.text();
        Config::parse(&text, &path.display().to_string())?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(unwritable)?;
        }
        match OpenOptions::new().create_new(true).write(true).open(path) {
            Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true).map_err(unwritable),
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
