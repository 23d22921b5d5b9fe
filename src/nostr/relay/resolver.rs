//! Resolves the hosts of external relays.
//!
//! A lookup occupies a thread until it ends, and the domain's name server decides how long that
//! takes. So lookups are limited, in total and per domain. Some are reserved for relays that have
//! answered before and for askers with a job.

use hashlink::LruCache;
use nostr_sdk::Url;
use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most lookups at a time, besides the preferred ones.
const ORDINARY: usize = 48;
/// Further lookups at a time, for relays that have answered before and askers with a job.
const PREFERRED: usize = 16;
/// The most lookups at a time of names that end in the same two labels.
const PER_DOMAIN: usize = 4;
/// The longest time that a lookup waits for others of its domain.
const WAIT: Duration = Duration::from_secs(1);
/// Pause between two requests for a turn.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// Number of names whose addresses are remembered.
const REMEMBERED: usize = 10_000;
/// Time for which addresses are remembered, so that the dialled addresses are the checked ones.
const FRESH_FOR: Duration = Duration::from_secs(60);
/// Number of addresses remembered for one name.
const ADDRESSES: usize = 4;

/// Looks up the addresses of a host name.
type LookUp = dyn Fn(&str) -> Result<Vec<IpAddr>> + Send + Sync;

/// Resolves host names and remembers them for a minute. Cheap to clone; clones share everything.
#[derive(Clone)]
pub(super) struct Resolver {
    shared: Arc<Shared>,
}

struct Shared {
    look_up: Box<LookUp>,
    ordinary: Arc<Semaphore>,
    preferred: Arc<Semaphore>,
    state: Mutex<State>,
}

struct State {
    known: LruCache<String, (Vec<IpAddr>, Instant)>,
    /// Lookups in progress, by the last two labels of the name.
    under_way: HashMap<String, usize>,
}

/// The place of a lookup in progress. It is given back when the lookup ends, even if nobody waits
/// for the result any more.
struct Turn {
    shared: Arc<Shared>,
    domain: String,
    _permit: OwnedSemaphorePermit,
}

impl Default for Resolver {
    /// Asks the operating system.
    fn default() -> Resolver {
        Resolver::new(|name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect()))
    }
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resolver")
    }
}

impl Resolver {
    /// Resolves with `look_up`, which may block.
    pub fn new(look_up: impl Fn(&str) -> Result<Vec<IpAddr>> + Send + Sync + 'static) -> Resolver {
        let state = State { known: LruCache::new(REMEMBERED), under_way: HashMap::new() };
        let semaphore = |lookups| Arc::new(Semaphore::new(lookups));
        let (ordinary, preferred) = (semaphore(ORDINARY), semaphore(PREFERRED));
        Resolver {
            shared: Arc::new(Shared { look_up: Box::new(look_up), ordinary, preferred, state: Mutex::new(state) }),
        }
    }

    /// The addresses of a URL's host, at most four. An address needs no lookup.
    ///
    /// `preferred`: whether the relay has answered before, or its visitor is urgent.
    ///
    /// Errors: [`ErrorKind::InvalidInput`] if the URL has no host. [`ErrorKind::WouldBlock`] if too
    /// many lookups of the host's domain are still in progress after a second. Otherwise the error
    /// of the lookup.
    pub async fn resolve(&self, url: &Url, preferred: bool) -> Result<Vec<IpAddr>> {
        let host = url.host_str().ok_or_else(|| Error::new(ErrorKind::InvalidInput, "no host"))?;
        let name = host.trim_matches(['[', ']']).to_ascii_lowercase();
        if let Ok(address) = name.parse() {
            return Ok(vec![address]);
        }
        let deadline = Instant::now() + WAIT;
        let turn = loop {
            if let Some(addresses) = self.remembered(&name) {
                return Ok(addresses);
            }
            match self.turn(&name, preferred).await {
                // Another task may be looking up the same name.
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline => {
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                turn => break turn?,
            }
        };
        let look_up = move || {
            let mut addresses = (turn.shared.look_up)(&name)?;
            addresses.truncate(ADDRESSES);
            turn.shared.state().known.insert(name, (addresses.clone(), Instant::now()));
            Ok(addresses)
        };
        tokio::task::spawn_blocking(look_up).await.map_err(Error::other)?
    }

    fn remembered(&self, name: &str) -> Option<Vec<IpAddr>> {
        let mut state = self.shared.state();
        let (addresses, found_at) = state.known.get(name)?;
        (found_at.elapsed() < FRESH_FOR).then(|| addresses.clone())
    }

    /// Waits until the lookup of a name may start.
    ///
    /// Errors: [`ErrorKind::WouldBlock`] while too many lookups of its domain are in progress.
    async fn turn(&self, name: &str, preferred: bool) -> Result<Turn> {
        let full = || Error::new(ErrorKind::WouldBlock, "too many names of this domain are looked up");
        let domain = domain(name);
        let is_full = || self.shared.state().under_way.get(&domain).is_some_and(|&lookups| lookups >= PER_DOMAIN);
        if is_full() {
            return Err(full());
        }
        let ordinary = Arc::clone(&self.shared.ordinary).acquire_owned();
        let permit = if preferred {
            tokio::select! {
                permit = ordinary => permit,
                permit = Arc::clone(&self.shared.preferred).acquire_owned() => permit,
            }
        } else {
            ordinary.await
        };
        let _permit = permit.map_err(Error::other)?;
        let mut state = self.shared.state();
        let lookups = state.under_way.entry(domain.clone()).or_default();
        if *lookups >= PER_DOMAIN {
            return Err(full());
        }
        *lookups += 1;
        drop(state);
        Ok(Turn { shared: Arc::clone(&self.shared), domain, _permit })
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(lookups) = state.under_way.get_mut(&self.domain) {
            *lookups -= 1;
            if *lookups == 0 {
                state.under_way.remove(&self.domain);
            }
        }
    }
}

/// The last two labels of a name. One owner usually registers all names below them.
fn domain(name: &str) -> String {
    let labels: Vec<&str> = name.trim_end_matches('.').rsplitn(3, '.').take(2).collect();
    labels.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use tokio::task::JoinSet;

    fn url(host: &str) -> Url {
        Url::parse(&format!("wss://{host}/path")).unwrap()
    }

    #[tokio::test]
    async fn a_name_is_looked_up_once_a_minute_and_an_address_never() {
        let lookups = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lookups);
        let resolver = Resolver::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok((1..=9).map(|last| IpAddr::from([192, 0, 2, last])).collect())
        });
        for host in ["relay.example", "Relay.example", "192.0.2.7", "[2001:db8::1]"] {
            let addresses = resolver.resolve(&url(host), false).await.unwrap();
            assert!(!addresses.is_empty() && addresses.len() <= ADDRESSES, "{host}: {addresses:?}");
        }
        assert_eq!(lookups.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn slow_name_servers_leave_lookups_for_other_domains_and_for_those_who_come_first() {
        // An attacker's names take until the end of the test; others resolve at once.
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let resolver = Resolver::new(move |name| {
            while name.contains("evil") && !ends.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(vec![IpAddr::from([192, 0, 2, 1])])
        });
        let mut lookups = JoinSet::new();
        let mut begin = |host: String| {
            let resolver = resolver.clone();
            lookups.spawn(async move { resolver.resolve(&url(&host), false).await.map(|_| ()) });
        };
        let under_way = async |wanted: usize| {
            while resolver.shared.ordinary.available_permits() > ORDINARY - wanted {
                tokio::task::yield_now().await;
            }
        };
        (0..PER_DOMAIN).for_each(|number| begin(format!("{number}.evil.example")));
        under_way(PER_DOMAIN).await;
        let refused = resolver.resolve(&url("more.evil.example"), false).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
        resolver.resolve(&url("relay.honest.org"), false).await.expect("another domain");
        // With many domains, only the lookups for preferred relays and askers are left.
        (PER_DOMAIN..ORDINARY).for_each(|number| begin(format!("relay.evil{number}.example")));
        under_way(ORDINARY).await;
        resolver.resolve(&url("relay.known.org"), true).await.expect("a relay that answered before");
        let new = url("relay.new.org");
        let newcomer = tokio::time::timeout(Duration::from_millis(100), resolver.resolve(&new, false)).await;
        assert!(newcomer.is_err(), "it waits for its turn");
        is_over.store(true, Ordering::SeqCst);
        while let Some(ended) = lookups.join_next().await {
            ended.unwrap().unwrap();
        }
        resolver.resolve(&new, false).await.expect("turns are given back");
    }
}
