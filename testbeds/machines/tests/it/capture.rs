//! What passes an interface of the test's namespace, heard by a packet socket.

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
/// Bytes that may wait while nobody reads.
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

    /// Of TCP or UDP: source, destination.
    pub fn ports(&self) -> [u16; 2] {
        let transport = self.transport();
        [0, 2].map(|at| u16::from_be_bytes([transport[at], transport[at + 1]]))
    }

    /// Header and data of the transport.
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

/// An interface that is heard, from the time of this on.
pub struct Capture {
    socket: OwnedFd,
    interface: usize,
}

impl Capture {
    pub fn of(interface: &str) -> Self {
        let kind = SockType::Raw;
        let protocol = SockProtocol::EthAll;
        let socket = socket(
            AddressFamily::Packet,
            kind,
            SockFlag::SOCK_CLOEXEC,
            protocol,
        )
        .expect("a packet socket");
        // As large as this user may have it.
        let _ = setsockopt(&socket, sockopt::RcvBufForce, &BUFFER);
        let interface = if_nametoindex(interface).expect("an interface") as usize;
        Self { socket, interface }
    }

    /// The next packet that is wanted, if one comes in time.
    pub fn next(&self, limit: Duration, wanted: impl Fn(&Packet) -> bool) -> Option<Packet> {
        let end = Instant::now() + limit;
        let mut buffer = vec![0; 9300];
        loop {
            let left = end.checked_duration_since(Instant::now())?;
            // Zero means for ever.
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

    /// Forgets what has passed so far.
    pub fn drain(&self) {
        while self.next(SHORT, |_| true).is_some() {}
    }

    /// What passes while something is done: the packets that are wanted, read as they come.
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
                    // Whatever was sent before it was done is in the socket by then.
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
