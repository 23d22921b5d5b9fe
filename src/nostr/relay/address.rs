//! Public and private addresses. Askers list relays, and must not make the bot connect to hosts in
//! the operator's own network.

use nostr_sdk::RelayUrl;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Domains that are never public.
const PRIVATE_DOMAINS: [&str; 5] = [".local", ".localhost", ".internal", ".lan", ".home.arpa"];

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

#[cfg(test)]
mod tests {
    use super::*;

    fn private(url: &str) -> bool {
        is_private(&RelayUrl::parse(url).unwrap())
    }

    #[test]
    fn addresses_in_the_operators_network_are_private() {
        for url in ["ws://127.0.0.1:80", "ws://localhost", "ws://10.1.2.3", "wss://192.168.0.1", "ws://[::1]:7"] {
            assert!(private(url), "{url}");
        }
        for url in ["ws://169.254.1.1", "ws://[::ffff:127.0.0.1]", "ws://printer.local", "ws://[fd00::1]", "ws://nas"] {
            assert!(private(url), "{url}");
        }
        for url in ["wss://relay.example.com", "wss://8.8.8.8", "ws://[2606:4700::1]", "ws://relay.example.com."] {
            assert!(!private(url), "{url}");
        }
    }

    #[test]
    fn other_spellings_of_private_addresses_are_private() {
        for url in ["ws://localhost.", "ws://printer.local.", "ws://nas.", "ws://127.0.0.1.", "ws://2130706433"] {
            assert!(private(url), "{url}");
        }
        for url in ["ws://0.0.0.0", "ws://0.1.2.3", "ws://100.64.0.1", "ws://100.127.1.1", "ws://255.255.255.255"] {
            assert!(private(url), "{url}");
        }
        for url in ["ws://[64:ff9b::7f00:1]", "ws://[2002:a00:1::]", "ws://[::7f00:1]", "ws://[fe80::1]", "ws://[::]"] {
            assert!(private(url), "{url}");
        }
        for url in ["ws://[ff02::1]", "ws://224.0.0.1", "ws://240.0.0.1", "ws://198.18.0.1", "ws://router.home.arpa"] {
            assert!(private(url), "{url}");
        }
        // An embedded public address counts as public: networks without IPv4 use such addresses.
        for url in ["ws://[64:ff9b::808:808]", "ws://[2002:808:808::1]", "ws://100.128.0.1", "ws://172.32.0.1"] {
            assert!(!private(url), "{url}");
        }
    }
}
