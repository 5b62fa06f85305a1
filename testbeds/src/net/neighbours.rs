//! Adds neighbor entries, with many requests in one netlink message: a network of 512 hosts has 261,632 entries.

use std::io;
use std::net::Ipv4Addr;

use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage,
    NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::{AddressFamily, route::RouteType};
use rtnetlink::sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::Mac;

/// Number of neighbor entries in one netlink message: about 12 KiB, below the smallest send buffer of a socket.
const TOGETHER: usize = 256;

/// A permanent neighbor entry for the interface with this index.
pub(super) fn entry(interface: u32, address: Ipv4Addr, mac: Mac) -> NeighbourMessage {
    let mut entry = NeighbourMessage::default();
    entry.header.family = AddressFamily::Inet;
    entry.header.ifindex = interface;
    entry.header.state = NeighbourState::Permanent;
    entry.header.kind = RouteType::Unspec;
    entry.attributes = vec![
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)),
        NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
    ];
    entry
}

/// Adds neighbor entries in the namespace of the calling thread; each replaces an older one for the same address.
pub(super) fn add(entries: Vec<NeighbourMessage>) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    let mut entries = entries.into_iter().peekable();
    while entries.peek().is_some() {
        let mut together = Vec::new();
        let batch: Vec<_> = entries.by_ref().take(TOGETHER).collect();
        let last = batch.len() as u32;
        for (number, entry) in (1..).zip(batch) {
            let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewNeighbour(entry));
            request.header.flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE;
            // The kernel processes the requests in order and reports every failure, so one acknowledgment, of the last, is enough.
            if number == last {
                request.header.flags |= NLM_F_ACK;
            }
            request.header.sequence_number = number;
            request.finalize();
            let start = together.len();
            together.resize(start + request.buffer_len(), 0);
            request.serialize(&mut together[start..]);
        }
        socket.send_to(&together, &SocketAddr::new(0, 0), 0)?;
        wait_for(&socket, last)?;
    }
    Ok(())
}

/// Reads the kernel's replies until the request with sequence number `last` is acknowledged. Returns the first failure.
fn wait_for(socket: &Socket, last: u32) -> io::Result<()> {
    loop {
        let (answers, _) = socket.recv_from_full()?;
        let mut rest = &answers[..];
        while !rest.is_empty() {
            let unreadable = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{error}"));
            let length = NetlinkBuffer::new_checked(rest)
                .map_err(unreadable)?
                .length() as usize;
            let answer =
                NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(unreadable)?;
            if let NetlinkPayload::Error(error) = answer.payload {
                if error.raw_code() != 0 {
                    return Err(error.to_io());
                }
                if answer.header.sequence_number == last {
                    return Ok(());
                }
            }
            // Messages are aligned to four bytes.
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}
