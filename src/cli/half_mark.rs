//! Records that a half was used: a file beside the half's own lists the tweaks it was combined
//! with.

use crate::key::SplitTweak;
use crate::os::{Access, files};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Whether a half was used before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Earlier {
    /// The half was not used.
    Fresh,
    /// The half was combined with the same tweak, which gives the same key.
    SameTweak,
    /// The half was combined with another tweak, so two keys exist that reveal each other.
    OtherTweak,
}

/// Path of the record for a half's file.
fn mark_of(half: &Path) -> PathBuf {
    let mut path = half.as_os_str().to_owned();
    path.push(".used");
    path.into()
}

/// Records that a half was used with this tweak, and returns its earlier use. A tweak is not a
/// secret.
///
/// Errors: the record cannot be read or written.
pub(super) fn mark(half: &Path, tweak: &SplitTweak) -> io::Result<Earlier> {
    let mut file = files::open(&mark_of(half), Access::ReadAppend)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let tweak = tweak.to_string();
    let earlier = match (text.lines().any(|line| line == tweak), text.lines().any(|line| line != tweak)) {
        (_, true) => Earlier::OtherTweak,
        (true, false) => Earlier::SameTweak,
        (false, false) => Earlier::Fresh,
    };
    if !text.lines().any(|line| line == tweak) {
        writeln!(file, "{tweak}")?;
        file.sync_all()?;
    }
    Ok(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Offset, Rotation, Tweak};

    fn tweak(number: u8) -> SplitTweak {
        let offset = Offset::from_scalar(secp256k1::Scalar::from_be_bytes([number; 32]).unwrap());
        SplitTweak { tweak: Tweak { offset, rotation: Rotation::ALL[0] }, fingerprint: [1; 8] }
    }

    #[test]
    fn a_half_remembers_its_tweaks() {
        let folder = tempfile::tempdir().unwrap();
        let half = folder.path().join("half.age");
        assert_eq!(mark(&half, &tweak(1)).unwrap(), Earlier::Fresh);
        assert_eq!(mark(&half, &tweak(1)).unwrap(), Earlier::SameTweak);
        assert_eq!(mark(&half, &tweak(2)).unwrap(), Earlier::OtherTweak);
        assert_eq!(mark(&half, &tweak(1)).unwrap(), Earlier::OtherTweak, "two keys of one half exist now");
        assert_eq!(mark(&folder.path().join("other.age"), &tweak(2)).unwrap(), Earlier::Fresh);
        assert!(mark(&folder.path().join("missing/half.age"), &tweak(1)).is_err());
    }
}
