//! Which addresses are public, and which belong to the operator's own network: askers name relays, and must not make the
//! bot knock at what only the operator can reach.

use nostr_sdk::RelayUrl;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names that are never public.
const INSIDE: [&str; 5] = [".local", ".localhost", ".internal", ".lan", ".home.arpa"];

/// Whether a relay lies within the operator's own network as far as its address says. Where a name leads is seen only when
/// it is dialled.
pub(in crate::nostr) fn is_private(url: &RelayUrl) -> bool {
    let Some(host) = url.host() else { return true };
    let host = host.to_string();
    // A name may end with the root's dot.
    let bare = host.trim_matches(['[', ']']).trim_end_matches('.');
    match bare.parse() {
        Ok(ip) => !is_public(ip),
        Err(_) => !bare.contains('.') || INSIDE.iter().any(|end| bare.ends_with(end)),
    }
}

/// Whether an address can be reached by everybody.
pub(in crate::nostr) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => match within(ip) {
            Some(ip) => is_public_v4(ip),
            // 2000::/3 is all there is; of it Teredo's 2001::/32 and the documents' 2001:db8::/32 lead elsewhere.
            None => {
                let [first, second, ..] = ip.segments();
                first & 0xe000 == 0x2000 && !(first == 0x2001 && matches!(second, 0 | 0xdb8))
            }
        },
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let inside = ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_documentation()
        || matches!(
            ip.octets(),
            // This network; shared by a provider's customers (RFC 6598); protocols; measurements (RFC 2544); several at
            // once, reserved, and all.
            [0, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] | [224..=255, ..]
        );
    !inside
}

/// The IPv4 address that an IPv6 address stands for: mapped, translated (RFC 6052), or through a tunnel (6to4).
fn within(ip: Ipv6Addr) -> Option<Ipv4Addr> {
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
    fn addresses_within_the_operators_network_are_known() {
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
    fn no_other_spelling_leads_into_the_operators_network() {
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
        // What stands for a public address is public: a network without IPv4 knows no other way.
        for url in ["ws://[64:ff9b::808:808]", "ws://[2002:808:808::1]", "ws://100.128.0.1", "ws://172.32.0.1"] {
            assert!(!private(url), "{url}");
        }
    }
}
