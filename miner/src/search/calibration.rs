//! Calibrations: the measured figures of devices. The caller may keep them from one start to the
//! next; this room knows no file.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most calibrations kept. With one more, all others are dropped and measured again.
pub const MAX_CALIBRATIONS: usize = 64;

/// The longest name of a variant, in bytes.
const LONGEST_NAME: usize = 32;

/// The figures of a measured device.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The choice of a GPU's way to search; `None` if it was not measured.
    pub choice: Option<Choice>,
    /// Candidates per second by wall time, where top words are compared.
    pub top_words: Option<f64>,
    /// Candidates per second by wall time, where whole keys are compared.
    pub whole_keys: Option<f64>,
}

/// The way that a GPU searches, chosen by measuring.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The name of the kernel's variant.
    pub variant: String,
    /// Prefix products per thread that fitted into memory. With another number, another variant may
    /// be best.
    pub prefixes: u32,
    /// The most table entries at a centre, where top words are compared.
    pub entries: u32,
    /// Table entries per thread and second of each kind of kernel: top words, quick tests of whole
    /// keys, texts of whole keys.
    pub speeds: [f64; 3],
}

impl Calibration {
    /// Whether a device can have these figures. If not, they come from a damaged file.
    pub fn is_plausible(&self) -> bool {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0 && rate < 1e18;
        let is_choice = |choice: &Choice| {
            let is_speed = |&speed: &f64| is_rate(speed) && speed < 1e12;
            choice.variant.len() <= LONGEST_NAME && choice.speeds.iter().all(is_speed)
        };
        self.choice.as_ref().is_none_or(is_choice)
            && [self.top_words, self.whole_keys].into_iter().flatten().all(is_rate)
    }
}

/// The calibrations of all devices by their keys, shared by all users. Without
/// [`Calibrations::kept_by`] they end with the program, and every start measures.
#[derive(Clone, Default)]
pub struct Calibrations(Arc<Kept>);

/// Writes all calibrations to their place.
type Save = Box<dyn Fn(&BTreeMap<String, Calibration>) + Send + Sync>;

#[derive(Default)]
struct Kept {
    all: Mutex<BTreeMap<String, Calibration>>,
    save: Option<Save>,
}

impl Calibrations {
    /// All calibrations, by their keys.
    pub fn all(&self) -> BTreeMap<String, Calibration> {
        self.lock().clone()
    }

    /// Calibrations that begin as `all`, without the implausible ones. After each change, `save` is
    /// called with all of them.
    pub fn kept_by(
        mut all: BTreeMap<String, Calibration>,
        save: impl Fn(&BTreeMap<String, Calibration>) + Send + Sync + 'static,
    ) -> Calibrations {
        all.retain(|_, calibration| calibration.is_plausible());
        Calibrations(Arc::new(Kept { all: Mutex::new(all), save: Some(Box::new(save)) }))
    }

    /// The calibration of a device.
    pub fn get(&self, key: &str) -> Option<Calibration> {
        self.lock().get(key).cloned()
    }

    /// Changes the calibration of a device, and keeps it.
    pub fn change(&self, key: &str, change: impl FnOnce(&mut Calibration)) {
        let mut all = self.lock();
        let before = all.get(key).cloned().unwrap_or_default();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return;
        }
        if all.len() >= MAX_CALIBRATIONS && !all.contains_key(key) {
            all.clear();
        }
        all.insert(key.to_owned(), after);
        if let Some(save) = &self.0.save {
            save(&all);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Calibration>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Calibrations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calibrations({})", self.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(speed: f64) -> Choice {
        Choice { variant: "tensor".to_owned(), prefixes: 512, entries: 2048, speeds: [speed, 2e4, 1e4] }
    }

    /// Calibrations, and their number each time they were saved.
    fn counted(all: BTreeMap<String, Calibration>) -> (Calibrations, Arc<Mutex<Vec<usize>>>) {
        let kept: Arc<Mutex<Vec<usize>>> = Arc::default();
        let saved = Arc::clone(&kept);
        (Calibrations::kept_by(all, move |all| saved.lock().unwrap().push(all.len())), kept)
    }

    #[test]
    fn a_change_is_kept_once_and_seen_by_everyone_who_shares_it() {
        let (calibrations, kept) = counted(BTreeMap::new());
        let other = calibrations.clone();
        other.change("a", |calibration| calibration.choice = Some(choice(1e5)));
        other.change("a", |calibration| calibration.choice = Some(choice(1e5)));
        calibrations.change("a", |calibration| calibration.top_words = Some(7e9));
        calibrations.change("b", |_| {});
        let expected = Calibration { choice: Some(choice(1e5)), top_words: Some(7e9), ..Calibration::default() };
        assert_eq!((other.get("a"), other.get("b")), (Some(expected), None));
        assert_eq!(*kept.lock().unwrap(), [1, 1], "nothing is written that has not changed");
    }

    #[test]
    fn the_number_of_calibrations_is_bounded() {
        let (calibrations, kept) = counted(BTreeMap::new());
        for device in 0..3 * MAX_CALIBRATIONS {
            calibrations.change(&device.to_string(), |calibration| calibration.top_words = Some(1.0));
        }
        assert_eq!(kept.lock().unwrap().iter().max(), Some(&MAX_CALIBRATIONS));
        assert!(calibrations.get(&(3 * MAX_CALIBRATIONS - 1).to_string()).is_some(), "the newest is there");
    }

    #[test]
    fn figures_that_nobody_can_have_measured_are_left_out() {
        let good = Calibration { choice: Some(choice(1e5)), top_words: Some(7e9), whole_keys: Some(1.0) };
        assert!(good.is_plausible() && Calibration::default().is_plausible());
        let mut all = BTreeMap::from([("good".to_owned(), good.clone())]);
        for (number, wrong) in [0.0, -0.0, -1.0, 1e18, 1e300, f64::NAN, f64::INFINITY].into_iter().enumerate() {
            all.insert(format!("speed {number}"), Calibration { choice: Some(choice(wrong)), ..good.clone() });
            all.insert(format!("rate {number}"), Calibration { top_words: Some(wrong), ..good.clone() });
            all.insert(format!("whole {number}"), Calibration { whole_keys: Some(wrong), ..good.clone() });
        }
        let named = Choice { variant: "x".repeat(LONGEST_NAME + 1), ..choice(1e5) };
        all.insert("name".to_owned(), Calibration { choice: Some(named), ..good.clone() });
        let keys: Vec<String> = all.keys().cloned().collect();
        let (calibrations, _) = counted(all);
        let left: Vec<&String> = keys.iter().filter(|key| calibrations.get(key).is_some()).collect();
        assert_eq!(left, ["good"]);
    }
}
