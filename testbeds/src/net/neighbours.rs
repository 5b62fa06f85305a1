//! Neighbours by the hundred: many requests in one message to the kernel. A request of its own for each takes ten times as long, and
//! 512 hosts that know each other have 261,632 of them.

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

/// So many requests go in one message. Together they are well below the least room that a socket has for sending.
const TOGETHER: usize = 256;

/// An entry of the table that lasts.
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

/// Makes entries in the namespace of the calling thread, in place of those that are there for the same addresses.
pub(super) fn tell(entries: Vec<NeighbourMessage>) -> io::Result<()> {
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
            // The kernel answers in the order of the requests, and a failure though nobody asked: the last answer is enough.
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

/// Reads answers until the one to request `last` is there. The first failure is the result.
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
