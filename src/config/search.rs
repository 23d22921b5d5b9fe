//! `[search]`: the raw table and its checks.

use super::error::ConfigError;
use super::place::Place;
use crate::hours::Hours;
use crate::search::{Calibrations, Caps, DeviceChoice, DeviceId, Restraints, SearchOptions};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use toml::Spanned;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Search {
    /// Where to search: `all` (every GPU, else the CPU), `cuda` (every GPU), `cuda:N`, `cpu`.
    device: Option<Spanned<String>>,
    /// CPU threads, 1 to 1024. Default: one per core.
    threads: Option<Spanned<i64>>,
    /// CPU kernel: `auto`, `ifma` or `portable`.
    cpu_kernel: Option<Spanned<String>>,
    /// Whether a launch on a GPU takes at most 30 ms, so that a desktop stays smooth. Keys are
    /// found more slowly. Without it a launch takes at most 100 ms on a GPU with a display.
    polite: Option<bool>,
    /// Device memory that the search may take on each GPU, `"64 MB"` to `"1024 GB"`. Empty: half of
    /// what is free. About 4 MB for each multiprocessor and 60 MB more are taken in any case.
    gpu_memory: Option<Spanned<String>>,
    /// Hours at which the devices search, in local time, like `"22:00-07:00"` or
    /// `"07:00-09:30, 22:00-24:00"`. Empty: always.
    schedule: Option<Spanned<String>>,
    /// Time zone of `schedule`, like `Europe/Berlin`. Empty: that of the system.
    time_zone: Option<Spanned<String>>,
    /// Whether the devices pause while the machine runs on its battery.
    pause_on_battery: Option<bool>,
    /// Share of its time in which a device searches, in percent, 1 to 100.
    share_percent: Option<Spanned<i64>>,
    /// Temperature at which a device pauses until it is 5 degrees cooler, in degrees Celsius, 30 to
    /// 120.
    pause_at_celsius: Option<Spanned<i64>>,
    /// Caps of single devices, one table each.
    caps: Vec<RawCaps>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCaps {
    /// The device: `cpu` or `cuda:N`.
    device: Spanned<String>,
    /// As in `[search]`.
    share_percent: Option<Spanned<i64>>,
    /// As in `[search]`.
    pause_at_celsius: Option<Spanned<i64>>,
    /// Power limit of a GPU, in watts, 1 to 2,000. The driver lets root set it.
    watts: Option<Spanned<i64>>,
}

/// Checks the table. Returns the devices, and when they rest.
pub(super) fn checked(raw: &Search, place: &Place<'_>) -> Result<SearchOptions, ConfigError> {
    let threads = match &raw.threads {
        None => None,
        Some(_) => Some(place.number("threads", &raw.threads, 1, 1..=1024)? as usize),
    };
    Ok(SearchOptions {
        devices: place.choice::<DeviceChoice>("device", &raw.device)?.unwrap_or_default(),
        threads,
        cpu_kernel: place.choice("cpu_kernel", &raw.cpu_kernel)?.unwrap_or_default(),
        polite: raw.polite.unwrap_or(false),
        gpu_memory: gpu_memory(&raw.gpu_memory, place)?,
        shared_memory: None,
        restraints: Restraints {
            hours: hours(raw, place)?,
            pause_on_battery: raw.pause_on_battery.unwrap_or(false),
            caps: caps(&raw.share_percent, &raw.pause_at_celsius, &None, place)?,
            of_device: of_device(&raw.caps, place)?,
        },
        calibrations: Calibrations::default(),
    })
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

/// Bytes of the setting; `None` if it is missing or empty.
fn gpu_memory(value: &Option<Spanned<String>>, place: &Place<'_>) -> Result<Option<u64>, ConfigError> {
    let Some(value) = value.as_ref().filter(|value| !value.get_ref().is_empty()) else { return Ok(None) };
    gpu_memory_bytes(value.get_ref()).map(Some).map_err(|allowed| {
        let what = format!("`gpu_memory` is \"{}\"; {allowed}", value.get_ref());
        place.wrong(value.span(), what)
    })
}

fn hours(raw: &Search, place: &Place<'_>) -> Result<Option<Hours>, ConfigError> {
    let zone = raw.time_zone.as_ref().map_or("", |zone| zone.get_ref().as_str());
    if let Err(what) = Hours::parse("00:00-24:00", zone) {
        let span = raw.time_zone.as_ref().map_or(0..0, Spanned::span);
        return Err(place.wrong(span, format!("`time_zone`: {what}")));
    }
    let Some(schedule) = raw.schedule.as_ref().filter(|schedule| !schedule.get_ref().is_empty()) else {
        return Ok(None);
    };
    let hours = Hours::parse(schedule.get_ref(), zone);
    let wrong = |what| place.wrong(schedule.span(), format!("`schedule` is \"{}\"; {what}", schedule.get_ref()));
    hours.map(Some).map_err(wrong)
}

fn of_device(raw: &[RawCaps], place: &Place<'_>) -> Result<BTreeMap<DeviceId, Caps>, ConfigError> {
    let mut all = BTreeMap::new();
    for one in raw {
        let device: DeviceId =
            one.device.get_ref().parse().map_err(|what| place.wrong(one.device.span(), format!("`device`: {what}")))?;
        if let (DeviceId::Cpu, Some(watts)) = (device, &one.watts) {
            let what = "`watts` is for GPUs; `share_percent` limits the time of a CPU";
            return Err(place.wrong(watts.span(), what.to_owned()));
        }
        if all.insert(device, caps(&one.share_percent, &one.pause_at_celsius, &one.watts, place)?).is_some() {
            return Err(place.wrong(one.device.span(), format!("{device} has two [[search.caps]]; give it one")));
        }
    }
    Ok(all)
}

fn caps(
    share_percent: &Option<Spanned<i64>>,
    pause_at_celsius: &Option<Spanned<i64>>,
    watts: &Option<Spanned<i64>>,
    place: &Place<'_>,
) -> Result<Caps, ConfigError> {
    let number = |key, value: &Option<Spanned<i64>>, allowed| {
        let checked = value.is_some().then(|| place.number(key, value, 0, allowed));
        checked.transpose().map(|number| number.map(f64::from))
    };
    Ok(Caps {
        share: number("share_percent", share_percent, 1..=100)?.map(|percent| percent / 100.0),
        celsius: number("pause_at_celsius", pause_at_celsius, 30..=120)?,
        watts: number("watts", watts, 1..=2000)?,
    })
}
