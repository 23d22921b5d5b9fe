//! The host of a relay: the unit of the limits on external relays.

use super::address::{is_private, is_public};
use super::proxy::is_onion;
use nostr_sdk::{RelayUrl, Url};
use std::net::{IpAddr, Ipv6Addr};

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
        let kept: Vec<&str> = name.rsplitn(labels + 1, '.').take(labels).collect();
        Host(format!("domain {}", kept.join(".")))
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
