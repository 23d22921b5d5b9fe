//! `npubbot mine`: what it finds, where patterns come from, and when it ends.

use crate::support::harness::{Test, test};
use crate::support::program::{command, object, objects, run_alone, stderr, stdout};
use crate::support::vault::signal;
use npubbot::key::Npub;
use npubbot::pattern::{ALPHABET, Pattern};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(mine_finds_patterns_of_every_kind_and_says_which_was_met),
    test!(mine_appends_locked_keys_to_a_file_of_its_own),
    test!(mine_without_a_target_prints_the_rarest_key_and_how_rare_it_is),
    test!(mine_ends_with_its_time_or_a_signal_and_counts_what_it_printed),
    test!(mine_takes_a_hundred_thousand_words_of_a_file),
];

/// The key of a line. Checks that it belongs to the line's npub and has the line's pattern.
fn key_of(line: &Value) -> nostr::Keys {
    let keys = nostr::Keys::parse(line["nsec"].as_str().unwrap()).unwrap();
    assert_eq!(line["npub"], nostr::ToBech32::to_bech32(&keys.public_key()).unwrap());
    let pattern: Pattern = line["pattern"].as_str().unwrap().parse().unwrap();
    assert!(pattern.matches(&Npub(keys.public_key().to_bytes())), "{line}");
    keys
}

fn mine_finds_patterns_of_every_kind_and_says_which_was_met() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    // Of these patterns only the easy ones are found in a lifetime.
    fs::write(&list, "# mine\nm0ctanem0ctane\n\n=3 ,m0ctanem0ctanex\n").unwrap();
    let several = ["mine", "-f", list.to_str().unwrap(), "--count", "3", "--json"];
    let several = objects(&run_alone(&several));
    assert!(several.len() == 3 && several.iter().all(|line| line["pattern"] == "=3"), "{several:?}");
    several.iter().for_each(|line| drop(key_of(line)));
    for kind in ["~cat", "hex:c0d", "words:4", "ca*[pqrz]"] {
        let output = run_alone(&["mine", kind, "--json"]);
        let line = object(&output);
        assert_eq!(line["pattern"], kind, "{line}");
        let keys = key_of(&line);
        let npub = nostr::ToBech32::to_bech32(&keys.public_key()).unwrap();
        let (first, last) =
            line["found"].as_str().unwrap().split_once('…').unwrap_or((line["found"].as_str().unwrap(), ""));
        assert!(npub[5..].starts_with(first) && npub.ends_with(last), "{line}");
    }
}

fn mine_without_a_target_prints_the_rarest_key_and_how_rare_it_is() {
    let output = run_alone(&["mine", "best", "zeros", "1s", "--json"]);
    let line = object(&output);
    let keys = nostr::Keys::parse(line["nsec"].as_str().unwrap()).unwrap();
    let key = keys.public_key().to_hex();
    let zeros = u64::from_str_radix(&key[..16], 16).unwrap().leading_zeros();
    assert_eq!((&line["pattern"], zeros >= 20), (&format!("zeros:{zeros}").into(), true), "{line}");
    assert_eq!(line["one_in"], f64::from(zeros).exp2() as u64);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let file = file.to_str().unwrap();
    let output = run_alone(&["mine", "best 1s", "-o", file]);
    let (npub, kept) = (stdout(&output), fs::read_to_string(file).unwrap());
    assert!(kept.starts_with(&npub) && kept.lines().count() == 2, "{npub} {kept}");
    assert!(stderr(&output).contains("as 1 key in"), "{}", stderr(&output));
}

fn mine_appends_locked_keys_to_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (keys, words) = (folder.path().join("keys"), folder.path().join("words"));
    let password = folder.path().join("password");
    fs::write(&words, "# two\nsol\ncat\n").unwrap();
    fs::write(&password, "correct horse\n").unwrap();
    let [keys_text, words, password] = [&keys, &words, &password].map(|path| path.to_str().unwrap());
    let flags = ["mine", "--words", words, "-o", keys_text, "--ncryptsec", "--password-file", password, "--count", "2"];
    let output = run_alone(&flags);
    assert!(output.status.success(), "{}", stderr(&output));
    let kept = fs::read_to_string(&keys).unwrap();
    let lines: Vec<&str> = kept.lines().collect();
    assert_eq!(stdout(&output).lines().collect::<Vec<_>>(), [lines[0], lines[2]], "only the npubs are printed");
    let locked = <nostr::nips::nip49::EncryptedSecretKey as nostr::FromBech32>::from_bech32(lines[1]).unwrap();
    let npub = nostr::ToBech32::to_bech32(&nostr::Keys::new(locked.decrypt("correct horse").unwrap()).public_key());
    assert_eq!(npub.unwrap(), lines[0]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&keys).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

/// On a busy machine it may find nothing in its time.
fn mine_ends_with_its_time_or_a_signal_and_counts_what_it_printed() {
    // A pattern that is not found, and an easy one, whose hits come faster than keys are printed.
    for pattern in ["m0ctanem0ctane", "=2*"] {
        let output = run_alone(&["mine", pattern, "--count", "1000000", "--time", "1s", "--json"]);
        let printed = stdout(&output).lines().count();
        let told = format!("the time is over: {printed} found, {} missing", 1_000_000 - printed);
        assert!(output.status.code() == Some(1) && stderr(&output).contains(&told), "{told}: {}", stderr(&output));
    }
    let began = Instant::now();
    let output = run_alone(&["mine", "cat", "--count", "0", "--time", "1s", "--json"]);
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1), "{took:?}");
    for line in stdout(&output).lines() {
        key_of(&serde_json::from_str(line).unwrap());
    }
    // A signal ends the search between two keys of the file, not within one.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let mut child = command()
        .args(["mine", "ca", "--count", "0", "-o", file.to_str().unwrap()])
        .args(["--device", "cpu", "--threads", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let printed: Vec<String> = lines.by_ref().take(5).map(Result::unwrap).collect();
    // SIGTERM, because programs that a script starts in the background ignore SIGINT.
    signal(child.id(), rustix::process::Signal::TERM);
    assert!(!child.wait().unwrap().success(), "a signal");
    let kept = fs::read_to_string(&file).unwrap();
    let kept: Vec<&str> = kept.lines().collect();
    for (at, npub) in printed.iter().enumerate() {
        let keys = nostr::Keys::parse(kept[2 * at + 1]).unwrap();
        assert_eq!((npub.as_str(), &keys.public_key()), (kept[2 * at], &nostr::PublicKey::parse(npub).unwrap()));
    }
}

fn mine_takes_a_hundred_thousand_words_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words");
    let word = |number: usize| {
        let digit = |at: usize| char::from(ALPHABET[number >> (5 * at) & 31]);
        format!("{}z{}", [3, 2, 1].map(digit).iter().collect::<String>(), digit(0))
    };
    let words: Vec<String> = (0..100_001).map(word).collect();
    let mine = |count: usize| {
        fs::write(&file, words[..count].join("\n")).unwrap();
        run_alone(&["mine", "--words", file.to_str().unwrap(), "--count", "3", "--json"])
    };
    let lines = objects(&mine(100_000));
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert!(words.contains(&line["npub"].as_str().unwrap()[5..10].to_owned()), "{line}");
        key_of(&line);
    }
    let refused = mine(100_001);
    assert!(stderr(&refused).contains("at most 100000 words; split it"), "{}", stderr(&refused));
}
