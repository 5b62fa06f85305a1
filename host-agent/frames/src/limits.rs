//! The longest bundle that an interface sends whole. The kernel cuts a longer one into its frames, which costs as much as to send
//! them one by one.

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use crate::bundle::Longest;

/// Length of the header of a netlink message in bytes (`struct nlmsghdr`).
const HEADER: usize = 16;
/// Length of the header of RTM_GETLINK's answer (`struct ifinfomsg`) and of RTM_GETQDISC's (`struct tcmsg`).
const LINK: usize = 16;
const QDISC: usize = 20;
/// Sender `TC_H_ROOT`: the queue discipline at the root of an interface.
const ROOT: u32 = u32::MAX;
/// Attributes (`linux/if_link.h`, `linux/rtnetlink.h`, `linux/pkt_sched.h`).
const IFLA_EXT_MASK: u16 = 29;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
/// Value of `IFLA_EXT_MASK` that leaves the counters out of the answer.
const SKIP_STATISTICS: u32 = 1 << 3;
/// Nanoseconds of a tick, in which queue disciplines count time.
const TICK_NS: u128 = 64;
/// Maximum time that a bundle takes on its link, in nanoseconds. Other frames wait for it, and its first frame waits for its last one
/// at the next switch, so round trips take longer. With a millisecond, as in Linux's TCP, an all-reduce that loses 5 % of its frames
/// took 1.56 times as long as without loss; with half of it, 1.32 times (docs/performance.md, "Frames by the bundle").
const BUNDLE_NS: u128 = 500_000;

/// Reads the limits of the interface with this index, in the network namespace of the calling thread: the one of its card
/// (`gso_max_size`), and the burst of a token bucket (tbf) at its root. What cannot be read is no limit, and neither is what
/// is rare: `gso_max_segs`, a limit of IPv4 alone, a tbf's peak rate. The kernel then splits bundles that are too long.
///
/// The kernel's lock for interfaces is taken, so a loop that moves frames must not call this. The crate rtnetlink needs an
/// asynchronous runtime, for which two questions are no reason.
pub(crate) fn longest(index: u32) -> Longest {
    let mut longest = Longest::default();
    if let Some(bytes) = ask(link_request(index)).ok().as_deref().and_then(card) {
        // A packet of exactly that length is cut.
        longest.packet = longest.packet.min(bytes.saturating_sub(1));
    }
    if let Some(bytes) = ask(qdisc_request(index)).ok().as_deref().and_then(bucket) {
        longest.on_link = bytes;
    }
    longest
}

/// Sends a request to the kernel; returns the answer.
fn ask(request: Vec<u8>) -> io::Result<Vec<u8>> {
    let kernel = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    send(kernel.as_raw_fd(), &request, MsgFlags::empty())?;
    let mut answer = vec![0; 1 << 14];
    // The kernel has answered before `send` returns.
    let length = recv(kernel.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
    answer.truncate(length);
    Ok(answer)
}

fn link_request(index: u32) -> Vec<u8> {
    let mut body = [0; LINK + 8];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[LINK..LINK + 2].copy_from_slice(&8u16.to_ne_bytes());
    body[LINK + 2..LINK + 4].copy_from_slice(&IFLA_EXT_MASK.to_ne_bytes());
    body[LINK + 4..].copy_from_slice(&SKIP_STATISTICS.to_ne_bytes());
    message(libc::RTM_GETLINK, &body)
}

fn qdisc_request(index: u32) -> Vec<u8> {
    let mut body = [0; QDISC];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[12..16].copy_from_slice(&ROOT.to_ne_bytes());
    message(libc::RTM_GETQDISC, &body)
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = (HEADER + body.len()) as u32;
    // Without an echo, the kernel does not answer a question for a queue discipline.
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ECHO) as u16;
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence number, port.
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// The card's limit in bytes, from the answer to [`link_request`].
fn card(answer: &[u8]) -> Option<usize> {
    let attributes = attributes_of(answer, libc::RTM_NEWLINK, LINK)?;
    let bytes = number(attribute(attributes, IFLA_GSO_MAX_SIZE)?, 0)?;
    Some(bytes as usize)
}

/// Length of the longest bundle in bytes for a token bucket, from the answer to [`qdisc_request`]; `None` if the root is something else.
/// It is no longer than the bucket's burst, and lasts no longer than [`BUNDLE_NS`].
fn bucket(answer: &[u8]) -> Option<usize> {
    let attributes = attributes_of(answer, libc::RTM_NEWQDISC, QDISC)?;
    if !attribute(attributes, TCA_KIND)?.starts_with(b"tbf\0") {
        return None;
    }
    let options = attribute(attributes, TCA_OPTIONS)?;
    // Rate and peak rate (`struct tc_ratespec`, whose last field is the rate), limit, and the burst as the time that it lasts.
    let parameters = attribute(options, TCA_TBF_PARMS)?;
    let ticks = u128::from(number(parameters, 28)?);
    let wide = attribute(options, TCA_TBF_RATE64).and_then(|rate| rate.get(..8)?.try_into().ok());
    let bytes_per_second = match wide {
        Some(rate) => u128::from(u64::from_ne_bytes(rate)),
        None => u128::from(number(parameters, 8)?),
    };
    let ns = (ticks * TICK_NS).min(BUNDLE_NS);
    Some((bytes_per_second * ns / 1_000_000_000) as usize)
}

/// The attributes of an answer of this kind, which follow its header of `header` bytes.
fn attributes_of(answer: &[u8], kind: u16, header: usize) -> Option<&[u8]> {
    (answer.get(4..6)? == kind.to_ne_bytes()).then_some(())?;
    answer.get(HEADER + header..)
}

/// Value of the first attribute of this kind.
fn attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = attributes.get(..2)?.try_into().ok()?;
        let length = usize::from(u16::from_ne_bytes(length));
        let value = attributes.get(4..length)?;
        if attributes[2..4] == kind.to_ne_bytes() {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with this header and these attributes.
    fn answer(kind: u16, header: usize, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        message(kind, &[&vec![0; header], &*nested(attributes)].concat())
    }

    fn nested(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, value) in attributes {
            bytes.extend((4 + value.len() as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    /// `struct tc_tbf_qopt` of a tbf with this rate, in bytes a second, and this burst, in ticks.
    fn parameters(rate: u32, ticks: u32) -> Vec<u8> {
        let mut bytes = vec![0; 36];
        bytes[8..12].copy_from_slice(&rate.to_ne_bytes());
        bytes[28..32].copy_from_slice(&ticks.to_ne_bytes());
        bytes
    }

    fn tbf(kind: &[u8], options: &[(u16, &[u8])]) -> Option<usize> {
        let options = nested(options);
        let attributes: [(u16, &[u8]); 3] = [(TCA_KIND, kind), (12, &[0]), (TCA_OPTIONS, &options)];
        bucket(&answer(libc::RTM_NEWQDISC, QDISC, &attributes))
    }

    /// The kernel's answer for `tbf rate 100mbit burst 5000`.
    #[test]
    fn a_bundle_fits_in_the_burst_and_lasts_half_a_millisecond() {
        let slow = parameters(12_500_000, 6_250);
        assert_eq!(tbf(b"tbf\0", &[(TCA_TBF_PARMS, &slow)]), Some(5_000));
        let large = parameters(12_500_000, 1_000_000);
        assert_eq!(tbf(b"tbf\0", &[(TCA_TBF_PARMS, &large)]), Some(6_250));
        // Above 34 Gbit/s, the rate stands in an attribute of its own.
        let fast = parameters(u32::MAX, 6_250);
        let rate = 12_500_000_000_u64.to_ne_bytes();
        let options: [(u16, &[u8]); 2] = [(TCA_TBF_RATE64, &rate), (TCA_TBF_PARMS, &fast)];
        assert_eq!(tbf(b"tbf\0", &options), Some(5_000_000));
    }

    #[test]
    fn other_answers_are_no_limit() {
        let slow = parameters(12_500_000, 12_500);
        assert_eq!(tbf(b"noqueue\0", &[(TCA_TBF_PARMS, &slow)]), None);
        assert_eq!(tbf(b"tbf\0", &[(TCA_TBF_PARMS, &slow[..30])]), None);
        assert_eq!(bucket(&answer(libc::NLMSG_ERROR as u16, 4, &[])), None);
        assert_eq!(bucket(&[]), None);
        let link = answer(
            libc::RTM_NEWLINK,
            LINK,
            &[(IFLA_GSO_MAX_SIZE, &8000_u32.to_ne_bytes())],
        );
        assert_eq!(card(&link), Some(8000));
        for end in 0..link.len() {
            assert_eq!(card(&link[..end]), None, "{end}");
        }
    }
}
