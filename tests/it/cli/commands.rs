//! The program from an operator's view: flags, files, exit codes, output that nobody takes, and hidden
//! prompts.

use crate::support::bot::{ChildGuard, Home, age_key};
use crate::support::harness::{Test, test};
use crate::support::program::{command, object, run, run_alone, stderr, stdout};
use crate::support::terminal::{Terminal, at_terminal};
use crate::support::vault::{children_of, kill};
use crate::support::wait_for;
use rustix::termios::LocalModes;
use std::fs;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub const TESTS: &[Test] = &[
    test!(bench_finds_the_expected_number_of_hits).slow(),
    test!(a_report_of_bench_names_version_system_device_rate_and_power),
    test!(bad_flags_are_explained),
    test!(another_passphrase_replaces_the_first),
    test!(what_only_a_person_can_repair_exits_with_the_code_that_stops_restarts),
    test!(advice_names_what_works_where_it_is_given),
    test!(the_unit_has_a_memory_limit_and_restarts_only_what_a_restart_mends),
    test!(serve_makes_no_identity_and_refuses_another_bots_ledger_and_a_wrong_configuration),
    test!(without_a_terminal_the_error_asks_for_a_passphrase_file),
    test!(the_demo_ends_with_a_verified_key_of_any_kind),
    test!(a_command_whose_reader_is_gone_ends_quietly_and_one_on_a_full_disk_says_so).slow(),
    test!(ctrl_c_at_a_hidden_prompt_leaves_a_terminal_that_shows_what_is_typed),
];

fn bench_finds_the_expected_number_of_hits() {
    for patterns in [&["--patterns", "1"][..], &["--patterns", "1000"], &["*ca", "m0ct"], &["=4*"]] {
        let line = object(&run_alone(&[&["bench", "--seconds", "0.3", "--json"][..], patterns].concat()));
        let (expected, found) = (line["hits_expected"].as_f64().unwrap(), line["hits_found"].as_f64().unwrap());
        // Five standard deviations: by chance, one run in two million fails.
        assert!((found - expected).abs() <= 5.0 * expected.sqrt().max(1.0), "{line}");
        assert_eq!(line["hits_wrong"], 0, "{line}");
        assert_eq!(line["threads"], 1, "{line}");
        let rate = line["candidates"].as_f64().unwrap() / line["seconds"].as_f64().unwrap();
        assert!((rate / line["candidates_per_second"].as_f64().unwrap() - 1.0).abs() < 1e-6, "{line}");
        // Both are there, and both are null where the processor's counters cannot be read.
        let power = line.get("watts").zip(line.get("candidates_per_joule"));
        match power.map(|(watts, per_joule)| (watts.as_f64(), per_joule.as_f64())) {
            Some((Some(watts), Some(per_joule))) => {
                assert!(watts > 0.0 && (watts * per_joule / rate - 1.0).abs() < 1e-6, "{line}");
            }
            _ => assert_eq!(power, Some((&serde_json::Value::Null, &serde_json::Value::Null)), "{line}"),
        }
    }
}

fn a_report_of_bench_names_version_system_device_rate_and_power() {
    let said = stdout(&run_alone(&["bench", "--seconds", "0.2", "--report"]));
    let block = said.strip_prefix("```text\n").and_then(|rest| rest.strip_suffix("\n```\n")).expect("one block");
    let system = format!("system: {} {}", std::env::consts::OS, std::env::consts::ARCH);
    let parts =
        [concat!("npubbot ", env!("CARGO_PKG_VERSION")), "commit: ", &system, "cpu: ", "kernel ", "/s over ", "hits"];
    for part in parts {
        assert!(block.contains(part), "{part}: {said}");
    }
    assert!(block.contains(" W, ") || block.contains("power: not known"), "{said}");
}

/// A file that is not UTF-8: the program's own code has zeros and other bytes.
const UTF_16: &str = "/proc/self/exe";

fn bad_flags_are_explained() {
    let cases: &[(&[&str], &str)] = &[
        (&["mine", "b0b"], "cannot occur in an npub"),
        (&["mine"], "PATTERN"),
        (&["explain", ""], "there is no pattern; name one"),
        (&["mine", "--words", UTF_16], "save the file as UTF-8"),
        (&["mine", "--file", UTF_16], "save the file as UTF-8"),
        (&["mine", "best"], "best 10m"),
        (&["mine", "best", "10s", "--count", "2"], "gives one key"),
        (&["mine", "cat", "best", "10s"], "comes alone"),
        (&["bench", "best", "10s"], "no target"),
        (&["mine", "cat", "--time", "soon"], "--time"),
        (&["mine", "-f", "/nonexistent/list"], "/nonexistent/list"),
        (&["explain", "best"], "comes alone and with a time"),
        (&["mine", "cat", "--device", "gpu"], "not a device"),
        (&["bench", "--gpu-memory", "half"], "a whole number and MB or GB"),
        (&["bench", "--seconds", "soon"], "number of seconds"),
        (&["bench", "--device", "cuda:99"], "cuda:99"),
        (&["mine", "cat", "--device", "cuda:99"], "cuda:99"),
        (&["explain", "cat", "--device", "cuda:99"], "cuda:99"),
        (&["bench", "--patterns", "99999999"], "1000000"),
        (&["mine", "--file", "/"], "cannot be read"),
        (&["mine", "=4*", "--ncryptsec", "--password-file", "/missing"], "/missing"),
        (&["combine", "ntweak1", "--half", UTF_16], "tweak"),
        (&["split", "new", "b0b", "--print"], "~b0b"),
        (
            &["split", "new", "m*[ql][ql][ql][ql][ql][ql][ql][ql]", "--print"],
            "they take m[lq][lq][lq][lq][lq][lq][lq][lq]; no",
        ),
        (&["worker", "--nats", "nats://127.0.0.1:9", "--creds", "/missing"], "tls://"),
        (&["man", UTF_16], "no pages can be written"),
        (&["demo", "--prefix", "!"], "cannot occur"),
        (&["demo", "--prefix", "~b?1ö"], "cannot occur"),
        (&["demo", "--prefix", "*[ql][ql][ql][ql][ql][ql]"], "bots do not search for"),
        (&["serve", "--config", "/nonexistent/relays.toml"], "/nonexistent/relays.toml"),
    ];
    for (arguments, expected) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
    let split = |prefixes: usize| run(&[vec!["split", "new", "--print"], vec!["cat"; prefixes]].concat());
    let output = split(63);
    assert!(!output.status.success() && stdout(&output).is_empty(), "{}", stdout(&output));
    assert!(stderr(&output).contains("62 at most"), "{}", stderr(&output));
    assert!(split(62).status.success());
}

/// A home with an identity, and a configuration that needs no network.
fn initialised() -> Home {
    let home = Home::new(&["ws://127.0.0.1:9".parse().unwrap()]);
    drop(home.vault());
    home
}

fn run_of(home: &Home, arguments: &[&str]) -> Output {
    home.unlocked(arguments).output().unwrap()
}

fn another_passphrase_replaces_the_first() {
    use npubbot::vault::{Unlock, Vault};
    let home = initialised();
    let (file, new) = (home.data().join("identity.age"), home.folder.path().join("new.txt"));
    fs::write(&new, "correct horse\n").unwrap();
    let key = Unlock::AgeIdentityFile(home.age_identity());
    let bot = Vault::open(&file, &key).unwrap().public_key();
    let arguments = ["passphrase", "--new-passphrase-file", new.to_str().unwrap()];
    let said = run_of(&home, &arguments);
    assert!(said.status.success() && stderr(&said).contains("keep the old"), "{}", stderr(&said));
    assert!(Vault::open(&file, &key).is_err());
    let opened = Vault::open(&file, &Unlock::Passphrase("correct horse".to_owned().into())).unwrap();
    assert_eq!(opened.public_key(), bot);
    let before = fs::read(&file).unwrap();
    let wrong = run_of(&home, &arguments);
    assert_eq!(wrong.status.code(), Some(2), "the old key opens it no more: {}", stderr(&wrong));
    assert_eq!(fs::read(&file).unwrap(), before);
    let names: Vec<_> = fs::read_dir(home.data()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{names:?}");
}

fn what_only_a_person_can_repair_exits_with_the_code_that_stops_restarts() {
    let home = initialised();
    let person = |what: &str, output: &Output| {
        assert_eq!(output.status.code(), Some(2), "{what}: {}{}", stdout(output), stderr(output));
    };
    person("serve on no such device", &run_of(&home, &["serve", "--device", "cuda:77"]));
    // A file in the place of a folder, as on a folder that cannot be written.
    let config = home.config_file();
    let below = ["init", "--data", config.to_str().unwrap(), "--config", "/nonexistent/relays.toml"];
    person("init below a file", &run(&below));
    fs::create_dir_all(home.data().join("ledger")).unwrap();
    let ledger = home.data().join("ledger/ledger.sqlite");
    fs::write(&ledger, "hello ".repeat(1000)).unwrap();
    let output = run_of(&home, &["serve"]);
    for part in ["ledger.sqlite", "restore a backup", "used-halves"] {
        assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
    }
    person("a damaged ledger", &output);
    fs::remove_file(&ledger).unwrap();
    let (identity, key) = (home.data().join("identity.age"), fs::read(home.age_identity()).unwrap());
    fs::write(home.age_identity(), age_key()).unwrap();
    person("another key", &run_of(&home, &["serve"]));
    fs::write(home.age_identity(), key).unwrap();
    let whole = fs::read(&identity).unwrap();
    // Without its last byte only the key can tell.
    for (damaged, is_seen) in
        [(&[][..], true), (&whole[..40], true), (&whole[..whole.len() - 1], false), (&[7; 300], true)]
    {
        fs::write(&identity, damaged).unwrap();
        person("a damaged identity", &run_of(&home, &["serve"]));
        let doctor = stdout(&run_of(&home, &["doctor"]));
        assert!(!is_seen || (doctor.contains("BAD   identity") && doctor.contains("restore a copy")), "{doctor}");
    }
    fs::remove_file(&identity).unwrap();
    fs::create_dir(&identity).unwrap();
    person("a folder in its place", &run_of(&home, &["serve"]));
}

fn advice_names_what_works_where_it_is_given() {
    let said = stderr(&run(&["mine", "cat", "--ncryptsec", "--device", "cpu"]));
    assert!(said.contains("--password-file") && !said.contains("--passphrase-file"), "{said}");
    let said = stderr(&run(&["mine", "cat", "--device", "cpu", "--out", "/dev/null"]));
    assert!(said.contains("not a regular file") && !said.contains("chmod"), "{said}");
    let home = initialised();
    let as_other = |name: &str| {
        let mut command = home.unlocked(&[name]);
        std::os::unix::process::CommandExt::uid(&mut command, 65_534);
        command.output()
    };
    // The folder of the tests is another user's. Only root can become another user here.
    match as_other("doctor").and_then(|doctor| Ok([doctor, as_other("serve")?])) {
        Err(error) => println!("not as another user: {error}"),
        Ok(outputs) => outputs.iter().for_each(|output| {
            let said = stdout(output) + &stderr(output);
            assert!(!output.status.success() && !said.contains("npubbot init"), "{said}");
        }),
    }
}

fn the_unit_has_a_memory_limit_and_restarts_only_what_a_restart_mends() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operators/npubbot.service");
    let unit = fs::read_to_string(unit).unwrap();
    let settings = [
        "MemoryMax=4G",
        "RestartPreventExitStatus=2 203 217 228 243",
        "Restart=always",
        "LimitCORE=0",
        "Type=notify",
        "WatchdogSec=60",
    ];
    for setting in settings {
        assert!(unit.lines().any(|line| line == setting), "{setting}");
    }
}

fn serve_makes_no_identity_and_refuses_another_bots_ledger_and_a_wrong_configuration() {
    let home = initialised();
    let identity = home.data().join("identity.age");
    let refused = |because: &str| {
        let output = run_of(&home, &["serve"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(because), "{}", stderr(&output));
    };
    // The ledger of another bot.
    let other = nostr::Keys::generate().public_key();
    home.ledger().claim(&other).unwrap();
    refused(&nostr::ToBech32::to_bech32(&other).unwrap());
    // A ledger whose identity is lost: a new identity beside it would be another bot.
    fs::remove_file(&identity).unwrap();
    refused("restore the identity file");
    assert!(!identity.exists());
    let doctor = stdout(&run_of(&home, &["doctor"]));
    let lost = ["BAD   identity       there is no identity", "but there is the ledger"];
    assert!(lost.iter().all(|part| doctor.contains(part)), "{doctor}");
    // A folder without identity and ledger.
    fs::remove_dir_all(home.data()).unwrap();
    refused("npubbot init");
    assert!(!home.data().exists(), "nothing was made");
    // Every mistake of a configuration with its line: `config::tests`.
    for (text, expected) in [("[bot]\nnmae = \"x\"\n", "line 2: `nmae`"), ("[[relays]\n", "line 1: ")] {
        fs::write(home.config_file(), text).unwrap();
        refused(&format!("{}, {expected}", home.config_file().display()));
    }
}

fn without_a_terminal_the_error_asks_for_a_passphrase_file() {
    let folder = tempfile::tempdir().unwrap();
    let [data, config] = ["data", "relays.toml"].map(|name| folder.path().join(name));
    let init = ["init", "--data", data.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let missing = &["--passphrase-file", "/missing/secret"][..];
    for (flags, expected) in [(&[][..], "--passphrase-file"), (missing, "/missing/secret cannot be read")] {
        let output = run(&[&init[..], flags].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        // Otherwise the next `init` would find a configuration and ask nothing.
        assert!(!config.exists());
    }
}

fn the_demo_ends_with_a_verified_key_of_any_kind() {
    let output = run(&["demo", "--prefix", "cat", "--device", "cpu", "--json"]);
    let line = object(&output);
    assert_eq!(line["prefix"], "cat");
    assert_eq!(line["verified"], true);
    for said in ["asker | cat", "bot | "] {
        assert!(stderr(&output).contains(said), "the conversation is on standard error: {}", stderr(&output));
    }
    assert!(line["npub"].as_str().unwrap().starts_with("npub1cat"), "{line}");
    assert!(line["seconds"].as_f64().unwrap() > 0.0);
    let line = object(&run(&["demo", "--prefix", "*7e", "--device", "cpu", "--json"]));
    assert_eq!((&line["pattern"], &line["verified"], line.get("prefix")), (&"*7e".into(), &true.into(), None));
    let (npub, found) = (line["npub"].as_str().unwrap(), line["found"].as_str().unwrap());
    assert!(npub[5..].contains(found) && found.len() >= 2, "{line}");
}

/// Commands that print much or little, with files of this folder.
fn commands(folder: &str) -> Vec<Vec<String>> {
    let words = |line: &str| line.replace("FOLDER", folder).split(' ').map(str::to_owned).collect();
    [
        "mine q --json --device cpu -j 1",
        "mine best zeros 1s --device cpu -j 1",
        "bench --seconds 0.1 --device cpu -j 1 --report",
        "completions bash",
        "doctor --data FOLDER/data --config FOLDER/relays.toml",
        "fleet --data FOLDER/data init --host 127.0.0.1",
    ]
    .map(words)
    .into()
}

async fn a_command_whose_reader_is_gone_ends_quietly_and_one_on_a_full_disk_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for arguments in commands(folder) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = command().args(&arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let on_disk = command().args(&arguments).stdout(full()).stderr(Stdio::piped()).output().unwrap();
        let unread = command().args(&arguments).stdout(full()).stderr(full()).output().unwrap();
        for output in [&closed, &on_disk, &unread] {
            assert!(output.status.code().is_some_and(|code| code <= 2), "{arguments:?}: {output:?}");
            assert!(!stderr(output).contains("panicked"), "{arguments:?}: {output:?}");
        }
        if !["fleet", "doctor"].contains(&arguments[0].as_str()) {
            assert!(closed.status.success(), "{arguments:?}: {closed:?}");
            assert_eq!(on_disk.status.code(), Some(1), "{arguments:?}: {on_disk:?}");
            assert!(stderr(&on_disk).contains("standard output cannot be written: "), "{arguments:?}: {on_disk:?}");
        }
    }
}

/// A shell outlives the program, as it does for a person, so the terminal stays.
async fn ctrl_c_at_a_hidden_prompt_leaves_a_terminal_that_shows_what_is_typed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = folder.path().join("relays.toml");
    std::fs::write(&config, "[[relays]]\nurl = \"ws://127.0.0.1:9\"\nroles = [\"inbox\", \"status\"]\n").unwrap();
    let init = ["init", "--data", data.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let mine = ["mine", "q", "--ncryptsec", "--device", "cpu", "-j", "1"];
    // Ctrl-C, Ctrl-\, and the end of the bot while its vault asks.
    for (arguments, key) in [(&init[..], "\x03"), (&init[..], "\x1c"), (&init[..], ""), (&mine[..], "\x03")] {
        let (mut terminal, theirs) = Terminal::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap : INT QUIT; \"$@\"; echo; echo ended; read -r wait", "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_npubbot")).args(arguments).env("HOME", "/dev/null");
        let shell = shell.stdout(theirs.try_clone().unwrap());
        let shell = ChildGuard(at_terminal(shell, theirs).spawn().unwrap());
        terminal.shows(": ").await;
        wait_for("nothing that is typed is shown", || !terminal.has(LocalModes::ECHO)).await;
        match key {
            "" => kill(children_of(shell.0.id())[0]),
            key => terminal.types(key),
        }
        terminal.shows("ended").await;
        wait_for("what is typed is shown", || terminal.has(LocalModes::ECHO)).await;
        assert!(!terminal.text().contains("cannot be started"), "{}", terminal.text());
        assert!(!data.join("identity.age").exists());
    }
}
