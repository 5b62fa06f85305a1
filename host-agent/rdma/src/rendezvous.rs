//! Exchange of queue pairs between two programs, in the protocol of libibverbs' pingpong examples.
//!
//! Each message is the text `lid:qpn:psn:gid` in hexadecimal digits and a zero byte, 52 bytes. The client sends its own,
//! receives the server's, and sends `done`, for which the server waits: then both are connected.

use roce::{Psn, Qpn};

use crate::provider::{Gid, Provider, ProviderError};
use crate::talk::{Talk, TalkError};

const LEN: usize = 52;
const DONE: &[u8] = b"done\0";

/// Description of a queue pair in a message of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination {
    /// InfiniBand's local identifier (LID) of the port; 0 on Ethernet.
    pub lid: u16,
    /// Number of the queue pair.
    pub qpn: Qpn,
    /// PSN of the first packet that the queue pair sends.
    pub psn: Psn,
    /// GID of the queue pair's port.
    pub gid: Gid,
}

/// Reason why two programs could not exchange their queue pairs.
#[derive(Debug, thiserror::Error)]
pub enum RendezvousError {
    /// The TCP connection between the programs failed.
    #[error(transparent)]
    Talk(#[from] TalkError),
    /// The other program sent an unexpected message, or closed the connection.
    #[error("the peer's message is not `lid:qpn:psn:gid`: check that it is ibv_rc_pingpong")]
    Message,
    /// The other program's message has no GID of its port.
    #[error(
        "the peer sent no GID: start it with `-g 1` (the index of a GID ::ffff:a.b.c.d; see `ibv_devinfo -v`)"
    )]
    NoGid,
}

impl Destination {
    fn message(&self) -> [u8; LEN] {
        let gid = u128::from_be_bytes(self.gid.0);
        let (qpn, psn) = (self.qpn.bits(), self.psn.bits());
        let text = format!("{:04x}:{qpn:06x}:{psn:06x}:{gid:032x}\0", self.lid);
        let mut message = [0; LEN];
        message.copy_from_slice(text.as_bytes());
        message
    }

    fn parse(message: &[u8]) -> Result<Self, RendezvousError> {
        let wrong = RendezvousError::Message;
        let text = std::str::from_utf8(message).map_err(|_| RendezvousError::Message)?;
        let text = text.split('\0').next().unwrap_or("");
        let fields: Vec<&str> = text.split(':').collect();
        let [lid, qpn, psn, gid] = fields[..] else {
            return Err(wrong);
        };
        let number = |field: &str, most: u32| {
            let is_plain = field.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = u32::from_str_radix(field, 16).ok();
            number.filter(|number| is_plain && *number <= most)
        };
        let told = (
            number(lid, 0xFFFF),
            number(qpn, 0xFF_FFFF),
            number(psn, 0xFF_FFFF),
        );
        let (Some(lid), Some(qpn), Some(psn), Ok(gid)) = (told.0, told.1, told.2, gid.parse())
        else {
            return Err(wrong);
        };
        if gid == Gid([0; 16]) {
            return Err(RendezvousError::NoGid);
        }
        Ok(Self {
            lid: lid as u16,
            qpn: Qpn::new(qpn),
            psn: Psn::new(psn),
            gid,
        })
    }
}

/// Exchanges descriptions of queue pairs, calls `connect` with the peer's, and returns it. A server connects before it replies.
///
/// # Errors
/// [`RendezvousError`], or the error of `connect`.
pub fn meet(
    talk: &mut Talk,
    provider: &mut dyn Provider,
    own: &Destination,
    connect: impl FnOnce(&mut dyn Provider, &Destination) -> Result<(), ProviderError>,
) -> Result<Destination, RendezvousError> {
    if talk.is_client() {
        talk.send(&own.message())?;
        let peer = Destination::parse(&talk.receive::<LEN>(provider)?)?;
        talk.send(DONE)?;
        connect(provider, &peer).map_err(TalkError::from)?;
        return Ok(peer);
    }
    let peer = Destination::parse(&talk.receive::<LEN>(provider)?)?;
    connect(provider, &peer).map_err(TalkError::from)?;
    talk.send(&own.message())?;
    talk.receive::<{ DONE.len() }>(provider)?;
    Ok(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(qpn: u32) -> Destination {
        Destination {
            lid: 0,
            qpn: Qpn::new(qpn),
            psn: Psn::new(0xABCDEF),
            gid: std::net::Ipv4Addr::new(10, 0, 0, 2).into(),
        }
    }

    #[test]
    fn a_message_is_52_bytes() {
        let message = destination(0x11).message();
        let text = b"0000:000011:abcdef:00000000000000000000ffff0a000002\0";
        assert_eq!(message, *text);
        assert_eq!(Destination::parse(&message).unwrap(), destination(0x11));
    }

    #[test]
    fn other_messages_are_refused() {
        let zero = "0000:000011:abcdef:00000000000000000000000000000000";
        assert!(matches!(
            Destination::parse(zero.as_bytes()),
            Err(RendezvousError::NoGid)
        ));
        for wrong in [
            "",
            "done",
            "0000:1000011:abcdef:00000000000000000000ffff0a000002",
            "0000:000011:abcdef:0000000000000000000ffff0a000002",
            "0000:+00011:abcdef:00000000000000000000ffff0a000002",
            "0000:000011:00000000000000000000ffff0a000002",
        ] {
            let refused = Destination::parse(wrong.as_bytes());
            assert!(matches!(refused, Err(RendezvousError::Message)), "{wrong}");
        }
        assert!(matches!(
            Destination::parse(&[0xFF; LEN]),
            Err(RendezvousError::Message)
        ));
    }
}
