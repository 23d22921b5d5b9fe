//! The metrics of a running bot. Their names follow Prometheus's conventions: a unit at the end,
//! `_total` for counters. No label names an asker, a pattern or an asker's relay.

use crate::log_writer;
use crate::memory;
use crate::nostr::RelayFigures;
use crate::os::walls;
use crate::pattern::Rate;
use crate::scheduler::{Health, Rest};
use crate::service::context::Handles;
use crate::vault::MissingWall;
use prometheus::{Encoder, Gauge, GaugeVec, IntCounterVec, Opts, Registry, TextEncoder};
use std::fmt::Debug;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// All metrics, in Prometheus's text format. `relays`: the bot's relays, and whether each is
/// connected. `since`: when the service was ready.
pub fn collect(bot: &Handles, relays: &[RelayFigures], since: SystemTime) -> anyhow::Result<String> {
    let page = Page::default();
    let build = [env!("CARGO_PKG_VERSION"), env!("NPUBBOT_COMMIT")];
    page.gauges("build_info", "Version and commit; always 1.", ["version", "commit"], [(build, 1.0)])?;
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    page.gauge("start_time_seconds", "When the bot was ready, Unix seconds.", since)?;
    page.gauge("heap_bytes", "Heap in use.", memory::heap_in_use() as f64)?;
    let restarts = bot.restarts().into_iter().map(|(part, restarts)| ([part], restarts));
    let help = "Times that a task or thread of the bot ended and was started again.";
    page.counters("part_restarts_total", help, ["part"], restarts)?;
    let help = "Lines of the log that could not be written.";
    page.counter("log_lines_lost_total", help, log_writer::lost_lines())?;
    page.gauge("vault_working", "Whether the vault process works.", bot.context.vault.trouble().is_none())?;
    let missing = walls::missing();
    let count = |walls: &[MissingWall]| walls.iter().filter(|wall| wall.is_sandbox).count() as f64;
    let missing = missing.iter().map(|(process, walls)| ([process.as_str()], count(walls)));
    page.gauges("missing_sandboxes", "Sandboxes that a process lacks.", ["process"], missing)?;
    let help = "Signatures that the vault's policy refused: a bug, or a captured process.";
    page.counter("vault_refusals_total", help, bot.context.vault.refusals())?;
    add_devices(&page, bot)?;
    let connected = relays.iter().map(|relay| ([relay.url.as_str()], f64::from(relay.is_connected())));
    page.gauges("relay_connected", "Whether a relay of the bot is connected.", ["relay"], connected)?;
    if let Some(behind) = bot.relays.clock_behind() {
        let help = "Seconds by which the clock is behind those of relays and askers; negative if it is ahead.";
        page.gauge("clock_behind_seconds", help, behind as f64)?;
    }
    #[cfg(feature = "fleet")]
    if let Some(fleet) = bot.fleet_status() {
        crate::service::workers::add_metrics(&page, &fleet)?;
    }
    add_messages(&page, bot)?;
    add_ledger(&page, bot)?;
    Ok(page.text()?)
}

/// Metrics of the search.
fn add_devices(page: &Page, bot: &Handles) -> prometheus::Result<()> {
    let devices = bot.scheduler.devices();
    let each = || devices.iter().map(|device| (device.id.to_string(), device));
    let working = each().map(|(id, device)| {
        let works = device.health == Health::Working;
        ([id, device.name.clone()], f64::from(works))
    });
    page.gauges("device_working", "Whether a device is in use.", ["device", "name"], working)?;
    let rates = each().filter_map(|(id, device)| device.rate.map(|Rate(rate)| ([id], rate)));
    let help = "Mean rate of a device while it searches.";
    page.gauges("device_candidates_per_second", help, ["device"], rates)?;
    let candidates = each().map(|(id, device)| ([id], device.candidates));
    page.counters("device_candidates_total", "Keys tried since the start.", ["device"], candidates)?;
    let energy = bot.scheduler.energy();
    let used = energy.iter().map(|(id, joules)| ([id.to_string()], *joules as u64));
    let help = "Energy that a device with a readable counter has used since it was first read.";
    page.counters("device_energy_joules_total", help, ["device"], used)?;
    let wrong = each().map(|(id, device)| ([id], device.hits_wrong));
    page.counters("device_wrong_hits_total", "Hits that did not verify.", ["device"], wrong)?;
    let hits = each().map(|(id, device)| ([id], device.hits));
    page.counters("device_hits_total", "Hits that verified, those of test patterns too.", ["device"], hits)?;
    let resting = each().flat_map(|(id, device)| {
        let now = device.rest.as_ref().map(Rest::name);
        Rest::NAMES.map(|name| ([id.as_str(), name].map(str::to_owned), f64::from(now == Some(name))))
    });
    page.gauges("device_resting", "Whether a device rests, by reason.", ["device", "reason"], resting)?;
    let parts = each().map(|(id, device)| ([id], device.part));
    let help = "Part of its time that a device has: its share, and what heat leaves of it.";
    page.gauges("device_time_ratio", help, ["device"], parts)?;
    page.gauge("search_paused", "Whether the search is paused.", bot.scheduler.is_paused())
}

/// Metrics of messages: answered, waiting, and unanswered by cause.
fn add_messages(page: &Page, bot: &Handles) -> prometheus::Result<()> {
    let dropped = bot.context.vault.dropped();
    let dropped = dropped.into_iter().map(|(cause, count)| ([snake_case(&format!("{cause:?}"))], count));
    let pulse = &bot.context.pulse;
    let [answered, waiting, too_old] =
        [&pulse.answered, &pulse.waiting, &pulse.too_old].map(|count| count.load(Ordering::Relaxed));
    let others = [("denied", bot.context.pulse.denied()), ("older_than_ids", too_old)];
    let all = dropped.chain(others.map(|(cause, count)| ([cause.to_owned()], count)));
    page.counters("messages_dropped_total", "Messages left unanswered, by cause.", ["cause"], all)?;
    page.counter("messages_total", "Messages that were opened and decided on.", answered)?;
    page.gauge("messages_waiting", "Messages that wait for their answer.", waiting as f64)?;
    let is_flooded = bot.context.new_askers.served_part(Instant::now()) < 1.0;
    page.gauge("flood", "Whether new askers are drawn by lot, because too many came.", is_flooded)
}

/// Metrics of jobs, the outbox and the sizes of the ledger.
fn add_ledger(page: &Page, bot: &Handles) -> anyhow::Result<()> {
    let ledger = &bot.context.ledger;
    let (totals, sizes) = (ledger.totals()?, ledger.sizes()?);
    let jobs = [
        (["accepted"], totals.accepted as f64),
        (["found"], totals.found as f64),
        (["delivered"], totals.delivered as f64),
        (["cancelled"], totals.cancelled as f64),
        (["expired"], totals.expired as f64),
    ];
    page.gauges("jobs", "Jobs in the ledger, by state; ended ones until they are deleted.", ["state"], jobs)?;
    let today = ledger.today()?;
    let today = [(["accepted"], today.jobs_accepted as f64), (["delivered"], today.jobs_delivered as f64)];
    page.gauges("jobs_today", "Jobs accepted and delivered since midnight (UTC).", ["event"], today)?;
    let help = "Messages that no relay of their receivers has yet.";
    page.gauge("outbox_messages", help, totals.unsent_messages as f64)?;
    page.gauge("outbox_answer_bytes", "Size of unsent answers other than results.", sizes.answers as f64)?;
    page.gauge("outbox_undelivered_bytes", "Size of results that no relay has.", sizes.undelivered as f64)?;
    page.gauge("outbox_result_bytes", "Size of delivered results that are kept.", sizes.results as f64)?;
    let help = "Answers dropped because the outbox was over its budget.";
    page.counter("outbox_answers_dropped_total", help, sizes.dropped)?;
    page.gauge("ledger_seen_messages", "Messages kept against replay.", sizes.seen as f64)?;
    let help = "Date from which messages are answered, Unix seconds; later than a week ago: the table of ids is full.";
    page.gauge("ledger_accepted_from_seconds", help, sizes.seen_from as f64)?;
    if let Some(free) = ledger.free_bytes() {
        page.gauge("data_free_bytes", "Room that is left on the disk of the data folder.", free as f64)?;
    }
    let unreadable = ledger.quarantined()?.len() as f64;
    page.gauge("ledger_unreadable_rows", "Rows that cannot be read and are skipped; at most 100.", unreadable)?;
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

/// The metrics of one answer.
#[derive(Default)]
pub(in crate::service) struct Page(Registry);

impl Page {
    pub(in crate::service) fn gauge(&self, name: &str, help: &str, value: impl Into<f64>) -> prometheus::Result<()> {
        let gauge = Gauge::with_opts(options(name, help))?;
        gauge.set(value.into());
        self.0.register(Box::new(gauge))
    }

    pub(in crate::service) fn gauges<S: AsRef<str> + Debug, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        values: impl IntoIterator<Item = ([S; N], f64)>,
    ) -> prometheus::Result<()> {
        let gauges = GaugeVec::new(options(name, help), &labels)?;
        for (values, value) in values {
            gauges.get_metric_with_label_values(&values)?.set(value);
        }
        self.0.register(Box::new(gauges))
    }

    pub(in crate::service) fn counters<S: AsRef<str> + Debug, const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        values: impl IntoIterator<Item = ([S; N], u64)>,
    ) -> prometheus::Result<()> {
        let counters = IntCounterVec::new(options(name, help), &labels)?;
        for (values, value) in values {
            counters.get_metric_with_label_values(&values)?.inc_by(value);
        }
        self.0.register(Box::new(counters))
    }

    fn counter(&self, name: &str, help: &str, value: u64) -> prometheus::Result<()> {
        self.counters(name, help, [], [([""; 0], value)])
    }

    fn text(&self) -> prometheus::Result<String> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.0.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// The options of a metric; all names begin with `npubbot_`.
fn options(name: &str, help: &str) -> Opts {
    Opts::new(format!("npubbot_{name}"), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_causes_are_labels() {
        assert_eq!(["TooLarge", "Impostor", "NotAWrap"].map(snake_case), ["too_large", "impostor", "not_a_wrap"]);
    }
}
