//! Halves of askers: `split` and `combine` keep the half in a vault process, and no part of it in
//! their own memory.

use crate::support::bot::ChildGuard;
use crate::support::half::Half;
use crate::support::harness::{Test, test};
use crate::support::leaks::{Needle, Search};
use crate::support::program::{self, run_with_input};
use crate::support::vault::{kill, memory, next_vault};
use crate::support::{locked, until};
use nostr_sdk::{Keys, ToBech32};
use npubbot::key::{Npub, Offset, Rotation, SplitTweak, StartPoint, Tweak, candidate};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use tempfile::TempDir;

pub const TESTS: &[Test] = &[
    test!(combine_has_neither_half_nor_key_nor_passphrase_in_its_memory),
    test!(a_half_whose_vault_is_killed_is_lost_with_words_and_its_file_still_serves),
    test!(split_new_leaves_no_file_if_its_vault_is_killed),
];

const PASSPHRASE: &str = "correct horse battery";

/// A file with a half, its passphrase file, and a tweak for it.
struct Stored {
    folder: TempDir,
    half: Half,
    tweak: String,
}

impl Stored {
    fn new() -> Stored {
        let (folder, half) = (tempfile::tempdir().unwrap(), Half::draw());
        let point = StartPoint::new(*half.point().public_key());
        // The first tweak whose key begins with `q`.
        let mut tweaks = (1..).map(|step| {
            let offset = Offset::of_point(0, step, Rotation::ALL[0]);
            SplitTweak { tweak: Tweak { offset, rotation: Rotation::ALL[0] }, fingerprint: half.point().fingerprint() }
        });
        let begins = |npub: Npub| npub.to_string().starts_with("npub1q");
        let tweak = tweaks.find(|split| candidate(&point, &split.tweak).is_some_and(begins)).unwrap().to_string();
        let stored = Stored { folder, half, tweak };
        let text = format!("{}\n# prefixes: q\n", stored.half.text());
        std::fs::write(stored.path("half.age"), locked(PASSPHRASE, &text)).unwrap();
        std::fs::write(stored.path("pass"), format!("{PASSPHRASE}\n")).unwrap();
        stored
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command whose last arguments are the half's file and its passphrase file.
    fn run(&self, arguments: &[&str]) -> Output {
        let (half, pass) = (self.path("half.age"), self.path("pass"));
        let file = [half.to_str().unwrap(), "--passphrase-file", pass.to_str().unwrap()];
        let output = run_with_input(&[arguments, &file].concat(), "");
        assert!(output.status.success(), "{}", program::stderr(&output));
        output
    }

    /// Starts `combine`. Returns when it has combined the key and waits for the key's password.
    async fn combining(&self) -> ChildGuard {
        let password = self.path("password");
        rustix::fs::mknodat(rustix::fs::CWD, &password, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let mut command = program::command();
        command.args(["combine", &self.tweak, "--half"]).arg(self.path("half.age"));
        command.arg("--passphrase-file").arg(self.path("pass"));
        command.args(["--ncryptsec", "--password-file"]).arg(&password);
        let running = ChildGuard(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mark = self.path("half.age.used");
        until("the half is marked as used", || async { mark.exists().then_some(()) }).await;
        running
    }
}

async fn combine_has_neither_half_nor_key_nor_passphrase_in_its_memory() {
    let stored = Stored::new();
    let mut combining = stored.combining().await;
    let key = program::stdout(&stored.run(&["combine", &stored.tweak, "--half"]));
    let key = Keys::parse(key.lines().nth(1).unwrap()).unwrap();
    let needles = [
        Needle::new("the half", stored.half.text().as_bytes()),
        Needle::new("the half's number", stored.half.0.secret_bytes()),
        Needle::new("the key", key.secret_key().as_secret_bytes()),
        Needle::new("the nsec", key.secret_key().to_bech32().unwrap().as_bytes()),
        Needle::new("the passphrase", PASSPHRASE.as_bytes()),
    ];
    let id = combining.0.id();
    let vault = next_vault(id, None).await;
    assert_eq!(Search::new(&needles).process(id), Vec::<String>::new(), "in the command");
    let known = [Needle::new("the tweak", stored.tweak.as_bytes())];
    assert!(!Search::new(&known).process(id).is_empty(), "the search finds what is there");
    // The positive control, if the vault's memory can be read at all.
    if let Ok(regions) = memory(vault) {
        let search = Search::new(&needles[1..2]);
        assert!(regions.iter().any(|region| !search.bytes(&region.bytes).is_empty()), "the half is in the vault");
    }
    std::fs::write(stored.path("password"), "staple\n").unwrap();
    assert!(combining.ended().await.success());
}

async fn a_half_whose_vault_is_killed_is_lost_with_words_and_its_file_still_serves() {
    let stored = Stored::new();
    let mut combining = stored.combining().await;
    kill(next_vault(combining.0.id(), None).await);
    std::fs::write(stored.path("password"), "staple\n").unwrap();
    let status = combining.ended().await;
    let said = std::io::read_to_string(combining.0.stderr.take().unwrap()).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("the half in it is gone; run the command again"), "{said}");
    assert_eq!(std::io::read_to_string(combining.0.stdout.take().unwrap()).unwrap(), "");
    let again = stored.run(&["combine", &stored.tweak, "--half"]);
    assert!(program::stdout(&again).contains("nsec1") && program::stderr(&again).contains("the same key"));
}

/// The vault is killed while it reads the passphrase.
async fn split_new_leaves_no_file_if_its_vault_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let [pass, half] = ["pass", "half.age"].map(|name| folder.path().join(name));
    rustix::fs::mknodat(rustix::fs::CWD, &pass, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut command = program::command();
    command.args(["split", "new", "cat", "--out"]).arg(&half);
    command.arg("--passphrase-file").arg(&pass).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut split = ChildGuard(command.spawn().unwrap());
    kill(next_vault(split.0.id(), None).await);
    assert_eq!(split.ended().await.code(), Some(1));
    assert!(!half.exists());
    assert_eq!(std::io::read_to_string(split.0.stdout.take().unwrap()).unwrap(), "", "no point without its half");
}
