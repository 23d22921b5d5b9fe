//! The checks that only the running bot can make, for `npubbot doctor`.

use super::context::Handles;
use super::doctor::{disk, finding, ledger_findings};
use super::maintenance::causes;
use super::workers::{self, Fleet};
use crate::control::{Finding, Verdict};
use crate::duration::humanize;
use crate::log_writer;
use crate::pattern::Rate;
use crate::scheduler::{DeviceView, Health, Rest};
use std::path::Path;
use std::time::Duration;

/// Checks a running bot. `up`: the time since it was ready.
pub(super) async fn check(bot: &Handles, up: Duration) -> Vec<Finding> {
    let mut findings = vec![program(std::env::current_exe().ok().as_deref(), up)];
    findings.extend(search(&bot.scheduler.devices(), bot.scheduler.is_paused()));
    let workers_of =
        |fleet: &Fleet| workers::findings(fleet.view(), &bot.scheduler.devices(), bot.scheduler.is_paused());
    findings.extend(bot.context.fleet.iter().flat_map(workers_of));
    findings.extend(relays(&bot.relays.states().await));
    findings.extend(vault(bot.context.vault.trouble(), &bot.context.vault.missing_walls()));
    findings.push(messages(bot));
    findings.extend(parts(&bot.restarts(), log_writer::lost_lines()));
    findings.extend(bot.context.ledger.free_bytes().and_then(disk));
    findings.extend(ledger(bot));
    findings
}

/// The version and uptime of the process, and whether its program was replaced since its start:
/// Linux appends ` (deleted)` to the path of such a program.
fn program(path: Option<&Path>, up: Duration) -> Finding {
    let about = format!("npubbot {} is up {}", env!("CARGO_PKG_VERSION"), humanize(up));
    match path.is_some_and(|path| path.to_string_lossy().ends_with(" (deleted)")) {
        true => {
            let text = format!("{about}; its program was replaced since, so restart it to run the new one");
            finding("running bot", Verdict::Weak, text)
        }
        false => finding("running bot", Verdict::Good, about),
    }
}

/// The devices, and whether they search.
fn search(devices: &[DeviceView], is_paused: bool) -> Vec<Finding> {
    let works = |device: &DeviceView| device.health == Health::Working;
    let out = if devices.iter().any(works) { Verdict::Weak } else { Verdict::Broken };
    let mut findings: Vec<Finding> = devices
        .iter()
        .map(|device| match (&device.health, &device.rest, device.rate) {
            (Health::Out(reason), ..) => {
                let remedy = "the bot tries it again by itself; if it stays out, restart the bot";
                finding("search", out, format!("{} is out of use: {reason}; {remedy}", device.id))
            }
            (Health::Working, Some(rest), _) => {
                // Rest outside the hours or on the battery is as the operator wants it. Rest
                // because of heat is not.
                let verdict = if matches!(rest, Rest::Heat { .. }) { Verdict::Weak } else { Verdict::Good };
                finding("search", verdict, format!("{} rests {rest}", device.id))
            }
            (Health::Working, None, Some(Rate(rate))) if !is_paused => {
                finding("search", Verdict::Good, format!("{} searches at {}{}", device.id, Rate(rate), part(device)))
            }
            (Health::Working, ..) => finding("search", Verdict::Good, format!("{} is ready", device.id)),
        })
        .collect();
    findings.extend(devices.iter().flat_map(|device| {
        device.warnings.iter().map(|text| finding("search", Verdict::Weak, format!("{}: {text}", device.id)))
    }));
    if is_paused {
        let text = "the search is paused, so no job ends; `npubbot resume` goes on with it";
        findings.push(finding("search", Verdict::Weak, text));
    }
    findings
}

/// A text about the share of its time in which a device can search; empty if that is all of it.
fn part(device: &DeviceView) -> String {
    if device.part < 0.995 { format!(", {:.0} % of the time", 100.0 * device.part) } else { String::new() }
}

/// The connections to the bot's own relays.
fn relays(states: &[(String, bool)]) -> Vec<Finding> {
    let away: Vec<&String> = states.iter().filter(|(_, is_connected)| !is_connected).map(|(url, _)| url).collect();
    let connected = states.len() - away.len();
    let mut findings: Vec<Finding> = away
        .iter()
        .map(|url| finding("connections", Verdict::Weak, format!("the bot is not connected to {url}; it tries again")))
        .collect();
    findings.push(match connected {
        0 => finding("connections", Verdict::Broken, "the bot is connected to no relay, so nobody reaches it"),
        _ => finding("connections", Verdict::Good, format!("{connected} of {} relays are connected", states.len())),
    });
    findings
}

/// The vault process. `trouble` says why it does not work; `missing_walls` are the restrictions
/// that it lacks.
fn vault(trouble: Option<String>, missing_walls: &[String]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = missing_walls
        .iter()
        .map(|wall| finding("vault", Verdict::Weak, format!("a wall is missing: {wall}")))
        .collect();
    findings.push(match trouble {
        None => finding("vault", Verdict::Good, "the vault answers"),
        Some(reason) => finding("vault", Verdict::Broken, format!("no message is opened and no key found: {reason}")),
    });
    findings
}

/// Messages that were not answered, by cause.
fn messages(bot: &Handles) -> Finding {
    let context = &bot.context;
    let text = format!("not answered since the start: {}", causes(&context.vault.dropped(), context.access.ignored()));
    finding("messages", Verdict::Good, text)
}

/// Tasks and threads that were started again, and lines of the log that were lost.
fn parts(restarts: &[(String, u64)], lost_lines: u64) -> Vec<Finding> {
    let restarted = restarts.iter().filter(|(_, count)| *count > 0).map(|(part, count)| {
        let text = format!("{part} ended {count} times and was started again; the log says why");
        finding("running bot", Verdict::Weak, text)
    });
    let lost = (lost_lines > 0).then(|| {
        let text = format!("{lost_lines} lines of the log could not be written: is its disk full, or its reader gone?");
        finding("running bot", Verdict::Weak, text)
    });
    restarted.chain(lost).collect()
}

/// The open ledger.
fn ledger(bot: &Handles) -> Vec<Finding> {
    let ledger = &bot.context.ledger;
    let read = || -> Result<Vec<Finding>, crate::ledger::LedgerError> {
        let totals = ledger.totals()?;
        let mut findings = ledger_findings(&ledger.quarantined()?, &ledger.sizes()?, ledger.restored_at()?);
        let text = format!(
            "{} open jobs; {} messages that no relay of their receivers has yet",
            totals.accepted, totals.unsent_messages
        );
        findings.push(finding("ledger", Verdict::Good, text));
        Ok(findings)
    };
    let mut findings =
        read().unwrap_or_else(|error| vec![finding("ledger", Verdict::Broken, format!("it cannot be read: {error}"))]);
    if let Some(damage) = ledger.damage() {
        findings.push(finding("ledger", Verdict::Broken, damage));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::DeviceId;

    fn device(health: Health, rate: Option<f64>) -> DeviceView {
        DeviceView {
            id: DeviceId::Cpu,
            name: "test".to_owned(),
            kernel: "test".to_owned(),
            threads: 1,
            health,
            rate: rate.map(Rate),
            candidates: 0,
            hits: 0,
            hits_wrong: 0,
            rest: None,
            part: 1.0,
            warnings: Vec::new(),
        }
    }

    fn worst(findings: &[Finding]) -> Verdict {
        findings.iter().map(|finding| finding.verdict).max().unwrap()
    }

    #[test]
    fn a_paused_search_and_a_device_taken_out_are_named_with_what_to_do() {
        let (works, out) = (device(Health::Working, Some(1e6)), device(Health::Out("it lies".to_owned()), None));
        assert_eq!(worst(&search(std::slice::from_ref(&works), false)), Verdict::Good);
        let paused = search(std::slice::from_ref(&works), true);
        assert!(worst(&paused) == Verdict::Weak && paused[1].text.contains("npubbot resume"), "{paused:?}");
        assert_eq!(worst(&search(&[works, out.clone()], false)), Verdict::Weak, "another device searches");
        let none = search(&[out], false);
        assert!(worst(&none) == Verdict::Broken && none[0].text.contains("it lies"), "{none:?}");
    }

    #[test]
    fn a_device_that_rests_says_why_and_a_cap_that_does_not_hold_is_named() {
        let works = device(Health::Working, Some(1e6));
        let hot = Rest::Heat { celsius: Some(91.0), limit: 85.0 };
        let resting = search(&[DeviceView { rest: Some(hot), ..works.clone() }], false);
        assert!(worst(&resting) == Verdict::Weak && resting[0].text.contains("91 °C"), "{resting:?}");
        let by_day = Rest::Hours { until: Some(1), local_time: "22:00 CET".to_owned() };
        let resting = search(&[DeviceView { rest: Some(by_day), ..works.clone() }], false);
        assert!(worst(&resting) == Verdict::Good && resting[0].text.contains("rests until 22:00 CET"), "{resting:?}");
        let warnings = vec!["its power is not capped at 250 W: no".to_owned()];
        let capped = search(&[DeviceView { part: 0.5, warnings, ..works }], false);
        assert!(capped[0].text.ends_with(", 50 % of the time") && worst(&capped) == Verdict::Weak, "{capped:?}");
    }

    #[test]
    fn a_relay_that_is_away_is_named_and_without_any_the_bot_is_broken() {
        let state = |url: &str, is_connected| (url.to_owned(), is_connected);
        assert_eq!(worst(&relays(&[state("wss://a", true)])), Verdict::Good);
        let one = relays(&[state("wss://a", true), state("wss://b", false)]);
        assert!(worst(&one) == Verdict::Weak && one[0].text.contains("wss://b"), "{one:?}");
        assert_eq!(worst(&relays(&[state("wss://a", false)])), Verdict::Broken);
    }

    #[test]
    fn a_vault_that_does_not_start_and_each_missing_wall_are_named() {
        assert_eq!(worst(&vault(None, &[])), Verdict::Good);
        let gone = vault(Some("wrong passphrase; try again".to_owned()), &[]);
        assert!(worst(&gone) == Verdict::Broken && gone[0].text.contains("wrong passphrase"), "{gone:?}");
        let low = vault(None, &["its memory may be swapped to disk".to_owned()]);
        assert!(worst(&low) == Verdict::Weak && low[0].text.contains("swapped"), "{low:?}");
    }

    #[test]
    fn a_part_that_was_started_again_and_a_lost_line_are_named() {
        let restarts = |count| [("inbox".to_owned(), count)];
        assert!(parts(&restarts(0), 0).is_empty());
        let texts: Vec<String> = parts(&restarts(2), 3).into_iter().map(|finding| finding.text).collect();
        assert!(
            texts.len() == 2 && texts[0].contains("inbox ended 2 times") && texts[1].contains("3 lines"),
            "{texts:?}"
        );
    }

    #[test]
    fn a_program_replaced_while_it_runs_asks_for_a_restart() {
        let verdict = |path: &str| program(Some(Path::new(path)), Duration::from_secs(90)).verdict;
        assert_eq!(verdict("/usr/bin/npubbot"), Verdict::Good);
        assert_eq!(verdict("/usr/bin/npubbot (deleted)"), Verdict::Weak);
    }
}
