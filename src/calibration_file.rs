//! The file that keeps the calibrations of devices from one start to the next. A file that is
//! missing, damaged or another user's is ignored, and the devices are measured again.

use crate::os::files;
use crate::search::{Calibration, Calibrations};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Name of the file in the data folder, or in the user's folder for caches.
const FILE_NAME: &str = "devices.json";
/// The version of the format. A file with another version is ignored.
const FORMAT_VERSION: u32 = 2;
/// The largest file that is read, in bytes: 64 devices take 30 KiB.
const MAX_FILE_BYTES: u64 = 64 << 10;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Content {
    form: u32,
    devices: BTreeMap<String, Calibration>,
}

/// Calibrations that are read from a folder and written to it. Writing the first one makes the
/// folder.
pub fn in_folder(folder: &Path) -> Calibrations {
    let file = folder.join(FILE_NAME);
    let read = read(&file).unwrap_or_else(|reason| {
        tracing::debug!(file = %file.display(), reason, "the devices are measured anew");
        BTreeMap::new()
    });
    let folder = folder.to_owned();
    Calibrations::kept_by(read, move |all| {
        if let Err(error) = write(&folder, all) {
            tracing::debug!(folder = %folder.display(), %error, "the calibrations of the devices are not kept");
        }
    })
}

/// The calibrations of this user, for commands without a bot. Without a home folder none are kept.
pub fn of_user() -> Calibrations {
    files::cache_folder().map_or_else(Calibrations::default, |folder| in_folder(&folder))
}

fn read(path: &Path) -> Result<BTreeMap<String, Calibration>, String> {
    let words = |error: io::Error| error.to_string();
    let file = File::open(path).map_err(words)?;
    if files::is_file_open_to_others(&file).map_err(words)? || !files::is_own(path) {
        return Err("it is not this user's alone".to_owned());
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(words)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err("it is too large".to_owned());
    }
    let content: Content = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    match content.form {
        FORMAT_VERSION => Ok(content.devices),
        form => Err(format!("it has the form {form}")),
    }
}

/// Writes the file in one step. Only its owner can read it.
fn write(folder: &Path, all: &BTreeMap<String, Calibration>) -> io::Result<()> {
    files::create_folder(folder)?;
    let text = serde_json::to_string_pretty(&Content { form: FORMAT_VERSION, devices: all.clone() })?;
    let mut new = tempfile::Builder::new().prefix(FILE_NAME).make_in(folder, files::create_new)?;
    new.write_all(text.as_bytes())?;
    new.persist(folder.join(FILE_NAME))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Choice, MOST_CALIBRATIONS};
    use std::fs;

    fn calibration() -> Calibration {
        let speeds = [1.5e5, 0.1 + 0.2, 1e4];
        let choice = Choice { variant: "tensor".to_owned(), prefixes: 512, entries: 1024, speeds };
        Calibration { choice: Some(choice), top_words: Some(1.234_567_890_123e11), whole_keys: None }
    }

    fn change(calibrations: &Calibrations, key: &str) {
        calibrations.change(key, |kept| *kept = calibration());
    }

    #[test]
    fn a_calibration_is_the_same_after_the_next_start_and_nobody_else_reads_the_file() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("not/there/yet");
        let first = in_folder(&folder);
        assert!(first.get("GPU").is_none() && !folder.exists());
        change(&first, "GPU");
        assert_eq!(in_folder(&folder).get("GPU"), Some(calibration()));
        assert!(!files::is_open_to_others(&folder.join(FILE_NAME)).unwrap());
        change(&in_folder(&folder), "another GPU");
        let both = in_folder(&folder);
        assert!(both.get("GPU").is_some() && both.get("another GPU").is_some());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no part of a file is left");
    }

    #[test]
    fn a_damaged_or_foreign_file_is_ignored_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE_NAME);
        change(&in_folder(folder.path()), "GPU");
        let good = fs::read(&file).unwrap();
        let text = String::from_utf8(good.clone()).unwrap();
        let is_known = || in_folder(folder.path()).get("GPU").is_some();
        assert!(is_known());
        let mut damaged: Vec<Vec<u8>> = (0..good.len()).map(|length| good[..length].to_vec()).collect();
        damaged.push([&good[..], b"}"].concat());
        damaged.push([&good[..], &vec![b' '; MAX_FILE_BYTES as usize]].concat());
        damaged.push(vec![0xff; 100]);
        damaged.push(text.replace("\"form\": 2", "\"form\": 1").into());
        damaged.push(text.replace("choice", "chosen").into());
        damaged.push(text.replace("10000.0", "-1.0").into());
        for content in damaged {
            assert_ne!(content, good);
            fs::write(&file, &content).unwrap();
            assert!(!is_known(), "{}", String::from_utf8_lossy(&content));
        }
        fs::write(&file, &good).unwrap();
        files::open_to_others(&file).unwrap();
        assert!(!is_known(), "others could have written it");
        change(&in_folder(folder.path()), "GPU");
        assert!(is_known() && !files::is_open_to_others(&file).unwrap());
    }

    #[test]
    fn a_full_file_is_read_again_and_a_folder_that_cannot_be_made_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let full = in_folder(folder.path());
        for device in 0..MOST_CALIBRATIONS {
            change(&full, &format!("NVIDIA RTX PRO 6000 Blackwell Server Edition {device:0>160}"));
        }
        let size = fs::metadata(folder.path().join(FILE_NAME)).unwrap().len();
        assert!(size < MAX_FILE_BYTES, "{size} bytes");
        let again = in_folder(folder.path());
        let last = format!("NVIDIA RTX PRO 6000 Blackwell Server Edition {:0>160}", MOST_CALIBRATIONS - 1);
        assert!(again.get(&last).is_some());
        let nowhere = in_folder(&folder.path().join(FILE_NAME).join("below a file"));
        change(&nowhere, "GPU");
        assert!(nowhere.get("GPU").is_some(), "it is remembered while the program runs");
    }
}
