//! The places of a bot's configuration and data: those named by flags, else the user's folders
//! (XDG), else those of the service.
//!
//! | order | data folder | configuration |
//! | --- | --- | --- |
//! | 1 | `--data`, `NPUBBOT_DATA` | `--config`, `NPUBBOT_CONFIG` |
//! | 2 | `~/.local/share/npubbot`, if a bot is in it | `~/.config/npubbot/relays.toml` |
//! | 3 | `/var/lib/npubbot`, if it is this user's, or root's with a bot | `/etc/npubbot/relays.toml` |
//! | 4 | `~/.local/share/npubbot` | `~/.config/npubbot/relays.toml` |

use crate::os::{files, process};
use anyhow::{bail, ensure};
use clap::Args;
use std::path::{Path, PathBuf};

/// Name of the identity file in the data folder.
pub(super) const IDENTITY_FILE: &str = "identity.age";
/// Path of the ledger in the data folder.
const LEDGER_FILE: &str = "ledger/ledger.sqlite";
/// Name of the configuration file.
const CONFIG_FILE: &str = "relays.toml";

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

/// The text if the user has no home folder.
const NO_HOME: &str = "this user has no home folder; name the places with --config FILE and --data DIR";

impl FolderFlags {
    /// The places of an existing bot, or of one to be made.
    ///
    /// Errors: the user has no home folder.
    pub fn find(&self) -> anyhow::Result<Folders> {
        PlaceCandidates::of_this_user().find(self.config.as_deref(), self.data.as_deref())
    }

    /// The places of a bot to be made or restored. Root restores the bot of this machine's service,
    /// whose user then owns the files.
    ///
    /// Errors: the user has no home folder; root would make a bot that the service does not run.
    pub fn find_for_new(&self, is_restore: bool) -> anyhow::Result<Folders> {
        let places = PlaceCandidates::of_this_user();
        let is_root = places.is_root && !places.owns_system;
        if self.data.is_some() || !is_root || !places.system_data.is_dir() {
            return self.find();
        }
        ensure!(
            is_restore,
            "the service of this machine has its own user; make its bot with `{}`, or name another folder with --data",
            files::SERVICE_INIT
        );
        places.find(self.config.as_deref(), Some(&places.system_data))
    }
}

impl Folders {
    /// The commands that check and start the bot in these places, one on each line.
    pub fn next_commands(&self, named: &FolderFlags) -> String {
        if let (true, Some(commands)) = (self.data == files::service_folders().1, files::SERVICE_NEXT) {
            let credential = files::SERVICE_CREDENTIAL.map_or_else(String::new, |command| format!("  {command}\n"));
            return credential + commands;
        }
        let flag = |name: &str, path: &Option<PathBuf>| {
            path.as_ref().map_or_else(String::new, |path| format!(" --{name} {}", files::quoted(path)))
        };
        let flags = flag("config", &named.config) + &flag("data", &named.data);
        format!("  npubbot doctor{flags}\n  npubbot serve{flags}")
    }
}

/// Whether a folder holds a bot, or remains of one.
fn has_bot(folder: &Path) -> bool {
    [IDENTITY_FILE, LEDGER_FILE].iter().any(|name| folder.join(name).exists())
}

/// All places that can be chosen.
struct PlaceCandidates {
    /// The user's folders for configuration and data; `None` without a home folder.
    user: Option<(PathBuf, PathBuf)>,
    system_config: PathBuf,
    system_data: PathBuf,
    is_root: bool,
    /// Whether the service's data folder belongs to this user.
    owns_system: bool,
}

impl PlaceCandidates {
    fn of_this_user() -> PlaceCandidates {
        let (system_config, system_data) = files::service_folders();
        PlaceCandidates {
            user: files::user_folders(),
            system_config: system_config.join(CONFIG_FILE),
            is_root: process::is_root(),
            owns_system: files::is_own(&system_data),
            system_data,
        }
    }

    fn find(&self, config: Option<&Path>, data: Option<&Path>) -> anyhow::Result<Folders> {
        let data = data.map_or_else(|| self.choose_data(), |data| Ok(data.to_owned()))?;
        let config = match (config, &self.user) {
            (Some(config), _) => config.to_owned(),
            (None, _) if data == self.system_data => self.system_config.clone(),
            (None, Some((config, _))) => config.join(CONFIG_FILE),
            (None, None) => bail!(NO_HOME),
        };
        Ok(Folders { config, data })
    }

    fn choose_data(&self) -> anyhow::Result<PathBuf> {
        let user = self.user.as_ref().map(|(_, data)| data);
        let is_service = if self.is_root { has_bot(&self.system_data) } else { self.owns_system };
        match user {
            Some(data) if has_bot(data) || !is_service => Ok(data.clone()),
            _ if is_service => Ok(self.system_data.clone()),
            _ => bail!(NO_HOME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// PlaceCandidates below a temporary folder.
    fn places(top: &Path) -> PlaceCandidates {
        let at = |name: &str| top.join(name);
        PlaceCandidates {
            user: Some((at("config"), at("data"))),
            system_config: at("etc/relays.toml"),
            system_data: at("var"),
            is_root: false,
            owns_system: false,
        }
    }

    /// Who asks, where bots are, and whose folder is found.
    #[test]
    fn a_user_has_a_bot_of_their_own_and_the_services_user_and_root_find_the_services() {
        let nobodys: &[&str] = &[];
        for (is_root, owns_system, bots, found) in [
            (false, false, nobodys, "data"),
            (false, false, &["var"], "data"),
            (false, true, &["var"], "var"),
            (true, false, &["var"], "var"),
            (true, false, &["var", "data"], "data"),
        ] {
            let top = tempfile::tempdir().unwrap();
            let at = |name: &str| top.path().join(name);
            for bot in bots {
                fs::create_dir_all(at(bot)).unwrap();
                fs::write(at(bot).join(IDENTITY_FILE), "").unwrap();
            }
            let places = PlaceCandidates { is_root, owns_system, ..places(top.path()) };
            let config = if found == "var" { "etc/relays.toml" } else { "config/relays.toml" };
            assert_eq!(places.find(None, None).unwrap(), Folders { config: at(config), data: at(found) }, "{bots:?}");
        }
    }

    #[test]
    fn flags_come_first() {
        let mut places = places(Path::new("/top"));
        let named = Folders { config: "x".into(), data: "y".into() };
        assert_eq!(places.find(Some(&named.config), Some(&named.data)).unwrap(), named);
        assert_eq!(places.find(None, Some(&named.data)).unwrap().config, Path::new("/top/config/relays.toml"));
        places.user = None;
        assert_eq!(places.find(None, None).unwrap_err().to_string(), NO_HOME);
        assert_eq!(places.find(Some(&named.config), Some(&named.data)).unwrap(), named);
    }
}
