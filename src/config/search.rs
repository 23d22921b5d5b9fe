//! `[search]` as the options of the search.

use super::value::{optional_number, string};
use crate::hours::Hours;
use crate::search::cpu::KernelChoice;
use crate::search::{Caps, DeviceChoice, DeviceId, Preference, Restraints, SearchOptions};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct SearchTable {
    /// Where to search: `all` (every GPU, else the CPU), `cuda` (every GPU), `cuda:N`, `cpu`.
    #[serde(deserialize_with = "choice")]
    device: DeviceChoice,
    /// CPU threads, 1 to 1024. Default: one per core.
    #[serde(deserialize_with = "optional_number::<1, 1024, _, _>")]
    threads: Option<usize>,
    /// CPU kernel: `auto`, `ifma`, `avx2`, `neon` or `portable`.
    #[serde(deserialize_with = "choice")]
    cpu_kernel: KernelChoice,
    /// Whether a launch on a GPU takes at most 30 ms, so that a desktop stays smooth. Keys are
    /// found more slowly. Without it a launch takes at most 100 ms on a GPU with a display.
    polite: bool,
    /// By what a GPU's way to search is chosen at its first start: `rate` or `energy`. With `energy` a
    /// GPU may do 1 % less and use 5 to 10 % less energy for each candidate.
    #[serde(deserialize_with = "choice")]
    prefer: Preference,
    /// Device memory that the search may take on each GPU, `"64 MB"` to `"1024 GB"`. Empty: half of
    /// what is free. About 4 MB for each multiprocessor and 80 MB more are taken in any case.
    #[serde(deserialize_with = "gpu_memory")]
    gpu_memory: Option<u64>,
    /// Hours at which the devices search, in local time, like `"22:00-07:00"` or
    /// `"07:00-09:30, 22:00-24:00"`. Empty: always.
    #[serde(deserialize_with = "schedule")]
    schedule: String,
    /// Time zone of `schedule`, like `Europe/Berlin`. Empty: that of the system.
    #[serde(deserialize_with = "time_zone")]
    time_zone: String,
    /// Whether the devices pause while the machine runs on its battery.
    pause_on_battery: bool,
    /// Share of its time in which a device searches, in percent, 1 to 100.
    #[serde(deserialize_with = "optional_number::<1, 100, _, _>")]
    share_percent: Option<u32>,
    /// Temperature at which a device pauses until it is 5 degrees cooler, in degrees Celsius, 30 to
    /// 120.
    #[serde(deserialize_with = "optional_number::<30, 120, _, _>")]
    pause_at_celsius: Option<u32>,
    /// Caps of single devices, one table each.
    caps: Vec<CapsTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CapsTable {
    /// The device: `cpu` or `cuda:N`.
    #[serde(deserialize_with = "choice")]
    device: DeviceId,
    /// As in `[search]`.
    #[serde(default, deserialize_with = "optional_number::<1, 100, _, _>")]
    share_percent: Option<u32>,
    /// As in `[search]`.
    #[serde(default, deserialize_with = "optional_number::<30, 120, _, _>")]
    pause_at_celsius: Option<u32>,
    /// Power limit of a GPU, in watts, 1 to 2,000. The driver lets root set it.
    #[serde(default, deserialize_with = "optional_number::<1, 2000, _, _>")]
    watts: Option<u32>,
}

fn caps(share_percent: Option<u32>, celsius: Option<u32>, watts: Option<u32>) -> Caps {
    let share = share_percent.map(|percent| f64::from(percent) / 100.0);
    Caps { share, celsius: celsius.map(f64::from), watts: watts.map(f64::from) }
}

/// Reads `[search]`.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<SearchOptions, D::Error> {
    let table = SearchTable::deserialize(from)?;
    let mut of_device = BTreeMap::new();
    for one in &table.caps {
        if one.device == DeviceId::Cpu && one.watts.is_some() {
            return Err(D::Error::custom("`watts` is for GPUs; `share_percent` limits the time of a CPU"));
        }
        let caps = caps(one.share_percent, one.pause_at_celsius, one.watts);
        if of_device.insert(one.device, caps).is_some() {
            return Err(D::Error::custom(format!("{} has two [[search.caps]]; give it one", one.device)));
        }
    }
    let hours = (!table.schedule.is_empty()).then(|| Hours::parse(&table.schedule, &table.time_zone));
    Ok(SearchOptions {
        devices: table.device,
        threads: table.threads,
        cpu_kernel: table.cpu_kernel,
        polite: table.polite,
        prefer: table.prefer,
        gpu_memory: table.gpu_memory,
        restraints: Restraints {
            hours: hours.transpose().map_err(D::Error::custom)?,
            pause_on_battery: table.pause_on_battery,
            caps: caps(table.share_percent, table.pause_at_celsius, None),
            of_device,
        },
        ..SearchOptions::default()
    })
}

/// A text that the type parses.
fn choice<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(from: D) -> Result<T, D::Error> {
    string(from, "a word")?.parse().map_err(D::Error::custom)
}

fn schedule<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = string(from, "spans like \"22:00-07:00\"")?;
    match Hours::parse(&text, "") {
        Err(allowed) if !text.is_empty() => Err(D::Error::custom(format!("is {text:?}; {allowed}"))),
        _ => Ok(text),
    }
}

fn time_zone<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let zone = string(from, "a name like \"Europe/Berlin\"")?;
    Hours::parse("00:00-24:00", &zone).map(|_| zone).map_err(D::Error::custom)
}

fn gpu_memory<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = string(from, "a size like \"1 GB\"")?;
    let size = (!text.is_empty()).then(|| gpu_memory_bytes(&text));
    size.transpose().map_err(|allowed| D::Error::custom(format!("is {text:?}; {allowed}")))
}

/// Units of memory, as operators write them, in megabytes.
const UNITS: [(&str, u64); 2] = [("MB", 1), ("GB", 1000)];
/// Allowed sizes, in megabytes, of the memory that the search may take on a GPU.
const MEGABYTES: RangeInclusive<u64> = 64..=1_024_000;

/// Parses a size of device memory such as `1 GB`, in bytes.
///
/// Errors: a text for the operator that names the allowed values.
pub fn gpu_memory_bytes(text: &str) -> Result<u64, &'static str> {
    let megabytes = UNITS.iter().find_map(|(unit, megabytes)| {
        let number = text.trim().strip_suffix(unit)?.trim_end();
        number.parse::<u64>().ok()?.checked_mul(*megabytes)
    });
    let allowed = megabytes.filter(|megabytes| MEGABYTES.contains(megabytes));
    allowed
        .map(|megabytes| megabytes * 1_000_000)
        .ok_or("allowed is a whole number and MB or GB, from \"64 MB\" to \"1024 GB\"")
}
