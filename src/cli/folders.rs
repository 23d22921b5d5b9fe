//! The places of a bot's configuration and data: those named by flags, else the user's folders
//! (XDG), else those of the service.
//!
//! | order | data folder | configuration |
//! | --- | --- | --- |
//! | 1 | `--data`, `NPUBBOT_DATA` | `--config`, `NPUBBOT_CONFIG` |
//! | 2 | `./.npubbot`, the default of 0.1, if a bot is in it | `./relays.toml` beside it |
//! | 3 | `~/.local/share/npubbot`, if a bot is in it | `~/.config/npubbot/relays.toml` |
//! | 4 | `/var/lib/npubbot`, if it is this user's, or root's with a bot | `/etc/npubbot/relays.toml` |
//! | 5 | `~/.local/share/npubbot` | `~/.config/npubbot/relays.toml` |
//!
//! If there are bots at both 2 and 3, the error asks for `--data`, because a guess could be wrong.
//! A new bot is never made at 2, so a start in another folder makes no second identity.

use super::output::note;
use crate::os::{files, process};
use clap::Args;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Name of the identity file in the data folder.
pub(super) const IDENTITY_FILE: &str = "identity.age";
/// Name of the ledger in the data folder.
pub(super) const LEDGER_FILE: &str = "ledger.sqlite";
/// Name of the configuration file.
const CONFIG_FILE: &str = "relays.toml";
/// The data folder of earlier versions, in the working folder, if no other was named.
const FORMER_DATA: &str = ".npubbot";

/// Flags that name the configuration and the data folder.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct FolderFlags {
    #[arg(short, long, global = true, value_name = "FILE")]
    #[arg(help = format!("Configuration file [default: {}]", files::USER_CONFIG))]
    config: Option<PathBuf>,
    #[arg(short, long, global = true, value_name = "DIR")]
    #[arg(help = format!("Folder with the identity and the ledger [default: {}]", files::USER_DATA))]
    data: Option<PathBuf>,
}

/// The configuration and the data folder of one bot. They need not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Folders {
    /// The configuration file.
    pub config: PathBuf,
    /// The data folder.
    pub data: PathBuf,
}

/// A reason why no folders were chosen. Exit code 2.
#[derive(Debug, Error)]
pub(super) enum FolderError {
    /// The user has no home folder.
    #[error("this user has no home folder; name the places with --config FILE and --data DIR")]
    NoHome,
    /// Two bots could be meant.
    #[error(
        "there is a bot in {former}, where earlier versions kept it, and another in {data}; name one of them with --data \
         (or move one to a safe place)"
    )]
    TwoBots {
        /// The data folder that earlier versions used.
        former: PathBuf,
        /// The user's data folder.
        data: PathBuf,
    },
    /// Root would make a bot that the service does not run.
    #[error(
        "the service of this machine has its own user; make its bot with `{}`, or name another folder with --data",
        files::SERVICE_INIT
    )]
    OtherUser,
}

impl FolderFlags {
    /// The places of an existing bot, or of one to be made.
    ///
    /// Errors: [`FolderError`].
    pub fn find(&self) -> Result<Folders, FolderError> {
        let folders = Places::of_this_user().find(self.config.as_deref(), self.data.as_deref())?;
        if self.data.is_none() && folders.data == Path::new(FORMER_DATA) {
            note!(
                "npubbot: using {FORMER_DATA} of this folder, as earlier versions did; `--data {FORMER_DATA}` says so \
                 without this line"
            );
        }
        Ok(folders)
    }

    /// The places of the bot of this machine's service.
    pub fn of_service(&self) -> Folders {
        let (config, data) = files::service_folders();
        Folders {
            config: self.config.clone().unwrap_or_else(|| config.join(CONFIG_FILE)),
            data: self.data.clone().unwrap_or(data),
        }
    }

    /// The places of a bot to be made.
    ///
    /// Errors: [`FolderError`].
    pub fn find_for_new(&self) -> Result<Folders, FolderError> {
        let folders = self.find()?;
        let places = Places::of_this_user();
        let is_service_user_needed = places.is_root && places.system_data.is_dir() && !places.owns_system;
        if self.data.is_none() && is_service_user_needed {
            return Err(FolderError::OtherUser);
        }
        Ok(folders)
    }
}

impl Folders {
    /// The flags that name these places in another command, with a space before each; empty where
    /// the defaults lead to them.
    pub fn flags(&self, named: &FolderFlags) -> String {
        let flag = |name: &str, path: &Option<PathBuf>| match path {
            Some(path) => format!(" --{name} {}", files::quoted(path)),
            None => String::new(),
        };
        flag("config", &named.config) + &flag("data", &named.data)
    }
}

/// Whether a folder holds a bot, or remains of one.
fn has_bot(folder: &Path) -> bool {
    [IDENTITY_FILE, LEDGER_FILE].iter().any(|name| folder.join(name).exists())
}

/// All places that can be chosen.
struct Places {
    /// The working folder, as an empty path, so that messages show short paths.
    here: PathBuf,
    /// The user's folders for configuration and data; `None` without a home folder.
    user: Option<(PathBuf, PathBuf)>,
    system_config: PathBuf,
    system_data: PathBuf,
    is_root: bool,
    /// Whether the service's data folder belongs to this user.
    owns_system: bool,
}

impl Places {
    fn of_this_user() -> Places {
        let (system_config, system_data) = files::service_folders();
        Places {
            here: PathBuf::new(),
            user: files::user_folders(),
            system_config: system_config.join(CONFIG_FILE),
            is_root: process::is_root(),
            owns_system: files::is_own(&system_data),
            system_data,
        }
    }

    fn find(&self, config: Option<&Path>, data: Option<&Path>) -> Result<Folders, FolderError> {
        let former = self.here.join(FORMER_DATA);
        let found = match data {
            Some(data) => data.to_owned(),
            None => self.data(&former)?,
        };
        let config = match config {
            Some(config) => config.to_owned(),
            None => self.config(&found, data.is_some() || found == former)?,
        };
        Ok(Folders { config, data: found })
    }

    fn data(&self, former: &Path) -> Result<PathBuf, FolderError> {
        let user = self.user.as_ref().map(|(_, data)| data);
        let users_bot = user.filter(|data| has_bot(data));
        match (has_bot(former), users_bot) {
            (true, Some(data)) => {
                return Err(FolderError::TwoBots { former: former.to_owned(), data: data.clone() });
            }
            (true, None) => return Ok(former.to_owned()),
            (false, Some(data)) => return Ok(data.clone()),
            (false, None) => {}
        }
        let is_service = if self.is_root { has_bot(&self.system_data) } else { self.owns_system };
        if is_service { Ok(self.system_data.clone()) } else { user.cloned().ok_or(FolderError::NoHome) }
    }

    /// The configuration file for a data folder. `may_be_here`: whether an earlier version would
    /// have read the file in the working folder.
    fn config(&self, data: &Path, may_be_here: bool) -> Result<PathBuf, FolderError> {
        let here = self.here.join(CONFIG_FILE);
        let user = self.user.as_ref().map(|(config, _)| config.join(CONFIG_FILE));
        if data == self.system_data {
            return Ok(self.system_config.clone());
        }
        let is_former = data == self.here.join(FORMER_DATA);
        match user {
            _ if is_former && here.exists() => Ok(here),
            Some(user) if user.exists() || !(may_be_here && here.exists()) => Ok(user),
            _ if may_be_here && here.exists() => Ok(here),
            _ => Err(FolderError::NoHome),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Places below a temporary folder.
    fn places(top: &Path) -> Places {
        let at = |name: &str| top.join(name);
        fs::create_dir_all(at("here")).unwrap();
        Places {
            here: at("here"),
            user: Some((at("config"), at("data"))),
            system_config: at("etc/relays.toml"),
            system_data: at("var"),
            is_root: false,
            owns_system: false,
        }
    }

    fn bot(folder: &Path, file: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(file), "").unwrap();
    }

    #[test]
    fn without_flags_a_user_has_the_same_bot_in_every_folder() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let mut places = places(top.path());
        let users = Folders { config: at("config/relays.toml"), data: at("data") };
        assert_eq!(places.find(None, None).unwrap(), users);
        // A file in the working folder is not read, and an empty folder is not a bot.
        bot(&places.here, CONFIG_FILE);
        fs::create_dir_all(at("here/.npubbot")).unwrap();
        assert_eq!(places.find(None, None).unwrap(), users);
        assert_eq!(places.find(Some(Path::new("x")), Some(Path::new("y"))).unwrap().data, Path::new("y"));
        places.user = None;
        assert!(matches!(places.find(None, None), Err(FolderError::NoHome)));
        assert!(places.find(Some(Path::new("x")), Some(Path::new("y"))).is_ok());
    }

    #[test]
    fn the_bot_of_an_earlier_version_is_found_where_it_was_and_never_mistaken() {
        for file in [IDENTITY_FILE, LEDGER_FILE] {
            let top = tempfile::tempdir().unwrap();
            let at = |name: &str| top.path().join(name);
            let places = places(top.path());
            bot(&at("here/.npubbot"), file);
            let found = places.find(None, None).unwrap();
            assert_eq!(found, Folders { config: at("config/relays.toml"), data: at("here/.npubbot") });
            bot(&places.here, CONFIG_FILE);
            assert_eq!(places.find(None, None).unwrap().config, at("here/relays.toml"));
            bot(&at("config"), CONFIG_FILE);
            assert_eq!(places.find(None, None).unwrap().config, at("here/relays.toml"), "each bot has its own file");
            bot(&at("data"), IDENTITY_FILE);
            let error = places.find(None, None).unwrap_err().to_string();
            assert!(error.contains("--data") && error.contains(".npubbot"), "{error}");
            assert_eq!(places.find(None, Some(&at("data"))).unwrap().config, at("config/relays.toml"));
        }
    }

    #[test]
    fn a_named_data_folder_keeps_the_configuration_of_the_working_folder() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let places = places(top.path());
        bot(&places.here, CONFIG_FILE);
        assert_eq!(places.find(None, Some(&at("other"))).unwrap().config, at("here/relays.toml"));
        bot(&at("config"), CONFIG_FILE);
        assert_eq!(places.find(None, Some(&at("other"))).unwrap().config, at("config/relays.toml"));
    }

    #[test]
    fn the_services_user_and_root_find_the_services_bot() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let mut places = places(top.path());
        let service = Folders { config: at("etc/relays.toml"), data: at("var") };
        bot(&at("var"), IDENTITY_FILE);
        assert_eq!(places.find(None, None).unwrap().data, at("data"), "another user has a bot of their own");
        places.owns_system = true;
        assert_eq!(places.find(None, None).unwrap(), service);
        (places.owns_system, places.is_root) = (false, true);
        assert_eq!(places.find(None, None).unwrap(), service);
        bot(&at("data"), IDENTITY_FILE);
        assert_eq!(places.find(None, None).unwrap().data, at("data"), "root's own bot comes first");
    }
}
