//! Relays of other authors on loopback: as separate processes, and that of nostr-relay-builder.

use super::relay::free_port;
use super::until;
use nostr_relay_builder::prelude::{LocalRelay, RateLimit, RelayBuilder, RelayBuilderNip42, RelayBuilderNip42Mode};
use nostr_sdk::RelayUrl;
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The folder in which `tests/interop/install.sh` puts clients and relays.
pub fn installed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/interop")
}

/// The relay of `npubbot demo`, in this process. With `auth`, readers and writers must authenticate.
pub async fn embedded_relay(auth: bool) -> LocalRelay {
    // By default a client may write once per second, but many askers share a client in these tests.
    let mut builder = RelayBuilder::default().rate_limit(RateLimit { max_reqs: 5_000, notes_per_minute: 1_000_000 });
    if auth {
        builder = builder.nip42(RelayBuilderNip42 { mode: RelayBuilderNip42Mode::Both });
    }
    let relay = LocalRelay::new(builder);
    relay.run().await.unwrap();
    relay
}

/// A relay as a process. Killed when dropped.
pub struct ForeignRelay {
    child: Child,
    _folder: TempDir,
    port: u16,
}

impl ForeignRelay {
    /// nostr-relay 1.14, in Python. Its AUTH needs roles that the operator assigns.
    pub async fn python() -> ForeignRelay {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let path = |name: &str| folder.path().join(name).display().to_string();
        let config = format!(
            "storage:\n  sqlalchemy.url: sqlite+aiosqlite:///{}\n  num_concurrent_reqs: 10\n  num_concurrent_adds: 2\n  \
             validators: [nostr_relay.validators.is_signed]\ngunicorn:\n  bind: 127.0.0.1:{port}\n  workers: 1\n  loglevel: warning\npurple:\n  \
             host: 127.0.0.1\n  port: {port}\n  workers: 1\n  disable_compression: true\nmax_event_size: 131072\n\
             message_timeout: 1800\nsubscription_limit: 64\n",
            path("nostr.sqlite3")
        );
        fs::write(path("relay.yaml"), config).unwrap();
        let program = installed().join("venv/bin/nostr-relay");
        ForeignRelay::start(&program, &["-c", &path("relay.yaml"), "serve"], folder, port).await
    }

    /// Starts nostr-rs-relay 0.8.12 from `program`. With `auth`, readers and writers must authenticate.
    pub async fn rust(program: &Path, auth: bool) -> ForeignRelay {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let config = format!(
            "[network]\naddress = \"127.0.0.1\"\nport = {port}\n[database]\ndata_directory = \"{}\"\n[authorization]\n\
             nip42_auth = {auth}\nnip42_dms = {auth}\n[options]\nreject_future_seconds = 1800\n",
            folder.path().display(),
        );
        let file = folder.path().join("config.toml");
        fs::write(&file, config).unwrap();
        ForeignRelay::start(program, &["--config", file.to_str().unwrap()], folder, port).await
    }

    async fn start(program: &Path, arguments: &[&str], folder: TempDir, port: u16) -> ForeignRelay {
        let log = File::create(folder.path().join("relay.log")).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let relay = ForeignRelay { child, _folder: folder, port };
        until("the relay listens", || async { TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(()) }).await;
        relay
    }

    pub fn url(&self) -> RelayUrl {
        RelayUrl::parse(&format!("ws://127.0.0.1:{}", self.port)).unwrap()
    }
}

impl Drop for ForeignRelay {
    fn drop(&mut self) {
        // Its workers are processes of their own; SIGTERM ends them too.
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}
