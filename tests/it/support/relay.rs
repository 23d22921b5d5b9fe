//! A relay on loopback that keeps its events when it is stopped and started again on the same port.

use nostr_relay_builder::prelude::*;
use std::net::TcpListener;
use std::sync::Arc;

pub struct TestRelay {
    running: LocalRelay,
    events: Arc<MemoryDatabase>,
    port: u16,
    auth: bool,
}

impl TestRelay {
    pub async fn start() -> TestRelay {
        TestRelay::start_with(false, None).await
    }

    /// A relay that requires readers and writers to authenticate (NIP-42).
    pub async fn start_with_auth() -> TestRelay {
        TestRelay::start_with(true, None).await
    }

    /// A relay that keeps only the newest `events` events.
    pub async fn start_forgetful(events: usize) -> TestRelay {
        TestRelay::start_with(false, Some(events)).await
    }

    /// A relay that is away until [`TestRelay::start_again`].
    pub fn away() -> TestRelay {
        let running = LocalRelay::new(RelayBuilder::default());
        let events = Arc::new(MemoryDatabase::with_opts(MemoryDatabaseOptions { events: true, max_events: None }));
        TestRelay { running, events, port: free_port(), auth: false }
    }

    async fn start_with(auth: bool, max_events: Option<usize>) -> TestRelay {
        let events = Arc::new(MemoryDatabase::with_opts(MemoryDatabaseOptions { events: true, max_events }));
        let port = free_port();
        let running = run(&events, port, auth).await;
        TestRelay { running, events, port, auth }
    }

    pub fn url(&self) -> RelayUrl {
        RelayUrl::parse(&format!("ws://127.0.0.1:{}", self.port)).unwrap()
    }

    /// Closes every connection and accepts no more. Returns once none is left.
    pub async fn stop(&self) {
        // A connection that is just handling a message does not notice a shutdown, so it is
        // repeated.
        let is_closed = || async {
            self.running.shutdown();
            (!is_connected(self.port)).then_some(())
        };
        super::until("the relay closes its connections", is_closed).await;
    }

    pub async fn start_again(&mut self) {
        self.running = run(&self.events, self.port, self.auth).await;
    }

    /// The relay's events that match `filter`.
    pub async fn events(&self, filter: Filter) -> Events {
        self.events.query(filter).await.unwrap()
    }

    /// Gift wraps to `receiver`.
    pub async fn wraps_to(&self, receiver: PublicKey) -> Events {
        self.events(Filter::new().kind(Kind::GiftWrap).pubkey(receiver)).await
    }
}

/// Whether somebody is connected to this port of this machine. Always `false` where there is no
/// `/proc`.
fn is_connected(port: u16) -> bool {
    const ESTABLISHED: &str = "01";
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    sockets.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let is_ours = fields.next().is_some_and(|local| local.ends_with(&format!(":{port:04X}")));
        is_ours && fields.nth(1) == Some(ESTABLISHED)
    })
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn run(events: &Arc<MemoryDatabase>, port: u16, auth: bool) -> LocalRelay {
    let address = std::net::IpAddr::from([127, 0, 0, 1]);
    let mut builder =
        RelayBuilder::default().addr(address).port(port).database(Arc::clone(events) as Arc<dyn NostrDatabase>);
    // By default a client may write once per second, but many askers share a client in these tests.
    builder = builder.rate_limit(RateLimit { max_reqs: 5_000, notes_per_minute: 1_000_000 });
    if auth {
        builder = builder.nip42(RelayBuilderNip42 { mode: RelayBuilderNip42Mode::Both });
    }
    let relay = LocalRelay::new(builder);
    // The port of the previous relay may take a moment to become free.
    super::until("the relay's port is free", || async { relay.run().await.ok() }).await;
    relay
}
