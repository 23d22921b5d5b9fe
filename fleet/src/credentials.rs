//! Credentials: the file with which a user of the server proves who it is and recognises the
//! server.
//!
//! The file is text in the form of PEM: the seed of the user's NKEY, and the certificate that the
//! server must show. Nothing else is trusted, so a machine needs no list of authorities.

use super::{FleetError, subjects};
use async_nats::rustls;
use async_nats::{ClientError, ConnectError, ConnectErrorKind, ConnectOptions, Event};
use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;

const SEED_BEGINS: &str = "-----BEGIN USER NKEY SEED-----";
const SEED_ENDS: &str = "-----END USER NKEY SEED-----";
const CERTIFICATE_BEGINS: &str = "-----BEGIN CERTIFICATE-----";
/// The beginning of the line that names the user.
const USER: &str = "User: ";
/// Largest file that is read, bytes.
const LARGEST: u64 = 64 << 10;
/// Time limit for one attempt to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// Time between two signs of life to the server.
const PING: Duration = Duration::from_secs(5);
/// Longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The credentials of a user of the server.
pub struct Credentials {
    user: String,
    seed: String,
    /// The certificate that the server must show. The library reads it anew for each connection, so
    /// it is in a file of its own: that of the credentials may be gone.
    certificate: NamedTempFile,
}

impl Credentials {
    /// Reads credentials from a file.
    pub fn read(file: &Path) -> Result<Credentials, FleetError> {
        let unreadable = |error: io::Error| {
            FleetError::Refused(format!(
                "the credentials {} cannot be read ({error}); `npubbot fleet init` and `fleet add NAME` make such files",
                file.display()
            ))
        };
        let is_small = fs::metadata(file).map_err(unreadable)?.len() <= LARGEST;
        let text = if is_small { fs::read_to_string(file).map_err(unreadable)? } else { String::new() };
        let missing = |what: &str| {
            let file = file.display();
            let text =
                format!("{file} has no credentials ({what} is missing); `npubbot fleet add NAME` makes such a file");
            FleetError::Refused(text)
        };
        let user = text.lines().find_map(|line| line.strip_prefix(USER)).ok_or_else(|| missing("the name"))?;
        let seed = text.split_once(SEED_BEGINS).and_then(|(_, rest)| rest.split_once(SEED_ENDS));
        let (seed, _) = seed.ok_or_else(|| missing("the seed"))?;
        if nkeys::KeyPair::from_seed(seed.trim()).is_err() {
            return Err(missing("a valid seed"));
        }
        let begins = text.find(CERTIFICATE_BEGINS).ok_or_else(|| missing("the server's certificate"))?;
        let (user, seed) = (user.trim().to_owned(), seed.trim().to_owned());
        let mut certificate = NamedTempFile::new().map_err(unreadable)?;
        certificate.write_all(&text.as_bytes()[begins..]).map_err(unreadable)?;
        Ok(Credentials { user, seed, certificate })
    }

    /// The text of a user's credentials file.
    pub fn text(user: &str, seed: &str, certificate: &str) -> String {
        format!(
            "Credentials for an npubbot fleet. Whoever has this file can work in its user's name.\n{USER}{user}\n\n\
             {SEED_BEGINS}\n{seed}\n{SEED_ENDS}\n\nThe certificate that the server must show:\n{certificate}"
        )
    }

    /// The name of the user: that of a worker, or [`subjects::BOT`].
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The options of a connection over TLS that is never given up. They are valid as long as the
    /// credentials exist.
    pub(super) fn options(&self) -> ConnectOptions {
        ConnectOptions::with_nkey(self.seed.clone())
            .name(format!("npubbot {}", self.user))
            .require_tls(true)
            .add_root_certificates(self.certificate.path().to_owned())
            .custom_inbox_prefix(subjects::inbox(&self.user))
            .connection_timeout(CONNECT)
            .ping_interval(PING)
            .max_reconnects(None)
            .ignore_discovered_servers()
            .reconnect_delay_callback(|attempts| {
                Duration::from_millis(100).saturating_mul(attempts.min(100) as u32).min(LONGEST_PAUSE)
            })
    }
}

/// Whether an attempt to connect failed because the server does not know the user.
pub(super) fn is_refusal(event: &Event) -> bool {
    // The library passes on only the text.
    let refusal = ConnectErrorKind::AuthorizationViolation.to_string();
    matches!(event, Event::ClientError(ClientError::Other(text)) if *text == refusal)
}

/// Whether the server has another certificate than that of the credentials.
pub(super) fn is_other_server(error: &ConnectError) -> bool {
    // The library reports a failed handshake as an I/O error.
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let tls = io.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_another_certificate_is_told_from_one_that_is_away() {
        let tls = |error| ConnectError::from(io::Error::new(io::ErrorKind::InvalidData, error));
        assert!(is_other_server(&tls(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer))));
        assert!(!is_other_server(&tls(rustls::Error::HandshakeNotComplete)));
        assert!(!is_other_server(&ConnectError::from(io::Error::from(io::ErrorKind::ConnectionRefused))));
        let away = Event::ClientError(ClientError::Other(ConnectErrorKind::Io.to_string()));
        assert!(!is_refusal(&away) && !is_refusal(&Event::Disconnected));
    }

    #[test]
    fn a_file_survives_and_one_with_a_part_missing_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ann.creds");
        let key = nkeys::KeyPair::new_from_raw(nkeys::KeyPairType::User, [7; 32]).unwrap();
        let seed = key.seed().unwrap();
        let good = Credentials::text("ann", &seed, "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n");
        fs::write(&file, &good).unwrap();
        let read = Credentials::read(&file).unwrap();
        assert_eq!((read.user(), read.seed.as_str()), ("ann", seed.as_str()));
        let certificate = fs::read_to_string(read.certificate.path()).unwrap();
        assert!(certificate.starts_with(CERTIFICATE_BEGINS) && !certificate.contains(&seed));
        for (part, named) in [(USER, "the name"), (SEED_BEGINS, "the seed"), (CERTIFICATE_BEGINS, "certificate")] {
            fs::write(&file, good.replace(part, "")).unwrap();
            let error = Credentials::read(&file).map(drop).unwrap_err().to_string();
            assert!(error.contains(named) && !error.contains(&seed), "{error}");
        }
        fs::write(&file, good.replace(&seed, &seed.replace('A', "B"))).unwrap();
        assert!(Credentials::read(&file).map(drop).unwrap_err().to_string().contains("a valid seed"));
        fs::write(&file, vec![b'x'; LARGEST as usize + 1]).unwrap();
        assert!(Credentials::read(&file).is_err());
        assert!(Credentials::read(&folder.path().join("none")).is_err());
    }
}
