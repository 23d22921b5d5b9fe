//! Split keys end to end: the program makes a half, the request goes through a relay, and the
//! program combines half and tweak to the key.

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{Met, met, met_process};
use crate::support::harness::{Test, test};
use crate::support::leaks::{Needle, Search};
use crate::support::program::run_with_input;
use std::process::Output;

pub const TESTS: &[Test] = &[
    test!(an_asker_keeps_half_of_the_key_and_the_operator_never_has_it),
    test!(a_half_in_a_file_includes_its_prefixes),
    test!(a_half_is_never_an_argument_and_a_bad_one_is_named),
    test!(the_work_that_a_refusal_asks_for_is_what_npubbot_work_does),
];

fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap().lines().map(str::to_owned).collect()
}

fn refusal(output: &Output) -> String {
    assert!(!output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A half and the line to send to the bot.
fn new_half(prefix: &str) -> (String, String) {
    let lines = lines(&run_with_input(&["split", "new", prefix, "--print"], ""));
    let [half, message] = &lines[..] else { panic!("{lines:?}") };
    (half.clone(), message.clone())
}

fn tweak_in(text: &str) -> String {
    text.lines().find(|line| line.starts_with("ntweak1")).unwrap_or_else(|| panic!("no tweak in: {text}")).to_owned()
}

async fn an_asker_keeps_half_of_the_key_and_the_operator_never_has_it() {
    let Met { relay, home, bot, mut asker } = met_process("").await;
    let (half, message) = new_half("dad");
    let acceptance = asker.ask(&message).await;
    assert!(acceptance.contains("#1") && acceptance.contains("your own half"), "{acceptance}");
    let answer = asker.next_text().await;
    assert!(!answer.contains("nsec1"), "{answer}");
    let tweak = tweak_in(&answer);

    let made = lines(&run_with_input(&["combine", &tweak, "--prefix", "dad"], &half));
    let key = DeliveredKey::read(&made.join("\n")).expect("an nsec");
    key.assert_starts_with("dad");
    assert_eq!(made[0], key.npub);
    assert!(answer.contains(&key.npub), "the bot named the npub");

    // The same half again is refused, whoever asks.
    let again = asker.ask(&format!("{message} ham")).await;
    assert!(again.contains("served for a key already"), "{again}");
    let mut other = Asker::connect(&relay.url(), bot.public_key).await;
    assert!(other.ask(&message).await.contains("served for a key already"));

    // The operator has neither the half nor the key. The search for them works: it does find the
    // public point.
    let raw = |text: &str| bech32::decode(text).unwrap().1;
    let half_bytes = raw(&half)[1..].to_vec();
    let nsec = made[1].clone();
    let key_bytes = raw(&nsec);
    let point = message.split(' ').nth(1).unwrap().to_owned();
    let secrets = [half.as_bytes(), &half_bytes, nsec.as_bytes(), &key_bytes].map(|bytes| Needle::new("it", bytes));
    let search = Search::new(&secrets);
    assert_eq!((search.files(&home.data()), search.process(bot.pid())), (Vec::new(), Vec::new()));
    let known =
        [Needle::new("the point", hex::decode(&point).unwrap()), Needle::new("npub", bot.public_key.to_string())];
    let search = Search::new(&known);
    assert!(!search.files(&home.data()).is_empty(), "the point is in the ledger, so the search in files works");
    assert!(!search.process(bot.pid()).is_empty(), "and so does the search in memory");
}

fn a_half_in_a_file_includes_its_prefixes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("pass"), "correct horse\n").unwrap();
    let new = ["split", "new", "ham", "--out", &path("half.age"), "--passphrase-file", &path("pass")];
    let made = lines(&run_with_input(&new, ""));
    let [message] = &made[..] else { panic!("{made:?}") };
    assert!(refusal(&run_with_input(&new, "")).contains("not overwritten"));
    let point = message.split(' ').nth(1).unwrap();
    let mined = lines(&run_with_input(&["mine", "--device", "cpu", "--split", point, "ham"], ""));
    let combine = |tweak: &str, more: &[&str]| {
        let (half, pass) = (path("half.age"), path("pass"));
        let mut arguments = vec!["combine", tweak, "--half", &half, "--passphrase-file", &pass];
        arguments.extend(more);
        run_with_input(&arguments, "")
    };
    let key = DeliveredKey::read(&lines(&combine(&mined[1], &[])).join("\n")).unwrap();
    assert_eq!(key.npub, mined[0]);
    key.assert_starts_with("ham");
    std::fs::write(path("password"), "battery staple\n").unwrap();
    let locked = lines(&combine(&mined[1], &["--ncryptsec", "--password-file", &path("password")]));
    assert!(locked[0] == key.npub && locked[1].starts_with("ncryptsec1"), "{locked:?}");

    // `combine` makes a second key of the same half, but warns.
    let said = |output: std::process::Output| String::from_utf8(output.stderr).unwrap();
    assert!(said(combine(&mined[1], &[])).contains("the same key"));
    let second = lines(&run_with_input(&["mine", "--device", "cpu", "--split", point, "ham"], ""));
    assert!(said(combine(&second[1], &[])).contains("WARNING: this half was used before"));

    // `combine` refuses a tweak for another request, a tweak for another half, and a damaged tweak.
    let other_request = lines(&run_with_input(&["mine", "--device", "cpu", "--split", point, "dad"], ""));
    assert!(refusal(&combine(&other_request[1], &[])).contains("not one you asked for"));
    let (_, other) = new_half("ham");
    let other =
        lines(&run_with_input(&["mine", "--device", "cpu", "--split", other.split(' ').nth(1).unwrap(), "ham"], ""));
    assert!(refusal(&combine(&other[1], &[])).contains("another half"));
    let mut damaged = mined[1].clone();
    damaged.replace_range(20..21, if &damaged[20..21] == "q" { "p" } else { "q" });
    assert!(refusal(&combine(&damaged, &[])).contains("damaged"));
    assert!(refusal(&combine(&mined[0], &[])).contains("not a tweak"));
}

/// With a pattern that needs a comparison of whole keys.
fn a_half_is_never_an_argument_and_a_bad_one_is_named() {
    let (half, message) = new_half("*ca");
    let mined =
        lines(&run_with_input(&["mine", "--device", "cpu", "--split", message.split(' ').nth(1).unwrap(), "*ca"], ""));
    let combine = ["combine", &mined[1], "--prefix", "*ca"];
    for bad in ["", "hello\n", &half[..64], &half.replace("nhalf1", "nsec1")] {
        assert!(refusal(&run_with_input(&combine, bad)).contains("nhalf1"), "{bad}");
    }
    let error = refusal(&run_with_input(&["combine", &mined[1]], &half));
    assert!(error.contains("--prefix"), "{error}");
    let error = refusal(&run_with_input(&["mine", "--split", "02ab", "ham"], ""));
    assert!(error.contains("66 hexadecimal digits"), "{error}");
    assert!(!lines(&run_with_input(&combine, &format!("  {half}\n"))).is_empty());
}

/// The commands stand on lines of their own, ready to copy, and their line of work is sent back with
/// the request: an ordinary one and a split one.
async fn the_work_that_a_refusal_asks_for_is_what_npubbot_work_does() {
    let Met { relay, home: _home, bot, mut asker } = met("[limits]\nnew_askers_per_minute = 0\n").await;
    let refusal = asker.ask("cat").await;
    let command = |refusal: &str| -> Vec<String> {
        let command =
            refusal.lines().find(|line| line.starts_with("npubbot work ")).unwrap_or_else(|| panic!("{refusal}"));
        command.split(' ').skip(1).map(str::to_owned).collect()
    };
    let do_work = |arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let [line] = &lines(&run_with_input(&arguments, ""))[..] else { panic!("one line") };
        line.clone()
    };
    let wanted = command(&refusal);
    assert_eq!(bot.service.totals().unwrap().accepted, 0, "nothing was started");
    // Work for another bot, or of another author, does not count.
    let mut other = wanted.clone();
    other.swap(1, 2);
    assert!(asker.ask(&format!("cat\n{}", do_work(&other))).await.contains("proof of work"));
    let line = do_work(&wanted);
    assert!(asker.ask(&line).await.contains("in one message with your request"));
    assert!(asker.ask(&format!("cat\n{line}")).await.contains("#1"));
    asker.next_key().await.assert_starts_with("cat");

    let mut split = Asker::connect(&relay.url(), bot.public_key).await;
    let (half, message) = new_half("dad");
    let refusal = split.ask(&message).await;
    assert!(split.ask(&format!("{message}\n{line}")).await.contains("proof of work"), "another author's");
    let acceptance = split.ask(&format!("{message} {}", do_work(&command(&refusal)))).await;
    assert!(acceptance.contains("#2"), "{acceptance}");
    let answer = split.next_result().await;
    let key = lines(&run_with_input(&["combine", &tweak_in(&answer), "--prefix", "dad"], &half));
    DeliveredKey::read(&key.join("\n")).expect("an nsec").assert_starts_with("dad");
}
