//! Captures the packets on an interface in the test's namespace with a packet socket.

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ETHERNET: usize = 14;
/// Size of the socket's receive buffer, in bytes.
const BUFFER: usize = 64 << 20;
const SHORT: Duration = Duration::from_millis(10);

/// An IPv4 packet in a frame.
pub struct Packet(Vec<u8>);

impl Packet {
    fn header(&self) -> usize {
        usize::from(self.0[0] & 15) * 4
    }

    pub fn source(&self) -> [u8; 4] {
        self.0[12..16].try_into().expect("four bytes")
    }

    pub fn time_to_live(&self) -> u8 {
        self.0[8]
    }

    pub fn protocol(&self) -> u8 {
        self.0[9]
    }

    /// Source and destination port of TCP or UDP.
    pub fn ports(&self) -> [u16; 2] {
        let transport = self.transport();
        [0, 2].map(|at| u16::from_be_bytes([transport[at], transport[at + 1]]))
    }

    /// Header and data of the transport protocol.
    pub fn transport(&self) -> &[u8] {
        let length = usize::from(u16::from_be_bytes([self.0[2], self.0[3]]));
        &self.0[self.header()..length]
    }

    /// Sequence number and data of a TCP segment.
    pub fn segment(&self) -> (u32, &[u8]) {
        let tcp = self.transport();
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        (sequence, &tcp[usize::from(tcp[12] >> 4) * 4..])
    }
}

/// A capture of an interface, from its creation on.
pub struct Capture {
    socket: OwnedFd,
    interface: usize,
}

impl Capture {
    pub fn start(interface: &str) -> Self {
        let kind = SockType::Raw;
        let protocol = SockProtocol::EthAll;
        let socket = socket(
            AddressFamily::Packet,
            kind,
            SockFlag::SOCK_CLOEXEC,
            protocol,
        )
        .expect("a packet socket");
        // The kernel limits the size for unprivileged users.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &BUFFER);
        let interface = if_nametoindex(interface).expect("an interface") as usize;
        Self { socket, interface }
    }

    /// The next wanted packet; `None` after the time limit.
    pub fn next(&self, limit: Duration, wanted: impl Fn(&Packet) -> bool) -> Option<Packet> {
        let end = Instant::now() + limit;
        let mut buffer = vec![0; 9300];
        loop {
            let left = end.checked_duration_since(Instant::now())?;
            // Zero would mean no limit.
            let left = TimeVal::new(
                left.as_secs() as i64,
                i64::from(left.subsec_micros().max(1)),
            );
            setsockopt(&self.socket, sockopt::ReceiveTimeout, &left).expect("a time-out");
            let received = recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut buffer);
            let Ok((length, Some(from))) = received else {
                continue;
            };
            let is_ipv4 = buffer[12..ETHERNET] == [8, 0];
            if from.ifindex() == self.interface && is_ipv4 && length > ETHERNET + 20 {
                let packet = Packet(buffer[ETHERNET..length].to_vec());
                if wanted(&packet) {
                    return Some(packet);
                }
            }
        }
    }

    /// Discards the packets captured so far.
    pub fn drain(&self) {
        while self.next(SHORT, |_| true).is_some() {}
    }

    /// The wanted packets that pass while `work` runs. They are read at once, so that the buffer does not overflow.
    pub fn during<T>(
        &self,
        wanted: impl Fn(&Packet) -> bool + Sync,
        what: impl FnOnce() -> T,
    ) -> (T, Vec<Packet>) {
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut packets = Vec::new();
                loop {
                    // The socket has all packets that were sent before `work` ended.
                    let was_done = is_done.load(Ordering::Acquire);
                    match self.next(SHORT, &wanted) {
                        Some(packet) => packets.push(packet),
                        None if was_done => return packets,
                        None => {}
                    }
                }
            });
            let result = what();
            is_done.store(true, Ordering::Release);
            (result, reader.join().expect("no panic"))
        })
    }
}
