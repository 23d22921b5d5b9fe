//! Folders, variables, version, completions, manual pages, and the questions of `init`.

use crate::support::bot::{ChildGuard, Home, age_key};
use crate::support::harness::{Test, test};
use crate::support::program::{command, run, run_at_home, stderr, stdout};
use crate::support::terminal::{Terminal, at_terminal};
use crate::support::until;
use npubbot::os::files::is_open_to_others;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Stdio};

pub const TESTS: &[Test] = &[
    test!(another_working_folder_makes_no_second_identity),
    test!(init_leaves_folders_to_their_owner_and_names_a_command_that_works),
    test!(a_variable_stands_for_a_flag_and_a_flag_comes_first),
    test!(on_a_terminal_init_asks_and_writes_the_answers),
    test!(a_data_folder_may_have_a_long_name_that_is_no_text),
    test!(the_version_has_commit_kernels_and_features),
    test!(completions_and_manual_pages_name_every_command),
];

/// A home folder with an age key, and its path for `--age-identity`.
fn home() -> (tempfile::TempDir, String) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("key.txt");
    fs::write(&file, age_key()).unwrap();
    for folder in ["one", "two"] {
        fs::create_dir(home.path().join(folder)).unwrap();
    }
    (home, file.display().to_string())
}

fn another_working_folder_makes_no_second_identity() {
    let (home, key) = home();
    let at = |name: &str| home.path().join(name);
    let init = |folder: &str| run_at_home(home.path(), &at(folder), &["init", "--age-identity", &key]);
    let first = init("one");
    assert!(first.status.success(), "{}", stderr(&first));
    assert!(at(".local/share/npubbot/identity.age").exists() && at(".config/npubbot/relays.toml").exists());
    assert!(stdout(&first).starts_with("npub1") && stderr(&first).contains("relays.toml"), "{}", stderr(&first));
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("relays.toml");
    assert_eq!(fs::read(at(".config/npubbot/relays.toml")).unwrap(), fs::read(shipped).unwrap());
    let identity = at(".local/share/npubbot/identity.age");
    assert!(!is_open_to_others(&identity).unwrap());
    let before = fs::read(&identity).unwrap();
    let second = init("two");
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("already"), "{}", stderr(&second));
    assert_eq!(fs::read(&identity).unwrap(), before);
    let doctor = stdout(&run_at_home(home.path(), &at("two"), &["doctor"]));
    assert!(doctor.contains("ok    identity"), "{doctor}");
    assert_eq!(fs::read_dir(at("one")).unwrap().count() + fs::read_dir(at("two")).unwrap().count(), 0);
}

/// The configuration lies in the data folder, then in the folder above it, then in another one.
fn init_leaves_folders_to_their_owner_and_names_a_command_that_works() {
    let (home, key) = home();
    for (folder, config, data) in [
        ("bot", "bot/relays.toml", "bot"),
        ("bot2", "bot2/relays.toml", "bot2/data"),
        ("it's a bot", "its relays.toml", "it's a bot"),
    ] {
        let at = |path: &str| home.path().join("one").join(path);
        let (config, data) = (at(config), at(data));
        let flags =
            ["init", "--age-identity", &key, "--config", config.to_str().unwrap(), "--data", data.to_str().unwrap()];
        let made = run_at_home(home.path(), &home.path().join("one"), &flags);
        assert!(made.status.success(), "{}", stderr(&made));
        assert!(config.exists() && data.join("identity.age").exists());
        for folder in [&at(folder), &data] {
            assert!(!is_open_to_others(folder).unwrap(), "{}", folder.display());
        }
        let said = stderr(&made);
        let next =
            said.lines().find_map(|line| line.trim().strip_prefix("npubbot doctor")).expect("it names a command");
        let script = format!("'{}' doctor{next}", env!("CARGO_BIN_EXE_npubbot"));
        let output = Command::new("sh").args(["-c", &script]).env("HOME", "/dev/null").output().unwrap();
        assert!(stdout(&output).contains("ok    identity"), "{script}: {}{}", stdout(&output), stderr(&output));
    }
}

fn a_variable_stands_for_a_flag_and_a_flag_comes_first() {
    let bench = |variables: &[(&str, &str)], flags: &[&str]| {
        let mut command = command();
        command.args(["bench", "--seconds", "0.1"]).args(flags).envs(variables.iter().copied()).output().unwrap()
    };
    let cpu = [("NPUBBOT_DEVICE", "cpu"), ("NPUBBOT_THREADS", "1"), ("NPUBBOT_JSON", "1")];
    assert!(stdout(&bench(&cpu, &[])).starts_with("{\""));
    // An empty variable is as none.
    let off = bench(&[cpu[0], ("NPUBBOT_THREADS", ""), ("NPUBBOT_JSON", "0")], &[]);
    assert!(off.status.success() && !stdout(&off).contains('{'), "{}{}", stdout(&off), stderr(&off));
    assert!(stderr(&bench(&[("NPUBBOT_DEVICE", "gpu")], &[])).contains("gpu"));
    assert!(bench(&[("NPUBBOT_DEVICE", "gpu")], &["--device", "cpu", "-j", "1"]).status.success());
    let missing = command().arg("serve").env("NPUBBOT_CONFIG", "/nonexistent/relays.toml").output().unwrap();
    assert!(
        stderr(&missing).contains("no home folder") || stderr(&missing).contains("/nonexistent"),
        "{}",
        stderr(&missing)
    );
}

async fn on_a_terminal_init_asks_and_writes_the_answers() {
    let (home, key) = home();
    let config = home.path().join(".config/npubbot/relays.toml");
    let (mut terminal, theirs) = Terminal::new();
    let mut init = command();
    init.args(["init", "--age-identity", &key]).env("HOME", home.path()).stdout(theirs.try_clone().unwrap());
    let mut init = ChildGuard(at_terminal(&mut init, theirs).spawn().unwrap());
    terminal.types("Ann's bot\nhttps://no.example\nwss://one.example, wss://two.example\ncuda:7\nno\n");
    assert!(init.ended().await.success(), "{}", terminal.text());
    terminal.shows("https://no.example is not the address of a relay").await;
    terminal.shows("npubbot serve").await;
    let written = npubbot::config::Config::load(&config).unwrap();
    assert_eq!(written.bot.name, "Ann's bot");
    assert!(!written.bot.live_status && !written.bot.daily_note);
    assert_eq!(written.relays.iter().filter(|relay| relay.inbox).count(), 2);
    assert_eq!(format!("{:?}", written.search.devices), "CudaOrdinal(7)");
}

/// The address of a socket has room for 107 bytes, and serde for paths in UTF-8.
async fn a_data_folder_may_have_a_long_name_that_is_no_text() {
    let home = Home::new(&["ws://127.0.0.1:9".parse().unwrap()]);
    let at = |name: Vec<u8>| home.folder.path().join(OsString::from_vec(name));
    let (data, key) = (at([b"n\xe4me-".as_slice(), &[b'x'; 150]].concat()), at(b"k\xe4y".to_vec()));
    fs::copy(home.age_identity(), &key).unwrap();
    let run = |name: &str, with_key: bool| {
        let mut command = command();
        command.arg(name).arg("--config").arg(home.config_file()).arg("--data").arg(&data);
        if with_key {
            command.arg("--age-identity").arg(&key);
        }
        command
    };
    let made = run("init", true).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let _bot = ChildGuard(run("serve", true).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    until("the bot answers", || async {
        let status = run("status", false).output().unwrap();
        status.status.success().then_some(())
    })
    .await;
}

fn the_version_has_commit_kernels_and_features() {
    let text = stdout(&run(&["--version"]));
    assert!(text.starts_with(concat!("npubbot ", env!("CARGO_PKG_VERSION"), "\n")), "{text}");
    for part in ["commit: ", "CUDA kernels: ", "features: demo", "target: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(stdout(&run(&["-V"])).lines().count(), 1);
}

fn completions_and_manual_pages_name_every_command() {
    let help = stdout(&run(&["--help"]));
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 8, "{help}");
    for shell in ["bash", "zsh", "fish"] {
        let text = stdout(&run(&["completions", shell]));
        let missing: Vec<&&str> = commands.iter().filter(|name| !text.contains(**name)).collect();
        assert!(missing.is_empty(), "{shell}: {missing:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let written = run(&["man", pages.to_str().unwrap()]);
    assert!(written.status.success(), "{}", stderr(&written));
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    for name in commands {
        assert!(page(&format!("npubbot-{name}.1")).contains(".TH"), "{name}");
    }
    let first = page("npubbot.1");
    for part in ["Exit codes:", "Files:", "Environment:", "NPUBBOT_SOME_OPTION"] {
        assert!(first.contains(part), "{part}");
    }
    let nowhere = run(&["man", Path::new("/dev/null/x").to_str().unwrap()]);
    assert!(!nowhere.status.success() && stderr(&nowhere).contains("/dev/null/x"), "{}", stderr(&nowhere));
}
