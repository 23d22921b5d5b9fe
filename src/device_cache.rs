//! What is kept of devices from one start to the next: their calibrations, in a file, and the
//! kernels that were compiled for GPUs, in a folder. A file that is missing, damaged or another
//! user's is ignored, and the devices are measured or the kernels compiled again.

use crate::os::files;
use crate::search::{Calibration, Calibrations, KernelStore};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Name of the file of calibrations in the data folder, or in the user's folder for caches.
const CALIBRATIONS: &str = "devices.json";
/// The version of its format. A file with another version is ignored.
const FORMAT_VERSION: u32 = 2;
/// The largest file of calibrations that is read, in bytes: 64 devices take 30 KiB.
const MAX_CALIBRATIONS_BYTES: u64 = 64 << 10;
/// Name of the folder of kernels, beside that file.
const KERNELS: &str = "kernels";
/// The most kernels that are kept: a machine with GPUs of several generations needs one for each.
const MAX_KERNELS: usize = 8;
/// The largest file of kernels that is read or written, in bytes. Those of a GPU take 2 to 6 MiB.
const MAX_KERNELS_BYTES: u64 = 32 << 20;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Content {
    form: u32,
    devices: BTreeMap<String, Calibration>,
}

/// Calibrations that are read from a folder and written to it. Writing the first one makes the
/// folder.
pub fn calibrations_in(folder: &Path) -> Calibrations {
    let file = folder.join(CALIBRATIONS);
    let read = read_calibrations(&file).unwrap_or_else(|error| {
        tracing::debug!(file = %file.display(), %error, "the devices are measured anew");
        BTreeMap::new()
    });
    let folder = folder.to_owned();
    Calibrations::kept_by(read, move |all| {
        let content = Content { form: FORMAT_VERSION, devices: all.clone() };
        let written = serde_json::to_vec_pretty(&content).map_err(io::Error::other);
        if let Err(error) = written.and_then(|content| write_own(&folder, CALIBRATIONS, &content)) {
            tracing::debug!(folder = %folder.display(), %error, "the calibrations of the devices are not kept");
        }
    })
}

/// The calibrations of this user, for commands without a bot. Without a home folder none are kept.
pub fn calibrations_of_user() -> Calibrations {
    files::cache_folder().map_or_else(Calibrations::default, |folder| calibrations_in(&folder))
}

fn read_calibrations(path: &Path) -> io::Result<BTreeMap<String, Calibration>> {
    let content: Content = serde_json::from_slice(&read_own(path, MAX_CALIBRATIONS_BYTES)?)?;
    match content.form {
        FORMAT_VERSION => Ok(content.devices),
        form => Err(io::Error::other(format!("it has the form {form}"))),
    }
}

/// The kernels kept in a folder. Keeping the first one makes the folder.
pub fn kernels_in(folder: &Path) -> Option<Arc<dyn KernelStore>> {
    Some(Arc::new(KernelFolder(folder.join(KERNELS))))
}

/// The kernels of this user, for commands without a bot. Without a home folder none are kept.
pub fn kernels_of_user() -> Option<Arc<dyn KernelStore>> {
    kernels_in(&files::cache_folder()?)
}

#[derive(Debug)]
struct KernelFolder(PathBuf);

impl KernelFolder {
    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let above = self.0.parent().filter(|above| above.exists());
        if content.len() as u64 > MAX_KERNELS_BYTES || above.is_some_and(|above| !files::is_own(above)) {
            return Err(io::Error::other("the file is too large, or the folder is another user's"));
        }
        write_own(&self.0, name, content)?;
        let mut files = fs::read_dir(&self.0)?.collect::<io::Result<Vec<_>>>()?;
        let age =
            |file: &fs::DirEntry| file.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        files.sort_by_key(|file| std::cmp::Reverse(age(file)));
        files.iter().skip(MAX_KERNELS).try_for_each(|file| fs::remove_file(file.path()))
    }
}

impl KernelStore for KernelFolder {
    fn get(&self, name: &str) -> Option<Vec<u8>> {
        let read = read_own(&self.0.join(name), MAX_KERNELS_BYTES);
        read.inspect_err(|error| tracing::debug!(name, %error, "no kernels are kept")).ok()
    }

    fn put(&self, name: &str, content: &[u8]) {
        if let Err(error) = self.write(name, content) {
            tracing::warn!(folder = %self.0.display(), %error, "the compiled kernels are not kept; the next start compiles them again");
        }
    }
}

/// Reads a file that only this user can have written.
fn read_own(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if files::is_file_open_to_others(&file)? || !files::is_own(path) {
        return Err(io::Error::other("it is not this user's alone"));
    }
    let mut content = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most_bytes {
        return Err(io::Error::other("it is too large"));
    }
    Ok(content)
}

/// Writes a file in one step. Only its owner can read it.
fn write_own(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    files::create_folder(folder)?;
    let mut new = tempfile::Builder::new().prefix("new-").make_in(folder, files::create_new)?;
    new.write_all(content)?;
    new.persist(folder.join(name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Choice;

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
        let first = calibrations_in(&folder);
        assert!(first.get("GPU").is_none() && !folder.exists());
        change(&first, "GPU");
        assert_eq!(calibrations_in(&folder).get("GPU"), Some(calibration()));
        assert!(!files::is_open_to_others(&folder.join(CALIBRATIONS)).unwrap());
        change(&calibrations_in(&folder), "another GPU");
        let both = calibrations_in(&folder);
        assert!(both.get("GPU").is_some() && both.get("another GPU").is_some());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no part of a file is left");
        let nowhere = calibrations_in(&folder.join(CALIBRATIONS).join("below a file"));
        change(&nowhere, "GPU");
        assert!(nowhere.get("GPU").is_some(), "it is remembered while the program runs");
    }

    #[test]
    fn a_damaged_or_foreign_file_is_ignored_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(CALIBRATIONS);
        change(&calibrations_in(folder.path()), "GPU");
        let good = fs::read(&file).unwrap();
        let text = String::from_utf8(good.clone()).unwrap();
        let is_known = || calibrations_in(folder.path()).get("GPU").is_some();
        assert!(is_known());
        let mut damaged: Vec<Vec<u8>> = (0..good.len()).map(|length| good[..length].to_vec()).collect();
        damaged.push([&good[..], &vec![b' '; MAX_CALIBRATIONS_BYTES as usize]].concat());
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
        change(&calibrations_in(folder.path()), "GPU");
        assert!(is_known() && !files::is_open_to_others(&file).unwrap());
    }

    #[test]
    fn kernels_are_kept_for_the_next_start_and_their_number_is_bounded() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("cache");
        let store = || kernels_in(&folder).unwrap();
        assert_eq!(store().get("kernels-1"), None);
        assert!(!folder.exists(), "reading makes nothing");
        store().put("kernels-1", b"code");
        assert_eq!(store().get("kernels-1").unwrap(), b"code");
        assert!(!files::is_open_to_others(&folder.join(KERNELS).join("kernels-1")).unwrap());
        let count = || fs::read_dir(folder.join(KERNELS)).unwrap().count();
        for number in 0..2 * MAX_KERNELS {
            store().put(&format!("kernels-{number}"), &[number as u8]);
            assert!(count() <= MAX_KERNELS && store().get(&format!("kernels-{number}")).is_some());
        }
        store().put("kernels-large", &vec![0; MAX_KERNELS_BYTES as usize + 1]);
        assert_eq!(store().get("kernels-large"), None);
    }
}
