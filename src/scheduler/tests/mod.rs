//! Tests from a device's claim to a key, with devices that lie and with ten thousand jobs.

mod best;
mod canaries;
mod forged;
mod selection;
mod starving;
mod sybils;
mod whole_keys;

use crate::roster::Roster;
use crate::scheduler::plan::device_plan::PlannedLaunch;
use crate::scheduler::plan::profile::DeviceRates;
use crate::scheduler::run::health::Record;
use crate::scheduler::run::pool::{NextStep, Pool, PoolDevice};
use crate::scheduler::run::verify::{Delivered, spawn_verifier};
use crate::scheduler::{CollectedLaunch, FindHandler, Pass};
use crate::search::{DeviceId, DeviceInfo, Launch, LaunchReport, SearchError, Searcher};
use crate::vault::Vault;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The description of a device of the tests.
pub(in crate::scheduler) fn device(id: DeviceId) -> DeviceInfo {
    DeviceInfo { id, name: "test".to_owned(), kernel: "test".to_owned(), threads: 1, warning: None }
}

/// A device whose reports a function makes, which may take its time.
pub(in crate::scheduler) struct FakeDevice {
    info: DeviceInfo,
    in_flight: Option<Launch>,
    report: Box<dyn FnMut(Launch) -> LaunchReport + Send>,
}

/// Name under which the rates of a [`FakeDevice`] are kept.
pub(in crate::scheduler) const KEY: &str = "a device";

impl FakeDevice {
    /// A device that tests a thousand candidates in a millisecond and finds nothing.
    pub fn new(id: DeviceId) -> FakeDevice {
        let busy = Duration::from_millis(1);
        FakeDevice::reporting(id, move |_| {
            std::thread::sleep(busy);
            LaunchReport { candidates: 1000, busy, ..LaunchReport::default() }
        })
    }

    pub fn reporting(id: DeviceId, report: impl FnMut(Launch) -> LaunchReport + Send + 'static) -> FakeDevice {
        FakeDevice { info: device(id), in_flight: None, report: Box::new(report) }
    }
}

impl Searcher for FakeDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn starts(&self) -> usize {
        1
    }

    fn in_flight(&self) -> usize {
        1
    }

    fn calibration_key(&self) -> Option<&str> {
        Some(KEY)
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        self.in_flight = Some(launch);
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        Ok((self.report)(self.in_flight.take().expect("a launch was submitted")))
    }
}

/// Verifies launches of one device as `Scheduler` does. Returns the device's record.
pub fn verify_all(
    pool: &Arc<Pool>,
    vault: &Vault,
    launches: impl IntoIterator<Item = CollectedLaunch>,
    handler: impl FindHandler,
) -> Arc<Record> {
    let record = Arc::new(Record::new(&device(DeviceId::Cpu)));
    let (sender, receiver) = mpsc::sync_channel(64);
    let verifier = spawn_verifier(receiver, Arc::clone(pool), vault.clone(), handler, Roster::default());
    for launch in launches {
        sender.send(Delivered { launch, record: Arc::clone(&record), collected: Instant::now() }).unwrap();
    }
    drop(sender);
    verifier.join().unwrap();
    record
}

/// The next launch of a device.
pub fn planned(pool: &Pool, held: &mut PoolDevice, rates: impl Into<DeviceRates>) -> PlannedLaunch {
    match pool.next(held, rates) {
        NextStep::Search(planned) => planned,
        other => panic!("{other:?}"),
    }
}

/// The pass of the next launch of a device without a rate.
pub fn pass(pool: &Pool, held: &mut PoolDevice) -> Arc<Pass> {
    planned(pool, held, None).pass
}

/// A generator with a printed seed, which `NPUBBOT_TEST_SEED` sets.
pub fn seeded() -> StdRng {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// A Poisson number (Knuth's way, for a small mean).
pub fn poisson(mean: f64, random: &mut StdRng) -> u64 {
    let (least, mut product, mut count) = ((-mean).exp(), random.random::<f64>(), 0);
    while product > least {
        product *= random.random::<f64>();
        count += 1;
    }
    count
}
