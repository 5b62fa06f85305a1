//! Hosts and sockets that several experiments of this test program use.

use std::error::Error;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use testbeds::host::{Host, Namespace};
use testbeds::net::{Interface, Netlink};

pub type Outcome = Result<(), Box<dyn Error>>;

/// Creates two hosts, `a` 10.0.0.1 and `b` 10.0.0.2, on one wire, each with its netlink connection.
pub fn two_hosts(arp: bool) -> Result<[(Host, Netlink); 2], Box<dyn Error>> {
    two_hosts_with(arp, None)
}

/// Creates two hosts like [`two_hosts`]; `bundles` is the maximum length of bundles on their wire in bytes.
pub fn two_hosts_with(
    arp: bool,
    bundles: Option<u32>,
) -> Result<[(Host, Netlink); 2], Box<dyn Error>> {
    let root = Netlink::open()?;
    root.create_veth("va", "vb")?;
    let mut hosts = Vec::new();
    for (last, name) in [(1, "va"), (2, "vb")] {
        let host = Host::new(&name[1..])?;
        root.move_to(name, host.namespace())?;
        let netlink = Netlink::open_in(host.namespace())?;
        netlink.configure(&Interface {
            name: name.into(),
            mac: [2, 0, 0, 0, 0, last],
            mtu: 1500,
            address: Some((Ipv4Addr::new(10, 0, 0, last), 24)),
            arp,
            bundles,
        })?;
        if !arp {
            let peer = 3 - last;
            let peer = (Ipv4Addr::new(10, 0, 0, peer), [2, 0, 0, 0, 0, peer]);
            netlink.add_neighbours(name, [peer])?;
        }
        hosts.push((host, netlink));
    }
    hosts.try_into().map_err(|_| "two hosts".into())
}

/// Opens a UDP socket on port 9 in the namespace of the host whose address ends with `last`.
pub fn socket(namespace: &Namespace, last: u8) -> std::io::Result<UdpSocket> {
    let socket = namespace.run(|| UdpSocket::bind((Ipv4Addr::new(10, 0, 0, last), 9)))?;
    socket.set_read_timeout(Some(Duration::from_millis(500)))?;
    Ok(socket)
}
