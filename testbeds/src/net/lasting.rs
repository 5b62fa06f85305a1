//! Settings of an interface that are lost when IPv6 or ARP is switched off there, and that the kernel does not restore.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures::{Stream, TryStreamExt};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{
    AddressAttribute, AddressFlags, AddressMessage, AddressProtocol,
};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol};

use super::existing::Found;
use super::{NetError, Netlink};

/// A setting of an interface that the kernel would not restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lasting {
    /// An IP address that this machine has on the interface.
    Address(IpAddr),
    /// A configured IPv6 link-local address, and its prefix length.
    LinkLocal(Ipv6Addr, u8),
    /// A route through the interface: destination and prefix length.
    Route(IpAddr, u8),
    /// A neighbor entry with a static hardware address.
    Neighbour(IpAddr),
    /// A neighbor for which this machine answers ARP or neighbor solicitations (proxy).
    Proxy(IpAddr),
}

/// Text for users, in the notation of `ip`.
impl fmt::Display for Lasting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lasting::Address(address) => write!(f, "address {address}"),
            Lasting::LinkLocal(address, prefix) => write!(f, "address {address}/{prefix}"),
            Lasting::Route(to, prefix) => write!(f, "route {to}/{prefix}"),
            Lasting::Neighbour(address) => write!(f, "neighbour {address}"),
            Lasting::Proxy(address) => write!(f, "neighbour proxy {address}"),
        }
    }
}

/// How the kernel derives an interface's IPv6 link-local address (`addr_gen_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Makes {
    FromMac,
    None,
    Otherwise,
}

impl Netlink {
    /// The first setting of the interface `name` that the kernel would not restore; `None`: there is none.
    pub fn lasting(&self, name: &str, found: &Found) -> Result<Option<Lasting>, NetError> {
        let index = found.index;
        let makes = self.makes(name);
        let addresses: Vec<AddressMessage> =
            self.request("cannot ask the addresses of", name, |handle| {
                let addresses = handle.address().get().set_link_index_filter(index);
                addresses.execute().try_collect()
            })?;
        let mut lasting = addresses
            .iter()
            .filter_map(|address| of_address(address, makes, &found.address));
        if let Some(address) = lasting.next() {
            return Ok(Some(address));
        }
        for family in [AddressFamily::Inet6, AddressFamily::Inet] {
            let route = self.request("cannot ask the routes of", name, |handle| async move {
                let mut message = RouteMessage::default();
                message.header.address_family = family;
                let routes = handle.route().get(message).execute();
                first(routes, |route| of_route(&route, index)).await
            })?;
            if route.is_some() {
                return Ok(route);
            }
        }
        for proxies in [false, true] {
            let neighbour =
                self.request("cannot ask the neighbours of", name, |handle| async move {
                    let request = handle.neighbours().get();
                    let request = if proxies { request.proxies() } else { request };
                    let of = |neighbour| of_neighbour(&neighbour, index, proxies);
                    first(request.execute(), of).await
                })?;
            if neighbour.is_some() {
                return Ok(neighbour);
            }
        }
        Ok(None)
    }

    fn makes(&self, name: &str) -> Makes {
        let mode = format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode");
        match self.namespace.run(|| fs::read_to_string(mode)) {
            Ok(mode) if mode.trim() == "1" => Makes::None,
            Ok(mode) if mode.trim() != "0" => Makes::Otherwise,
            // The default; without IPv6 it makes no difference.
            _ => Makes::FromMac,
        }
    }
}

/// First setting that `of` returns for a message of a dump. Reads the whole dump and stores no messages: tables may be long.
async fn first<M>(
    messages: impl Stream<Item = Result<M, rtnetlink::Error>>,
    mut of: impl FnMut(M) -> Option<Lasting>,
) -> Result<Option<Lasting>, rtnetlink::Error> {
    let mut messages = std::pin::pin!(messages);
    let mut found = None;
    while let Some(message) = messages.try_next().await? {
        found = found.or_else(|| of(message));
    }
    Ok(found)
}

fn of_address(message: &AddressMessage, makes: Makes, mac: &[u8]) -> Option<Lasting> {
    let prefix = message.header.prefix_len;
    let (mut address, mut protocol) = (None, None);
    let mut flags = AddressFlags::empty();
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Address(of) => address = Some(*of),
            AddressAttribute::Protocol(of) => protocol = Some(*of),
            AddressAttribute::Flags(of) => flags = *of,
            _ => {}
        }
    }
    match address? {
        IpAddr::V6(address) if address.is_unicast_link_local() => {
            // Kernels before 5.18 do not report an address's origin, but there is only one that they would create.
            let is_kernels = prefix == 64
                && match makes {
                    Makes::None => false,
                    _ if protocol == Some(AddressProtocol::LinkLocal) => true,
                    Makes::FromMac => Some(address) == link_local(mac),
                    Makes::Otherwise => flags.contains(AddressFlags::StablePrivacy),
                };
            (!is_kernels).then_some(Lasting::LinkLocal(address, prefix))
        }
        address => Some(Lasting::Address(address)),
    }
}

/// The link-local address that the kernel derives from a MAC address (RFC 4291, appendix A).
fn link_local(mac: &[u8]) -> Option<Ipv6Addr> {
    let [a, b, c, d, e, f] = <[u8; 6]>::try_from(mac).ok()?;
    let word = |high, low| u16::from_be_bytes([high, low]);
    Some(Ipv6Addr::new(
        0xfe80,
        0,
        0,
        0,
        word(a ^ 2, b),
        word(c, 0xff),
        word(0xfe, d),
        word(e, f),
    ))
}

fn of_route(route: &RouteMessage, index: u32) -> Option<Lasting> {
    // Routes that come with an address, and routes that a router announces again.
    let comes_by_itself = [
        RouteProtocol::Kernel,
        RouteProtocol::Ra,
        RouteProtocol::IcmpRedirect,
    ];
    if comes_by_itself.contains(&route.header.protocol) {
        return None;
    }
    let mut is_here = false;
    let mut to = match route.header.address_family {
        AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        _ => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(by) => is_here |= *by == index,
            RouteAttribute::MultiPath(hops) => {
                is_here |= hops.iter().any(|hop| hop.interface_index == index);
            }
            RouteAttribute::Destination(RouteAddress::Inet(address)) => to = (*address).into(),
            RouteAttribute::Destination(RouteAddress::Inet6(address)) => to = (*address).into(),
            _ => {}
        }
    }
    is_here.then_some(Lasting::Route(to, route.header.destination_prefix_length))
}

fn of_neighbour(neighbour: &NeighbourMessage, index: u32, proxies: bool) -> Option<Lasting> {
    let is_kept = proxies || neighbour.header.state == NeighbourState::Permanent;
    if neighbour.header.ifindex != index || !is_kept {
        return None;
    }
    let address = neighbour
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => {
                Some(IpAddr::V4(*address))
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
                Some(IpAddr::V6(*address))
            }
            _ => None,
        })?;
    Some(match proxies {
        true => Lasting::Proxy(address),
        false => Lasting::Neighbour(address),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [0xee, 0x37, 0xe4, 0xfe, 0xa1, 0xc2];

    fn address(text: &str, attribute: Option<AddressAttribute>) -> AddressMessage {
        let mut message = AddressMessage::default();
        message.header.prefix_len = 64;
        let address = AddressAttribute::Address(text.parse().unwrap());
        message.attributes.push(address);
        message.attributes.extend(attribute);
        message
    }

    /// Also covers kernels that do not report an address's origin.
    #[test]
    fn a_link_local_address_is_the_kernels_if_it_would_make_it() {
        let (own, other) = ("fe80::ec37:e4ff:fefe:a1c2", "fe80::77");
        let told = Some(AddressAttribute::Protocol(AddressProtocol::LinkLocal));
        let stable = Some(AddressAttribute::Flags(AddressFlags::StablePrivacy));
        let is_kernels = [
            (own, None, Makes::FromMac, true),
            (other, None, Makes::FromMac, false),
            (other, told.clone(), Makes::FromMac, true),
            (own, told, Makes::None, false),
            (own, None, Makes::Otherwise, false),
            (other, stable.clone(), Makes::Otherwise, true),
            (other, stable, Makes::FromMac, false),
        ];
        for (text, attribute, makes, expected) in is_kernels {
            let message = address(text, attribute);
            let found = of_address(&message, makes, &MAC);
            assert_eq!(found.is_none(), expected, "{message:?} {makes:?}");
        }
        let mut long = address(own, None);
        long.header.prefix_len = 128;
        assert!(of_address(&long, Makes::FromMac, &MAC).is_some());
    }
}
