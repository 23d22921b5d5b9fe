//! `npubbot backup` of a running bot and `npubbot restore` on another machine.

use crate::support::bot::{Home, Met, age_key, met_process};
use crate::support::half::Half;
use crate::support::harness::{Test, test};
use crate::support::program::{command, stderr, stdout};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

pub const TESTS: &[Test] = &[
    test!(a_bot_backed_up_while_it_runs_goes_on_elsewhere),
    test!(no_half_serves_twice_after_a_restore),
    test!(a_backup_that_does_not_open_or_is_cut_leaves_nothing),
    test!(a_backup_of_a_later_version_is_refused),
    test!(neither_command_overwrites_anything),
    test!(another_configuration_is_kept_and_the_bot_waits_until_a_person_has_chosen),
    test!(backups_in_a_folder_have_dates_and_the_newest_stay),
];

/// The folder and configuration file of another machine. Neither exists yet.
fn elsewhere(home: &Home) -> (PathBuf, PathBuf) {
    (home.folder.path().join("elsewhere"), home.folder.path().join("elsewhere.toml"))
}

fn passphrase(home: &Home, text: &str) -> PathBuf {
    let file = home.folder.path().join(format!("passphrase-{}", text.len()));
    fs::write(&file, text).unwrap();
    file
}

fn backup(home: &Home, file: &Path, flags: &[&str]) -> Output {
    home.program(&["backup"]).arg(file).args(flags).output().unwrap()
}

/// Restores with the key of the home, unless the flags name another one.
fn restore(home: &Home, file: &Path, flags: &[&str]) -> Output {
    let ((data, config), mut command) = (elsewhere(home), command());
    command.arg("restore").arg(file).args(flags).arg("--data").arg(data).arg("--config").arg(config);
    if !flags.iter().any(|flag| ["--age-identity", "--passphrase-file"].contains(flag)) {
        command.arg("--age-identity").arg(home.age_identity());
    }
    command.output().unwrap()
}

/// A home with an identity and a ledger, which no bot uses.
fn idle() -> Home {
    let home = Home::new(&["ws://127.0.0.1:9".parse().unwrap()]);
    drop(home.vault());
    drop(home.ledger());
    home
}

/// Makes a backup for the home's age key; returns its file.
fn backed_up(home: &Home) -> PathBuf {
    let file = home.folder.path().join("bot.age");
    let key: age::x25519::Identity = fs::read_to_string(home.age_identity()).unwrap().trim().parse().unwrap();
    let made = backup(home, &file, &["--recipient", &key.to_public().to_string()]);
    assert!(made.status.success(), "{}", stderr(&made));
    let archive = age::decrypt(&key, &fs::read(&file).unwrap()).unwrap();
    for entry in tar::Archive::new(&archive[..]).entries().unwrap() {
        assert_eq!(entry.unwrap().header().mode().unwrap(), 0o600, "also where another program unpacks it");
    }
    file
}

/// Puts the restored folder in the place of this home's data folder, and checks the restored
/// configuration.
fn restored(home: &Home) {
    let (data, config) = elsewhere(home);
    fs::rename(home.data(), home.folder.path().join("old")).unwrap();
    fs::rename(data, home.data()).unwrap();
    assert_eq!(fs::read(config).unwrap(), fs::read(home.config_file()).unwrap());
}

fn backups_in_a_folder_have_dates_and_the_newest_stay() {
    let home = idle();
    let folder = home.folder.path().join("backups");
    fs::create_dir(&folder).unwrap();
    let older = ["npubbot-20260101T000000Z.age", "npubbot-20260102T000000Z.age", "npubbot-20260103T000000Z.age"];
    for name in older.iter().chain(&["npubbot-mine.age", "npubbot-20260101T000000Z.txt"]) {
        fs::write(folder.join(name), "").unwrap();
    }
    let key = age::x25519::Identity::generate().to_public().to_string();
    let made = backup(&home, &folder, &["--recipient", &key, "--keep", "2"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let mut names: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names[0].ends_with(".txt") && names[1] == older[2] && names[3] == "npubbot-mine.age", "{names:?}");
    let file = home.folder.path().join("bot.age");
    let refused = backup(&home, &file, &["--recipient", &key, "--keep", "2"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let none = backup(&home, &file, &["--recipient", "age1nobody"]);
    assert!(!none.status.success() && stderr(&none).contains("not a recipient"), "{}", stderr(&none));
}

async fn a_bot_backed_up_while_it_runs_goes_on_elsewhere() {
    let Met { relay: _relay, home, bot: running, mut asker } = met_process("").await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    let file = backed_up(&home);
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
    let left: Vec<_> = fs::read_dir(home.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".backup")), "no copy is left: {left:?}");
    running.kill();

    let made = restore(&home, &file, &[]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(stderr(&made).contains("npubbot serve") && stderr(&made).contains("two machines"), "{}", stderr(&made));
    restored(&home);
    let again = home.spawn().await;
    assert_eq!(again.public_key, asker.bot, "the same identity");
    assert!(asker.ask("status").await.contains("#1"), "its open job of the pool is searched again");
    home.assert_sound();
}

async fn no_half_serves_twice_after_a_restore() {
    let Met { relay: _relay, home, bot: running, mut asker } = met_process("").await;
    let [served, open, later] = [(); 3].map(|()| Half::draw());
    let split = |half: &Half, prefix: &str| format!("split {} {prefix}", half.point());
    // The first half is used before the backup, the second has an open job in it, and the third is
    // used after it.
    asker.ask(&split(&served, "cat")).await;
    while !asker.next_text().await.contains("ntweak1") {}
    assert!(asker.ask(&split(&open, "qqqqqqqq")).await.contains('#'));
    let file = backed_up(&home);
    asker.ask(&split(&later, "cat")).await;
    while !asker.next_text().await.contains("ntweak1") {}
    running.kill();

    let halves = home.data().join("ledger/used-halves");
    let made = restore(&home, &file, &["--used-halves", halves.to_str().unwrap()]);
    assert!(made.status.success(), "{}", stderr(&made));
    restored(&home);
    let _again = home.spawn().await;
    let lost = asker.next_text().await;
    assert!(lost.contains("backup") || lost.contains("new half"), "the open split job is given up: {lost}");
    for half in [&served, &later] {
        asker.send(&split(half, "dad")).await;
        // The bot also answers older requests, which the restored ledger has not seen. It refuses
        // them for another reason.
        while !asker.next_text().await.contains("has served for a key already") {}
    }
    assert_eq!(home.count("SELECT count(*) FROM job WHERE state = 'accepted'"), Some(0));
}

fn a_backup_that_does_not_open_or_is_cut_leaves_nothing() {
    let home = idle();
    let file = backed_up(&home);
    let (data, config) = elsewhere(&home);
    let nothing_is_left = |output: &Output, code, because: &str| {
        assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
        assert!(stderr(output).contains(because), "{because}: {}", stderr(output));
        let entries = fs::read_dir(&data).map_or(0, Iterator::count);
        assert!(entries == 0 && !config.exists(), "{entries} files are left");
    };
    let (right, wrong) = (passphrase(&home, "correct horse"), passphrase(&home, "wrong"));
    let [right, wrong] = [&right, &wrong].map(|file| ["--passphrase-file", file.to_str().unwrap()]);
    let locked = home.folder.path().join("locked.age");
    assert!(backup(&home, &locked, &right).status.success());
    nothing_is_left(&restore(&home, &locked, &wrong), 2, "wrong passphrase");
    let other = home.folder.path().join("other");
    fs::write(&other, age_key()).unwrap();
    nothing_is_left(&restore(&home, &file, &["--age-identity", other.to_str().unwrap()]), 2, "");
    let whole = fs::read(&file).unwrap();
    let cut = home.folder.path().join("cut.age");
    // Cut in the header, in the first chunk, within the ledger, and before the last byte.
    for length in [0, 60, 400, whole.len() / 2, whole.len() - 1] {
        fs::write(&cut, &whole[..length]).unwrap();
        nothing_is_left(&restore(&home, &cut, &[]), 2, "");
    }
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    fs::write(&cut, changed).unwrap();
    nothing_is_left(&restore(&home, &cut, &[]), 2, "damaged");
    nothing_is_left(&restore(&home, &file, &["--used-halves", "/missing"]), 2, "/missing");
    assert!(restore(&home, &locked, &right).status.success());
}

/// A backup that a later version made is a tar archive with another manifest.
fn a_backup_of_a_later_version_is_refused() {
    let home = idle();
    let made = |entries: &[(&str, &str)]| {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, text) in entries {
            let mut header = tar::Header::new_ustar();
            // `set_path` refuses what goes up.
            header.as_ustar_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(text.len() as u64);
            header.set_cksum();
            tar.append(&header, text.as_bytes()).unwrap();
        }
        let tar = tar.into_inner().unwrap();
        let key: age::x25519::Identity = fs::read_to_string(home.age_identity()).unwrap().trim().parse().unwrap();
        let file = home.folder.path().join("made.age");
        fs::write(&file, age::encrypt(&key.to_public(), &tar).unwrap()).unwrap();
        restore(&home, &file, &[])
    };
    let manifest = |format: u32| format!("{{\"format\":{format},\"version\":\"9.1.0\",\"made_at\":1}}");
    let later = made(&[("manifest.json", &manifest(2)), ("identity.age", "x")]);
    assert_eq!(later.status.code(), Some(2), "{}", stderr(&later));
    assert!(stderr(&later).contains("npubbot 9.1.0"), "{}", stderr(&later));
    for entries in [
        &[("identity.age", "x")][..],
        &[("manifest.json", "{}")],
        &[("manifest.json", &manifest(1)), ("../evil", "x")],
        &[("manifest.json", &manifest(1)), ("relays.toml", "x")],
    ] {
        let output = made(entries);
        assert_eq!(output.status.code(), Some(2), "{entries:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("damaged"), "{entries:?}: {}", stderr(&output));
        assert!(!home.folder.path().join("evil").exists() && !elsewhere(&home).0.join("evil").exists());
    }
    // A ledger of a later schema.
    let ledger = home.sql();
    ledger.pragma_update(None, "user_version", 999).unwrap();
    drop(ledger);
    let key = home.age_identity();
    let output = backup(&home, &home.folder.path().join("x.age"), &["--age-identity", key.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

fn neither_command_overwrites_anything() {
    let home = idle();
    let file = backed_up(&home);
    let before = fs::read(&file).unwrap();
    let again = backup(&home, &file, &["--age-identity", home.age_identity().to_str().unwrap()]);
    assert!(!again.status.success() && fs::read(&file).unwrap() == before, "{}", stderr(&again));
    let (data, _) = elsewhere(&home);
    let files = ["identity.age", "ledger/ledger.sqlite", "ledger/used-halves"];
    for occupied in files {
        fs::create_dir_all(data.join("ledger")).unwrap();
        fs::write(data.join(occupied), "mine").unwrap();
        let output = restore(&home, &file, &[]);
        assert_eq!(output.status.code(), Some(2), "{occupied}: {}", stderr(&output));
        assert_eq!(fs::read(data.join(occupied)).unwrap(), b"mine");
        assert_eq!(files.iter().filter(|file| data.join(file).exists()).count(), 1);
        fs::remove_dir_all(&data).unwrap();
    }
    let nothing = home.folder.path().join("nothing");
    let output =
        command().args(["backup", "x", "--data"]).arg(&nothing).arg("--config").arg(&nothing).output().unwrap();
    assert!(!output.status.success());
}

fn another_configuration_is_kept_and_the_bot_waits_until_a_person_has_chosen() {
    let home = idle();
    let file = backed_up(&home);
    let (data, config) = elsewhere(&home);
    let beside = config.with_extension("toml.restored");
    let (ours, other) = (fs::read(home.config_file()).unwrap(), "[bot]\nname = \"other\"\n");
    let at_restored = |name: &str| {
        let mut command = command();
        command.arg(name).arg("--data").arg(&data).arg("--config").arg(&config);
        if name == "serve" {
            command.arg("--age-identity").arg(home.age_identity());
        }
        command.output().unwrap()
    };
    fs::write(&config, other).unwrap();
    let restored = restore(&home, &file, &[]);
    assert_eq!(restored.status.code(), Some(2), "{}", stderr(&restored));
    assert_eq!((fs::read(&config).unwrap(), fs::read(&beside).unwrap()), (other.as_bytes().to_vec(), ours.clone()));
    for output in [restored, at_restored("serve"), at_restored("doctor")] {
        let said = stdout(&output) + &stderr(&output);
        assert!(!output.status.success() && said.contains("elsewhere.toml.restored"), "{said}");
    }
    // The file is not overwritten either.
    fs::remove_dir_all(&data).unwrap();
    fs::write(&beside, "mine").unwrap();
    let refused = restore(&home, &file, &[]);
    assert!(refused.status.code() == Some(2) && !data.join("identity.age").exists(), "{}", stderr(&refused));
    assert_eq!(fs::read(&beside).unwrap(), b"mine");
    fs::remove_file(&beside).unwrap();
    // The same configuration needs no choice.
    fs::write(&config, &ours).unwrap();
    let same = restore(&home, &file, &[]);
    assert!(same.status.success() && !beside.exists(), "{}", stderr(&same));
    assert!(stdout(&at_restored("doctor")).contains("ok    configuration"));
}
