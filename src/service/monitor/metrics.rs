//! The metrics of a running bot. Their names follow Prometheus's conventions: a unit at the end,
//! `_total` for counters. No label names an asker, a pattern or an asker's relay.

use crate::ledger::LedgerError;
use crate::log_writer;
use crate::memory;
use crate::nostr::RelayFigures;
use crate::os::walls;
use crate::pattern::Rate;
use crate::scheduler::{Health, Rest};
use crate::service::Handles;
use crate::vault::MissingWall;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// All metrics, in Prometheus's text format. `relays`: the bot's relays, and whether each is
/// connected. `since`: when the service was ready.
pub fn collect(bot: &Handles, relays: &[RelayFigures], since: SystemTime) -> Result<String, LedgerError> {
    let mut page = Page::default();
    let build = [env!("CARGO_PKG_VERSION"), env!("NPUBBOT_COMMIT")];
    page.each("build_info", "Version and commit; always 1.", ["version", "commit"], [(build, 1.0)]);
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    page.one("start_time_seconds", "When the bot was ready, Unix seconds.", since);
    page.one("heap_bytes", "Heap in use.", memory::heap_in_use() as f64);
    let restarts = bot.restarts().into_iter().map(|(part, restarts)| ([part], restarts as f64));
    let help = "Times that a task or thread of the bot ended and was started again.";
    page.each("part_restarts_total", help, ["part"], restarts);
    let help = "Lines of the log that could not be written.";
    page.one("log_lines_lost_total", help, log_writer::lost_lines() as f64);
    page.one("vault_working", "Whether the vault process works.", bot.context.vault.trouble().is_none());
    let missing = walls::missing();
    let count = |walls: &[MissingWall]| walls.iter().filter(|wall| wall.is_sandbox).count() as f64;
    let missing = missing.iter().map(|(process, walls)| ([process.as_str()], count(walls)));
    page.each("missing_sandboxes", "Sandboxes that a process lacks.", ["process"], missing);
    let help = "Signatures that the vault's policy refused: a bug, or a captured process.";
    page.one("vault_refusals_total", help, bot.context.vault.refusals() as f64);
    add_devices(&mut page, bot);
    let connected = relays.iter().map(|relay| ([relay.url.as_str()], f64::from(relay.is_connected())));
    page.each("relay_connected", "Whether a relay of the bot is connected.", ["relay"], connected);
    if let Some(behind) = bot.relays.clock_behind() {
        let help = "Seconds by which the clock is behind those of relays and askers; negative if it is ahead.";
        page.one("clock_behind_seconds", help, behind as f64);
    }
    #[cfg(feature = "fleet")]
    if let Some(fleet) = bot.fleet_status() {
        crate::service::workers::add_metrics(&mut page, &fleet);
    }
    add_messages(&mut page, bot);
    add_ledger(&mut page, bot)?;
    Ok(page.0)
}

/// Metrics of the search.
fn add_devices(page: &mut Page, bot: &Handles) {
    let devices = bot.scheduler.devices();
    let each = || devices.iter().map(|device| (device.id.to_string(), device));
    let working = each().map(|(id, device)| {
        let works = device.health == Health::Working;
        ([id, device.name.clone()], f64::from(works))
    });
    page.each("device_working", "Whether a device is in use.", ["device", "name"], working);
    let rates = each().filter_map(|(id, device)| device.rate.map(|Rate(rate)| ([id], rate)));
    let help = "Mean rate of a device while it searches.";
    page.each("device_candidates_per_second", help, ["device"], rates);
    let candidates = each().map(|(id, device)| ([id], device.candidates as f64));
    page.each("device_candidates_total", "Keys tried since the start.", ["device"], candidates);
    let energy = bot.scheduler.energy();
    let used = energy.iter().map(|(id, joules)| ([id.to_string()], *joules));
    let help = "Energy that a device with a readable counter has used since it was first read.";
    page.each("device_energy_joules_total", help, ["device"], used);
    let wrong = each().map(|(id, device)| ([id], device.hits_wrong as f64));
    page.each("device_wrong_hits_total", "Hits that did not verify.", ["device"], wrong);
    let hits = each().map(|(id, device)| ([id], device.hits as f64));
    page.each("device_hits_total", "Hits that verified, those of test patterns too.", ["device"], hits);
    let resting = each().flat_map(|(id, device)| {
        let now = device.rest.as_ref().map(Rest::name);
        Rest::NAMES.map(|name| ([id.as_str(), name].map(str::to_owned), f64::from(now == Some(name))))
    });
    page.each("device_resting", "Whether a device rests, by reason.", ["device", "reason"], resting);
    let parts = each().map(|(id, device)| ([id], device.part));
    let help = "Part of its time that a device has: its share, and what heat leaves of it.";
    page.each("device_time_ratio", help, ["device"], parts);
    page.one("search_paused", "Whether the search is paused.", bot.scheduler.is_paused());
}

/// Metrics of messages: answered, waiting, and unanswered by cause.
fn add_messages(page: &mut Page, bot: &Handles) {
    let dropped = bot.context.vault.dropped();
    let dropped = dropped.into_iter().map(|(cause, count)| (snake_case(&format!("{cause:?}")), count));
    let pulse = &bot.context.pulse;
    let [answered, waiting, too_old] =
        [&pulse.answered, &pulse.waiting, &pulse.too_old].map(|count| count.load(Ordering::Relaxed));
    let others = [("denied".to_owned(), pulse.denied()), ("older_than_ids".to_owned(), too_old)];
    let all = dropped.chain(others).map(|(cause, count)| ([cause], count as f64));
    page.each("messages_dropped_total", "Messages left unanswered, by cause.", ["cause"], all);
    page.one("messages_total", "Messages that were opened and decided on.", answered as f64);
    page.one("messages_waiting", "Messages that wait for their answer.", waiting as f64);
    let is_flooded = bot.context.new_askers.served_part(Instant::now()) < 1.0;
    page.one("flood", "Whether new askers are drawn by lot, because too many came.", is_flooded);
}

/// Metrics of jobs, the outbox and the sizes of the ledger.
fn add_ledger(page: &mut Page, bot: &Handles) -> Result<(), LedgerError> {
    let ledger = &bot.context.ledger;
    let (totals, sizes) = (ledger.totals()?, ledger.sizes()?);
    let jobs = [
        (["accepted"], totals.accepted as f64),
        (["found"], totals.found as f64),
        (["delivered"], totals.delivered as f64),
        (["cancelled"], totals.cancelled as f64),
        (["expired"], totals.expired as f64),
    ];
    page.each("jobs", "Jobs in the ledger, by state; ended ones until they are deleted.", ["state"], jobs);
    let today = ledger.today()?;
    let today = [(["accepted"], today.jobs_accepted as f64), (["delivered"], today.jobs_delivered as f64)];
    page.each("jobs_today", "Jobs accepted and delivered since midnight (UTC).", ["event"], today);
    let help = "Messages that no relay of their receivers has yet.";
    page.one("outbox_messages", help, totals.unsent_messages as f64);
    page.one("outbox_answer_bytes", "Size of unsent answers other than results.", sizes.answers as f64);
    page.one("outbox_undelivered_bytes", "Size of results that no relay has.", sizes.undelivered as f64);
    page.one("outbox_result_bytes", "Size of delivered results that are kept.", sizes.results as f64);
    let help = "Answers dropped because the outbox was over its budget.";
    page.one("outbox_answers_dropped_total", help, sizes.dropped as f64);
    page.one("ledger_seen_messages", "Messages kept against replay.", sizes.seen as f64);
    let help = "Date from which messages are answered, Unix seconds; later than a week ago: the table of ids is full.";
    page.one("ledger_accepted_from_seconds", help, sizes.seen_from as f64);
    if let Some(free) = ledger.free_bytes() {
        page.one("data_free_bytes", "Room that is left on the disk of the data folder.", free as f64);
    }
    let unreadable = ledger.quarantined()?.len() as f64;
    page.one("ledger_unreadable_rows", "Rows that cannot be read and are skipped; at most 100.", unreadable);
    Ok(())
}

/// `CamelCase` as `snake_case`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Metrics in Prometheus's text format.
#[derive(Default)]
pub(in crate::service) struct Page(String);

impl Page {
    /// Adds a metric with one value.
    pub(in crate::service) fn one(&mut self, name: &str, help: &str, value: impl Into<f64>) {
        self.each(name, help, [], [([""; 0], value.into())]);
    }

    /// Adds a metric with a value for each set of labels. Its name begins with `npubbot_`, and that
    /// of a counter ends with `_total`.
    pub(in crate::service) fn each<S: AsRef<str>, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
        values: impl IntoIterator<Item = ([S; N], f64)>,
    ) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        // A write to a string never fails.
        let _ = write!(self.0, "# HELP npubbot_{name} {help}\n# TYPE npubbot_{name} {kind}\n");
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        for (of, value) in values {
            let labels = labels.iter().zip(&of).map(|(label, of)| format!("{label}=\"{}\"", escaped(of.as_ref())));
            let labels = labels.collect::<Vec<_>>().join(",");
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let _ = writeln!(self.0, "npubbot_{name}{labels} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_help_type_and_escaped_labels() {
        assert_eq!(["TooLarge", "Impostor", "NotAWrap"].map(snake_case), ["too_large", "impostor", "not_a_wrap"]);
        let mut page = Page::default();
        page.one("flood", "Whether.", true);
        page.each("hits_total", "Hits.", ["device", "name"], [(["cpu", "a \"b\" \\ c\n"], 1e16)]);
        insta::assert_snapshot!(page.0, @r#"
        # HELP npubbot_flood Whether.
        # TYPE npubbot_flood gauge
        npubbot_flood 1
        # HELP npubbot_hits_total Hits.
        # TYPE npubbot_hits_total counter
        npubbot_hits_total{device="cpu",name="a \"b\" \\ c\n"} 10000000000000000
        "#);
    }
}
