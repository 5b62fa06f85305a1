//! Two hosts in network namespaces of their own, and TCP streams between them whose bytes are checked.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testbeds::host::Namespace;
use testbeds::net::{Interface, Mac, Netlink, Sending};

use super::support::Numbers;

/// Addresses of the two hosts.
pub const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
/// Interfaces of the two hosts.
const INTERFACES: [&str; 2] = ["left0", "right0"];
/// Number of bytes after which a stream repeats: a prime, so no number of lost or repeated segments goes unnoticed.
const PERIOD: usize = 65_521;
/// Maximum time until a connection is established.
const CONNECT: Duration = Duration::from_secs(10);

/// State in which a host hands its TCP segments to the other end of its cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segments {
    /// Each segment is a frame with its checksum, as on a cable.
    Finished,
    /// As a new virtual Ethernet interface sends them: up to 64 KiB in one packet, without checksums.
    Unfinished,
}

/// Configures a new interface, which then sends segments in the state `segments`; returns the offloads that it had.
pub fn configure(netlink: &Netlink, interface: &Interface, segments: Segments) -> Result<Sending> {
    let new = netlink.sending(&interface.name)?;
    netlink.configure(interface)?;
    let unfinished = (segments == Segments::Unfinished).then_some(new);
    netlink.set_sending(&interface.name, unfinished)?;
    Ok(new)
}

/// Two hosts, each with one interface.
pub struct HostPair {
    pub namespaces: [Namespace; 2],
    /// Offloads of the hosts' interfaces before they were configured.
    new: Sending,
}

impl HostPair {
    /// Connects two hosts by a cable.
    pub fn new(segments: Segments) -> Result<HostPair> {
        let [left, right] = INTERFACES;
        Netlink::open()?.create_veth(left, right)?;
        HostPair::in_namespaces(segments)
    }

    /// Creates two hosts, each with a cable whose other end is an interface of this namespace with the name in `far`.
    pub fn cabled_to(far: [&str; 2], segments: Segments) -> Result<HostPair> {
        for (host, far) in INTERFACES.iter().zip(far) {
            Netlink::open()?.create_veth(host, far)?;
        }
        HostPair::in_namespaces(segments)
    }

    fn in_namespaces(segments: Segments) -> Result<HostPair> {
        let namespaces = [Namespace::new()?, Namespace::new()?];
        let mut new = None;
        for (number, (namespace, name)) in namespaces.iter().zip(INTERFACES).enumerate() {
            Netlink::open()?.move_to(name, namespace)?;
            let inside = Netlink::open_in(namespace)?;
            let interface = Interface {
                name: name.to_owned(),
                mac: mac_of(number),
                mtu: 1500,
                address: Some((HOSTS[number], 24)),
                arp: true,
                bundles: None,
            };
            new = Some(configure(&inside, &interface, segments)?);
        }
        let new = new.context("no host")?;
        Ok(HostPair { namespaces, new })
    }

    /// Makes both hosts send their segments in this state from now on.
    pub fn set_segments(&self, segments: Segments) -> Result<()> {
        let unfinished = (segments == Segments::Unfinished).then_some(self.new);
        for (namespace, name) in self.namespaces.iter().zip(INTERFACES) {
            Netlink::open_in(namespace)?.set_sending(name, unfinished)?;
        }
        Ok(())
    }

    /// Gives each host the other's Ethernet address, for a network that forwards no broadcasts.
    pub fn add_neighbours(&self) -> Result<()> {
        for (number, name) in INTERFACES.into_iter().enumerate() {
            let other = 1 - number;
            let neighbour = (HOSTS[other], mac_of(other));
            Netlink::open_in(&self.namespaces[number])?.add_neighbours(name, [neighbour])?;
        }
        Ok(())
    }

    /// Sends `bytes` from the first host to the second over one TCP connection, for at most `limit`; an error if a wrong
    /// byte arrives.
    pub fn stream(&self, bytes: usize, limit: Duration) -> Result<Stream> {
        let to = SocketAddr::from((HOSTS[1], 9001));
        let listener = self.namespaces[1].run(|| TcpListener::bind(to))?;
        let connect = || TcpStream::connect_timeout(&to, CONNECT);
        let mut from = self.namespaces[0].run(connect).context("no connection")?;
        let sending = from.try_clone()?;
        let (mut accepted, _) = listener.accept()?;
        accepted.set_read_timeout(Some(Duration::from_millis(100)))?;
        let pattern = pattern();
        let sent = pattern.clone();
        let start = Instant::now();
        let sender = std::thread::spawn(move || {
            let blocks = (0..bytes).step_by(PERIOD);
            // An error here shows as bytes that never arrive.
            blocks
                .map(|at| &sent[..PERIOD.min(bytes - at)])
                .try_for_each(|block| from.write_all(block))
        });
        let (mut block, mut received) = (vec![0; 1 << 16], 0);
        while received < bytes && start.elapsed() < limit {
            match accepted.read(&mut block) {
                Ok(0) => break,
                Ok(length) => {
                    let right = is_part_of(&pattern, received, &block[..length]);
                    ensure!(right, "wrong bytes arrive after {received} right ones");
                    received += length;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        // A sender that waits for a peer it does not reach returns.
        let _ = sending.shutdown(Shutdown::Both);
        let _ = sender.join();
        Ok(Stream {
            bytes,
            received,
            seconds,
        })
    }
}

/// A stream of which all bytes that arrived were right.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    pub bytes: usize,
    pub received: usize,
    /// Time until the last byte arrived, or the time limit.
    pub seconds: f64,
}

impl Stream {
    /// Mbit/s of the bytes that arrived.
    pub fn mbit(&self) -> f64 {
        8.0 * self.received as f64 / self.seconds / 1e6
    }

    pub fn is_whole(&self) -> bool {
        self.received == self.bytes
    }

    /// The stream with the median rate of `rounds` streams; the first stream that is not whole ends them and is returned.
    pub fn median(rounds: usize, mut next: impl FnMut() -> Result<Stream>) -> Result<Stream> {
        let mut streams = Vec::new();
        for _ in 0..rounds {
            let stream = next()?;
            if !stream.is_whole() {
                return Ok(stream);
            }
            streams.push(stream);
        }
        streams.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(streams[rounds / 2])
    }

    /// Text for a note: the rate, and how far a stream came that is not whole.
    pub fn note(&self) -> String {
        let Stream {
            bytes,
            received,
            seconds,
        } = self;
        match self.is_whole() {
            true => format!("{:.0} Mbit/s", self.mbit()),
            false => format!("stalls: {received} of {bytes} bytes arrived in {seconds:.0} s"),
        }
    }

    /// Formats a stream as a line of a role's output.
    pub fn print(&self) -> String {
        let Stream {
            bytes,
            received,
            seconds,
        } = self;
        format!("{bytes} {received} {seconds}\n")
    }

    /// Parses the lines of a role's output.
    pub fn parse_all<const N: usize>(text: &str) -> Result<[Stream; N]> {
        let parse = |line: &str| {
            let mut words = line.split_whitespace();
            Some(Stream {
                bytes: words.next()?.parse().ok()?,
                received: words.next()?.parse().ok()?,
                seconds: words.next()?.parse().ok()?,
            })
        };
        let streams: Option<Vec<Stream>> = text.lines().map(parse).collect();
        let streams = streams.and_then(|streams| streams.try_into().ok());
        streams.with_context(|| format!("the measurement printed {text:?}"))
    }
}

/// Ethernet address of a host, which `l2.p4` forwards to the port of the host's number + 1.
fn mac_of(number: usize) -> Mac {
    [2, 0, 0, 0, 0, number as u8 + 1]
}

fn pattern() -> Vec<u8> {
    let mut numbers = Numbers(1);
    (0..PERIOD).map(|_| numbers.next() as u8).collect()
}

/// Whether `bytes` are those of the endless repetition of `pattern` from the index `at` on.
fn is_part_of(pattern: &[u8], mut at: usize, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let expected = &pattern[at % pattern.len()..];
        let (now, later) = bytes.split_at(expected.len().min(bytes.len()));
        if now != &expected[..now.len()] {
            return false;
        }
        at += now.len();
        bytes = later;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_repeats_its_pattern() {
        let pattern = [1, 2, 3];
        assert!(is_part_of(&pattern, 7, &[2, 3, 1, 2, 3, 1, 2]));
        assert!(is_part_of(&pattern, 0, &[]));
        assert!(!is_part_of(&pattern, 0, &[1, 2, 3, 2]));
    }

    #[test]
    fn streams_are_printed_and_parsed() {
        let stream = Stream {
            bytes: 100,
            received: 60,
            seconds: 20.5,
        };
        let [one, two] = Stream::parse_all(&stream.print().repeat(2)).unwrap();
        assert_eq!(one.print(), two.print());
        assert_eq!(one.note(), "stalls: 60 of 100 bytes arrived in 20 s");
        assert!(Stream::parse_all::<3>(&stream.print()).is_err());
    }
}
