//! Requests without a target, through a relay: the rarest key seen when the time is up.

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{Home, Met, met, met_process};
use crate::support::harness::{Test, test};
use crate::support::program::{run_with_input, stderr};
use crate::support::{until, wait_for};

pub const TESTS: &[Test] = &[
    test!(the_rarest_key_comes_when_the_time_is_up_with_how_rare_it_is),
    test!(the_best_so_far_survives_a_kill_and_is_what_comes),
    test!(the_operator_ends_a_search_and_its_asker_gets_the_best_so_far),
    test!(a_split_search_without_a_target_gives_one_tweak_for_its_half),
];

const KEPT: &str = "SELECT count(*) FROM best WHERE wrap IS NOT NULL";

/// Seconds of the `nth` search in a test. The bot counts them in candidates, at the rate that it
/// takes the processor to have: the first key comes after a third of them, or much later beside
/// others.
fn seconds(nth: i64) -> i64 {
    2 << nth
}

/// Asks for the best key, the `nth` time in a test, and waits until one is kept. Returns whether the
/// search still goes on: it may be over at once.
async fn begin_best(asker: &mut Asker, home: &Home, nth: i64) -> bool {
    asker.ask(&format!("best zeros {}s", seconds(nth))).await;
    let open = "SELECT count(*) FROM job WHERE state = 'accepted'";
    let kept = until("a best so far", || {
        std::future::ready(match (home.count(KEPT), home.count(open)) {
            (Some(1), _) => Some(true),
            (_, Some(0)) => Some(false),
            _ => None,
        })
    });
    kept.await
}

/// Number of zero bits at the start of the key.
fn zeros(npub: &str) -> u32 {
    let (_, bytes) = bech32::decode(npub).unwrap();
    let first = u64::from_str_radix(&hex::encode(&bytes)[..16], 16).unwrap();
    first.leading_zeros()
}

/// The number after a word in a text, for example 23 after `zeros:` in `zeros:23`.
fn number_after(text: &str, word: &str) -> u32 {
    let rest = text.split(word).nth(1).unwrap_or_else(|| panic!("no {word} in: {text}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

async fn the_rarest_key_comes_when_the_time_is_up_with_how_rare_it_is() {
    let Met { relay, home, bot: running, mut asker } = met("").await;
    let acceptance = asker.ask("best zeros 2s, please").await;
    for part in ["Job #1: searching for best zeros 2s.", "zero bits at its start", "in about 2 seconds", "cancel 1"] {
        assert!(acceptance.contains(part), "{part}: {acceptance}");
    }
    let result = asker.next_result().await;
    let key = DeliveredKey::read(&result).unwrap();
    let bits = number_after(&result, "zeros:");
    // A quiet machine finds a key with 22 zero bits or more. Beside two compilers the search gets
    // only a hundredth of the time.
    assert!(bits >= 12 && zeros(&key.npub) == bits, "{result}");
    assert!(result.starts_with("Job #1 is done: this is the rarest key I saw."), "{result}");
    assert!(result.contains("as 1 key in"), "{result}");
    // Nothing is left of the keys that were not the rarest.
    let mail = asker.mail_on(&relay).await;
    assert_eq!((mail.texts.len(), mail.explanations, mail.keys.len()), (1, 1, 1), "an acceptance, a result");
    assert_eq!(home.count("SELECT count(*) FROM best"), Some(0));
    wait_for("delivered", || running.service.totals().unwrap().delivered == 1).await;
}

async fn the_best_so_far_survives_a_kill_and_is_what_comes() {
    let Met { relay, home, bot: mut process, mut asker } = met_process("").await;
    let mut nth = 1;
    let (ledger, kept) = loop {
        begin_best(&mut asker, &home, nth).await;
        process.kill();
        let ledger = home.sql();
        let kept = ledger.query_row("SELECT wrap FROM best", [], |row| row.get::<_, Vec<u8>>(0));
        if let Ok(kept) = kept {
            break (ledger, kept);
        }
        process = home.spawn().await;
        asker.next_result().await;
        nth += 1;
    };
    // Leaves the search an instant, and almost nothing rarer to find: only a key with 64 zero bits.
    // So the bot must send the wrap that is on disk.
    let searched = seconds(nth) * 1000 - 1;
    ledger.execute("UPDATE best SET searched = ?1, pattern = 'zeros:63'", [searched]).unwrap();
    drop(ledger);
    let process = home.spawn().await;
    let key = asker.next_key().await;
    assert!(zeros(&key.npub) >= 12, "{}", key.npub);
    let wraps = relay.wraps_to(asker.keys.public_key());
    assert!(wraps.iter().any(|wrap| wrap.id.as_bytes()[..] == kept[..]), "the result that was sealed before the kill");
    assert_eq!(asker.mail_on(&relay).await.keys.len() as i64, nth, "a key a search");
    process.kill();
    home.assert_sound();
}

async fn the_operator_ends_a_search_and_its_asker_gets_the_best_so_far() {
    let Met { relay: _relay, home, bot: process, mut asker } = met_process("").await;
    for nth in 1.. {
        let goes_on = begin_best(&mut asker, &home, nth).await;
        let status = asker.ask("status").await;
        let cancelled = home.operate(&["jobs", "cancel", &nth.to_string()]);
        if goes_on && cancelled.status.success() {
            assert!(status.contains("best zeros") && status.contains("so far as rare as 1 key in"), "{status}");
            break;
        }
        // The search was over before.
        assert!(home.count("SELECT count(*) FROM job WHERE state = 'accepted'") == Some(0), "{}", stderr(&cancelled));
        asker.next_result().await;
    }
    let result = asker.next_result().await;
    assert!(zeros(&DeliveredKey::read(&result).unwrap().npub) >= 12, "{result}");
    process.kill();
}

async fn a_split_search_without_a_target_gives_one_tweak_for_its_half() {
    let Met { relay: _relay, home: _home, bot: _running, mut asker } = met("").await;
    let made = run_with_input(&["split", "new", "best", "zeros", "2s", "--print"], "");
    let made = String::from_utf8(made.stdout).unwrap();
    let [half, message] = made.lines().collect::<Vec<_>>()[..] else { panic!("{made}") };
    assert!(message.ends_with(" best zeros 2s"), "{message}");
    let acceptance = asker.ask(message).await;
    assert!(acceptance.contains("your own half"), "{acceptance}");
    let result = asker.next_result().await;
    let tweak = result.lines().find(|line| line.starts_with("ntweak1")).unwrap();
    let bits = number_after(&result, "zeros:");
    let combined = run_with_input(&["combine", tweak, "--prefix", "best zeros 2s"], half);
    let key = DeliveredKey::read(&String::from_utf8(combined.stdout).unwrap()).expect("an nsec");
    assert!(result.contains(&key.npub) && zeros(&key.npub) == bits, "{result}");
    let again = asker.ask(message).await;
    assert!(again.contains("served for a key already"), "{again}");
}
