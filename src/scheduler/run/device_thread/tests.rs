//! Unit tests of the device thread: the first launches of a device.

use super::*;
use crate::job::{JobId, JobSpec};
use crate::scheduler::tests::{FakeDevice, KEY, device};
use crate::search::LaunchReport;
use std::collections::BTreeMap;
use std::sync::{Mutex, mpsc};

/// A launch as the device saw it: the number of its patterns, whether a rate was known before it,
/// and when it came.
#[derive(Clone, Debug)]
struct Seen {
    patterns: usize,
    had_rate: bool,
    at: Instant,
}

/// A running device thread, and the launches that the device has seen.
struct RunningDevice {
    record: Arc<Record>,
    pool: Arc<Pool>,
    began: Instant,
    collected: mpsc::Receiver<Delivered>,
    seen: Arc<Mutex<Vec<Seen>>>,
    thread: JoinHandle<Result<(), String>>,
}

/// A thread of a device with this pool, and the channel of its launches.
fn device_thread(pool: &Arc<Pool>, opener: DeviceOpener) -> (DeviceThread, mpsc::Receiver<Delivered>) {
    let (launches, collected) = mpsc::sync_channel(64);
    let device = DeviceThread {
        id: DeviceId::Cpu,
        lane: Lane::All,
        stands_in_for: Vec::new(),
        record: Arc::new(Record::new(&device(DeviceId::Cpu))),
        watch: None,
        pool: Arc::clone(pool),
        vault: Vault::without_identity().unwrap(),
        launches,
        options: SearchOptions::default(),
        opener: Some(opener),
        roster: None,
    };
    (device, collected)
}

impl RunningDevice {
    /// A device with launches of a thousand candidates in a millisecond, which compares whole keys a
    /// thousand times as slowly. Its first launch takes another time.
    fn start(jobs: &[&str], first_takes: Duration, calibrations: &Calibrations) -> RunningDevice {
        let pool = Arc::new(Pool::default());
        for (number, text) in jobs.iter().enumerate() {
            pool.insert(JobId(number as i64 + 1), JobSpec::local(vec![text.parse().unwrap()]));
        }
        let (mut device, collected) = device_thread(&pool, DeviceOpener::here());
        device.options.calibrations = calibrations.clone();
        let record = Arc::clone(&device.record);
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (began, seen_by, of_device) = (Instant::now(), Arc::clone(&seen), Arc::clone(&record));
        let mut fake = FakeDevice::reporting(DeviceId::Cpu, move |launch| {
            let mut seen = seen_by.lock().unwrap();
            let had_rate = of_device.rate().is_some();
            seen.push(Seen { patterns: launch.patterns.len(), had_rate, at: Instant::now() });
            std::thread::sleep(if seen.len() == 1 { first_takes } else { Duration::from_millis(1) });
            let candidates = if launch.patterns.compares_whole_keys() { 1 } else { 1000 };
            LaunchReport { candidates, ..LaunchReport::default() }
        });
        let thread = std::thread::spawn(move || {
            device.search(&mut fake, &mut VecDeque::new()).map_err(|failure| failure.to_string())
        });
        RunningDevice { record, pool, began, collected, seen, thread }
    }

    fn until(&self, what: &str, mut is_so: impl FnMut(&RunningDevice) -> bool) {
        let patience = Instant::now() + Duration::from_secs(60);
        while !is_so(self) {
            let _ = self.collected.recv_timeout(Duration::from_millis(1));
            assert!(Instant::now() < patience, "{what}: never");
        }
    }

    /// Ends the search. Returns the launches.
    fn end(self) -> Vec<Seen> {
        self.pool.close();
        while self.collected.recv().is_ok() {}
        self.thread.join().unwrap().unwrap();
        let seen = self.seen.lock().unwrap();
        seen.clone()
    }
}

#[test]
fn a_device_that_fails_is_opened_again_after_a_pause_and_ends_with_the_pool() {
    let (pool, began) = (Arc::new(Pool::default()), Instant::now());
    let opener = DeviceOpener::new(|| Ok(0), |id, _| Ok(Box::new(FakeDevice::new(id))));
    let (device, collected) = device_thread(&pool, opener);
    let record = Arc::clone(&device.record);
    let failed = SearchError::DeviceFailed { device: DeviceId::Cpu, reason: "it is bad".to_owned() };
    let thread = device.spawn(Err(failed));
    assert!(collected.recv_timeout(Duration::from_secs(60)).is_ok() && !record.is_out());
    assert!(began.elapsed() >= FIRST_RETRY_PAUSE, "{:?}", began.elapsed());
    pool.close();
    while collected.recv().is_ok() {}
    thread.join().unwrap();
}

#[test]
fn a_starved_device_shows_both_rates_before_it_waits_for_work() {
    // Its first launch outlasts warm-up and measurement, as on an overloaded machine.
    let running = RunningDevice::start(&[], WARM_UP + MEASURE * 2, &Calibrations::default());
    running.until("the device waits for work", |running| running.record.lock().has_waited);
    // Estimates for askers need both rates.
    let rates = running.record.rates();
    assert!(rates.top_words.is_some() && rates.cost(KeyPart::Whole) > 100.0, "{rates:?}");
    running.end();
}

#[test]
fn a_job_that_is_there_is_searched_before_the_device_is_measured() {
    let once = || {
        let running = RunningDevice::start(&["qqqqqqqqqq"], Duration::from_millis(1), &Calibrations::default());
        running.until("its launches measure the device", |running| running.record.rate().is_some());
        let began = running.began;
        (began, running.end())
    };
    // If the machine stalls between the first two launches, the second comes too late.
    let timely = (0..50).map(|_| once()).find(|(began, seen)| seen[1].at - *began < WARM_UP);
    let (began, seen) = timely.expect("a second launch during the warm-up");
    let patterns: Vec<usize> = seen.iter().take(2).map(|seen| seen.patterns).collect();
    assert_eq!(patterns, [1, 2], "the first launch says how long launches are");
    assert!(!seen[1].had_rate, "{seen:?}");
    let mut later = seen[1..].iter().filter(|seen| seen.had_rate || seen.at - began < WARM_UP + MEASURE);
    assert!(later.all(|seen| seen.patterns == 2), "{seen:?}");
}

#[test]
fn a_job_that_compares_whole_keys_does_not_keep_the_other_rate_from_being_measured() {
    let running = RunningDevice::start(&["*cafe7x"], Duration::from_millis(1), &Calibrations::default());
    running.until("the rate of top words is known", |running| running.record.rate().is_some());
    let rates = running.record.rates();
    assert!(rates.whole_keys.is_some() && rates.cost(KeyPart::Whole) > 100.0, "{rates:?}");
    running.end();
}

#[test]
fn a_second_start_measures_nothing_and_keeps_the_rates_of_its_jobs() {
    let calibrations = Calibrations::kept_by(BTreeMap::new(), |_| {});
    let first = RunningDevice::start(&[], Duration::from_millis(1), &calibrations);
    first.until("the device waits for work", |running| running.record.lock().has_waited);
    assert!(!first.end().is_empty());
    let kept = calibrations.get(KEY).unwrap();
    assert!(kept.top_words.is_some() && kept.whole_keys.is_some(), "{kept:?}");

    let second = RunningDevice::start(&[], Duration::from_millis(1), &calibrations);
    second.until("the device waits for work", |running| running.record.lock().has_waited);
    let rates = DeviceRates { top_words: kept.top_words.map(Rate), whole_keys: kept.whole_keys.map(Rate) };
    assert_eq!(second.record.rates(), rates);
    assert_eq!(second.end().len(), 1, "it only says how long its launches are");

    // Jobs correct an outdated rate, and the new one is saved at the end.
    calibrations.change(KEY, |calibration| calibration.top_words = Some(1e9));
    let third = RunningDevice::start(&["qqqqqqqqqq"], Duration::from_millis(1), &calibrations);
    third.until("the rate is measured anew", |running| running.record.rate().is_some_and(|Rate(rate)| rate < 1e8));
    third.end();
    assert!(calibrations.get(KEY).unwrap().top_words.is_some_and(|rate| rate < 1e8));
}
