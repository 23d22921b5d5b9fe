//! The host of a relay: the unit of the limits on external relays.
//!
//! Resolves the hosts of external relays.
//!
//! A lookup occupies a thread until it ends, and the domain's name server decides how long that
//! takes. So lookups are limited, in total and per domain. Some are reserved for relays that have
//! answered before and for askers with a job.

use super::connections::AskAgain;
use super::transport::is_onion;
use hashlink::LruCache;
use nostr_sdk::{RelayUrl, Url};
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A relay's host, the unit of the limits. URLs that differ only in the path are the same host. So
/// are those that differ in the port, except in a private network.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Host(String);

impl Host {
    /// The host of a URL. In a private network the port is part of it, because relays share
    /// addresses there.
    pub fn from_url(url: &RelayUrl) -> Host {
        let private = is_private(url);
        let url = Url::from(url.clone());
        let name = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        Host(match url.port_or_known_default().filter(|_| private) {
            Some(port) => format!("{name}:{port}"),
            None => name,
        })
    }

    /// The host at the address that a URL's name resolves to. An IPv6 network of 64 bits is one
    /// host, because one customer gets all of it.
    pub fn at(address: IpAddr, url: &RelayUrl) -> Host {
        let network = match address {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        };
        Host(match Url::from(url.clone()).port_or_known_default().filter(|_| !is_public(address)) {
            Some(port) => format!("{network}:{port}"),
            None => network.to_string(),
        })
    }
}

impl Host {
    /// One host for the whole domain of a URL's name, because names below a domain cost nothing.
    /// The domain is the last two labels. All onion services are one host for the same reason.
    pub fn of_domain(url: &RelayUrl) -> Host {
        let Host(name) = Host::from_url(url);
        let labels = if is_onion(&name) { 1 } else { 2 };
        // An address is its own domain.
        if name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() || name.contains(':') {
            return Host(name);
        }
        Host(format!("domain {}", last_labels(&name, labels)))
    }
}

/// The two hosts of a relay: the one its URL names, and the one whose limits apply.
///
/// A name costs an attacker nothing, so a host that has never answered is limited by its address.
/// One that has answered is limited by its name: it may share the address with an attacker, as
/// behind a large proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hosts {
    /// The host that the URL names.
    pub named: Host,
    /// The host to which the limits apply: by its address, or by its name if it has answered.
    pub limited: Host,
}

impl Hosts {
    /// A host that is limited by its name.
    pub fn by_name(url: &RelayUrl) -> Hosts {
        let named = Host::from_url(url);
        Hosts { limited: named.clone(), named }
    }
}

/// Domains that are never public.
const PRIVATE_DOMAINS: [&str; 5] = [".local", ".localhost", ".internal", ".lan", ".home.arpa"];

/// A port for asking the system how it would reach an address (the discard protocol's).
const UNUSED_PORT: u16 = 9;

/// Whether a relay's URL names a host in the operator's own network. A domain counts by its name
/// here; its addresses are checked when it is dialled.
pub(super) fn is_private(url: &RelayUrl) -> bool {
    let Some(host) = url.host() else { return true };
    let host = host.to_string();
    // A fully qualified domain may end with a dot.
    let bare = host.trim_matches(['[', ']']).trim_end_matches('.');
    match bare.parse() {
        Ok(ip) => !is_public(ip),
        Err(_) => !bare.contains('.') || PRIVATE_DOMAINS.iter().any(|end| bare.ends_with(end)),
    }
}

/// Whether an external relay may be dialled at this port: 80, 443, and those from 1024 up.
pub(super) fn has_allowed_port(port: u16) -> bool {
    matches!(port, 80 | 443 | 1024..)
}

/// Whether an address is one of this machine's own: the system would send to it from the same
/// address. Nothing is sent.
pub(super) fn is_own_address(ip: IpAddr) -> bool {
    let any = if ip.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((ip, UNUSED_PORT))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == ip)
}

/// Whether an external relay may be dialled at an address. `is_own`: [`is_own_address`].
pub(super) fn may_dial(ip: IpAddr, is_own: impl Fn(IpAddr) -> bool) -> bool {
    is_public(ip) && !is_own(ip)
}

/// Whether an address is globally reachable.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => match embedded_v4(ip) {
            Some(ip) => is_public_v4(ip),
            // Global addresses are 2000::/3, without Teredo (2001::/32) and documentation
            // (2001:db8::/32).
            None => {
                let [first, second, ..] = ip.segments();
                first & 0xe000 == 0x2000 && !(first == 0x2001 && matches!(second, 0 | 0xdb8))
            }
        },
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let private = ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation()
        || matches!(
            ip.octets(),
            // This network; carrier-grade NAT (RFC 6598); protocol assignments; benchmarks (RFC
            // 2544); multicast, reserved, and broadcast.
            [0, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] | [224..=255, ..]
        );
    !private
}

/// The IPv4 address embedded in an IPv6 address: mapped, translated (RFC 6052), or tunnelled
/// (6to4).
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match ip.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        _ => None,
    }
}

/// The most lookups at a time, besides the preferred ones.
const ORDINARY_LOOKUPS: usize = 48;
/// Further lookups at a time, for relays that have answered before and askers with a job.
const PREFERRED_LOOKUPS: usize = 16;
/// The most lookups at a time of names that end in the same two labels.
const LOOKUPS_PER_DOMAIN: usize = 4;
/// Number of names whose addresses are remembered.
const REMEMBERED_NAMES: usize = 10_000;
/// Time for which addresses are remembered, so that the dialled addresses are the checked ones.
const ADDRESSES_FRESH_FOR: Duration = Duration::from_secs(60);
/// Number of addresses remembered for one name.
const ADDRESSES_PER_NAME: usize = 4;

/// Looks up the addresses of a host name.
type ResolveName = dyn Fn(&str) -> Result<Vec<IpAddr>> + Send + Sync;

/// Resolves host names and remembers them for a minute. Cheap to clone; clones share everything.
#[derive(Clone)]
pub(super) struct Resolver {
    look_up: Arc<ResolveName>,
    ordinary: Arc<Semaphore>,
    preferred: Arc<Semaphore>,
    state: Arc<Mutex<LookupState>>,
}

struct LookupState {
    known: LruCache<String, (Vec<IpAddr>, Instant)>,
    /// The places of names that end in the same two labels.
    domains: LruCache<String, Arc<Semaphore>>,
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
        let (known, domains) = (LruCache::new(REMEMBERED_NAMES), LruCache::new(REMEMBERED_NAMES));
        Resolver {
            look_up: Arc::new(look_up),
            ordinary: Arc::new(Semaphore::new(ORDINARY_LOOKUPS)),
            preferred: Arc::new(Semaphore::new(PREFERRED_LOOKUPS)),
            state: Arc::new(Mutex::new(LookupState { known, domains })),
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
        let asking = AskAgain::new();
        let places = loop {
            // Another task may have looked up the same name.
            if let Some(addresses) = self.remembered(&name) {
                return Ok(addresses);
            }
            match self.places(&name, preferred).await {
                Some(places) => break places,
                None if asking.pause().await => {}
                None => return Err(Error::new(ErrorKind::WouldBlock, "too many names of this domain are looked up")),
            }
        };
        let this = self.clone();
        let look_up = move || {
            // Given back when the lookup ends, even if nobody waits for its result any more.
            let _places = places;
            let mut addresses = (this.look_up)(&name)?;
            addresses.truncate(ADDRESSES_PER_NAME);
            this.state().known.insert(name, (addresses.clone(), Instant::now()));
            Ok(addresses)
        };
        tokio::task::spawn_blocking(look_up).await.map_err(Error::other)?
    }

    fn remembered(&self, name: &str) -> Option<Vec<IpAddr>> {
        let mut state = self.state();
        let (addresses, found_at) = state.known.get(name)?;
        (found_at.elapsed() < ADDRESSES_FRESH_FOR).then(|| addresses.clone())
    }

    /// Waits until the lookup of a name may start: for a place among all, and one of its domain.
    /// `None` while too many lookups of its domain are in progress.
    async fn places(&self, name: &str, preferred: bool) -> Option<[OwnedSemaphorePermit; 2]> {
        let new = || Arc::new(Semaphore::new(LOOKUPS_PER_DOMAIN));
        let of_domain = Arc::clone(self.state().domains.entry(last_labels(name, 2)).or_insert_with(new));
        if of_domain.available_permits() == 0 {
            return None;
        }
        let ordinary = Arc::clone(&self.ordinary).acquire_owned();
        let further = Arc::clone(&self.preferred).acquire_owned();
        let of_all = tokio::select! {
            permit = ordinary => permit,
            permit = further, if preferred => permit,
        };
        Some([of_domain.try_acquire_owned().ok()?, of_all.ok()?])
    }

    fn state(&self) -> MutexGuard<'_, LookupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last labels of a name. One owner usually registers all names below two labels.
fn last_labels(name: &str, count: usize) -> String {
    let labels: Vec<&str> = name.trim_end_matches('.').rsplitn(count + 1, '.').take(count).collect();
    labels.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use tokio::task::JoinSet;

    #[test]
    fn a_host_is_its_name_and_in_a_private_network_its_port() {
        let host = |text: &str| Host::from_url(&RelayUrl::parse(text).unwrap());
        assert_eq!(host("wss://Relay.example/1"), host("ws://relay.example.:8080/2"));
        assert_ne!(host("wss://relay.example"), host("wss://other.example"));
        assert_ne!(host("ws://127.0.0.1:8080"), host("ws://127.0.0.1:8081"));
    }

    #[test]
    fn names_that_cost_nothing_are_one_host_where_no_address_is_known() {
        let domain = |text: &str| Host::of_domain(&RelayUrl::parse(text).unwrap());
        assert_eq!(domain("wss://a.evil.example"), domain("wss://b.c.Evil.example:8080/x"));
        assert_ne!(domain("wss://evil.example"), domain("wss://good.example"));
        let onion = |first: char| format!("ws://{}.onion", first.to_string().repeat(56));
        assert_eq!(domain(&onion('a')), domain(&onion('b')));
        assert_ne!(domain("ws://8.8.8.8"), domain("ws://9.9.8.8"));
    }

    #[test]
    fn an_address_is_one_host_whatever_names_it() {
        let at = |address: &str, url: &str| Host::at(address.parse().unwrap(), &RelayUrl::parse(url).unwrap());
        assert_eq!(at("8.8.8.8", "wss://a.evil.example"), at("8.8.8.8", "ws://b.evil.example:8080"));
        assert_ne!(at("8.8.8.8", "wss://a.example"), at("8.8.4.4", "wss://a.example"));
        // One network of 64 bits, and another.
        assert_eq!(at("2600:1:2:3::1", "wss://a.example"), at("2600:1:2:3:4:5:6:7", "wss://b.example"));
        assert_ne!(at("2600:1:2:3::1", "wss://a.example"), at("2600:1:2:4::1", "wss://a.example"));
        // In a private network the port belongs to it.
        assert_ne!(at("127.0.0.1", "ws://a.example:8080"), at("127.0.0.1", "ws://a.example:8081"));
    }

    fn private(url: &str) -> bool {
        is_private(&RelayUrl::parse(url).unwrap())
    }

    #[test]
    fn the_addresses_of_this_machine_are_not_dialled_even_if_they_are_public() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(is_own_address(ip("127.0.0.1")) && !is_own_address(ip("192.0.2.1")));
        let own = ip("8.8.8.8");
        for (address, is_dialled) in [("8.8.8.8", false), ("8.8.4.4", true), ("10.0.0.1", false)] {
            assert_eq!(may_dial(ip(address), |ip| ip == own), is_dialled, "{address}");
        }
    }

    #[test]
    fn other_spellings_of_private_addresses_are_private() {
        for host in [
            "127.0.0.1:80 localhost 10.1.2.3 192.168.0.1 [::1]:7 169.254.1.1 [::ffff:127.0.0.1] printer.local nas",
            "[fd00::1] localhost. printer.local. nas. 127.0.0.1. 2130706433 0.0.0.0 0.1.2.3 100.64.0.1 100.127.1.1",
            "255.255.255.255 [64:ff9b::7f00:1] [2002:a00:1::] [::7f00:1] [fe80::1] [::] [ff02::1] 224.0.0.1",
            "240.0.0.1 198.18.0.1 router.home.arpa",
            // Each of these has two different 16-bit words of IPv4, so that no word can stand for the
            // other.
            "[2001:0:4136:e378:8000:63bf:3fff:fdd2] [2001:db8::1] [::ffff:192.168.1.1] [64:ff9b::c0a8:101]",
            "[2002:c0a8:101::1] [::c0a8:101] [4000::1]",
        ]
        .join(" ")
        .split(' ')
        {
            assert!(private(&format!("ws://{host}")), "{host}");
        }
        // An embedded public address counts as public: networks without IPv4 use such addresses.
        // Those of 168.192.1.1 and 1.1.192.168 are public, unlike 192.168.1.1.
        for host in [
            "relay.example.com relay.example.com. 8.8.8.8 [2606:4700::1] [64:ff9b::808:808] [2002:808:808::1]",
            "100.128.0.1 172.32.0.1 [::ffff:8.8.4.4] [64:ff9b::808:404] [2001:4860:4860::8888] [2002:101:c0a8::1]",
        ]
        .join(" ")
        .split(' ')
        {
            assert!(!private(&format!("wss://{host}")), "{host}");
        }
    }

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
            assert!(!addresses.is_empty() && addresses.len() <= ADDRESSES_PER_NAME, "{host}: {addresses:?}");
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
            while resolver.ordinary.available_permits() > ORDINARY_LOOKUPS - wanted {
                tokio::task::yield_now().await;
            }
        };
        (0..LOOKUPS_PER_DOMAIN).for_each(|number| begin(format!("{number}.evil.example")));
        under_way(LOOKUPS_PER_DOMAIN).await;
        let refused = resolver.resolve(&url("more.evil.example"), false).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::WouldBlock);
        resolver.resolve(&url("relay.honest.org"), false).await.expect("another domain");
        // With many domains, only the lookups for preferred relays and askers are left.
        (LOOKUPS_PER_DOMAIN..ORDINARY_LOOKUPS).for_each(|number| begin(format!("relay.evil{number}.example")));
        under_way(ORDINARY_LOOKUPS).await;
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
