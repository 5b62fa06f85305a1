//! Frames, whole and broken.

use super::Random;

/// All properties of a frame that a test may set.
#[derive(Debug, Clone)]
pub struct Frame {
    pub vlans: Vec<(u16, u16)>,
    pub network: Network,
    pub transport: Transport,
    pub payload: Vec<u8>,
    /// Number of bytes behind the IP packet; short frames have some.
    pub padding: usize,
}

#[derive(Debug, Clone)]
pub enum Network {
    Ipv4 {
        src: [u8; 4],
        dst: [u8; 4],
        ttl: u8,
        option_words: u8,
        frag_offset: u16,
    },
    Ipv6 {
        src: u128,
        dst: u128,
    },
    Other,
}

#[derive(Debug, Clone)]
pub enum Transport {
    Tcp {
        src: u16,
        dst: u16,
        flags: u8,
        option_words: u8,
    },
    Udp {
        src: u16,
        dst: u16,
    },
    Other(u8),
}

impl Frame {
    /// A TCP segment to a Redis server.
    pub fn redis(payload: &[u8]) -> Frame {
        Frame {
            vlans: Vec::new(),
            network: Network::Ipv4 {
                src: [10, 0, 0, 1],
                dst: [10, 0, 0, 9],
                ttl: 64,
                option_words: 0,
                frag_offset: 0,
            },
            transport: Transport::Tcp {
                src: 40000,
                dst: 6379,
                flags: 0x18,
                option_words: 3,
            },
            payload: payload.to_vec(),
            padding: 0,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let (protocol, transport) = match &self.transport {
            Transport::Tcp {
                src,
                dst,
                flags,
                option_words,
            } => {
                let mut tcp = Vec::new();
                tcp.extend(src.to_be_bytes());
                tcp.extend(dst.to_be_bytes());
                tcp.extend([
                    0,
                    0,
                    0,
                    1,
                    0,
                    0,
                    0,
                    2,
                    (5 + option_words) << 4,
                    *flags,
                    1,
                    0,
                    0,
                    0,
                    0,
                    0,
                ]);
                tcp.extend(std::iter::repeat_n(1, 4 * usize::from(*option_words)));
                (6, tcp)
            }
            Transport::Udp { src, dst } => {
                let mut udp = Vec::new();
                udp.extend(src.to_be_bytes());
                udp.extend(dst.to_be_bytes());
                udp.extend((8 + self.payload.len() as u16).to_be_bytes());
                udp.extend([0, 0]);
                (17, udp)
            }
            Transport::Other(protocol) => (*protocol, Vec::new()),
        };
        let length = (transport.len() + self.payload.len()) as u16;
        let (ether_type, network) = match &self.network {
            Network::Ipv4 {
                src,
                dst,
                ttl,
                option_words,
                frag_offset,
            } => {
                let header = 20 + 4 * u16::from(*option_words);
                let mut ip = vec![0x45 + option_words, 0];
                ip.extend((header + length).to_be_bytes());
                ip.extend([0, 1]);
                ip.extend(frag_offset.to_be_bytes());
                ip.extend([*ttl, protocol, 0, 0]);
                ip.extend(src);
                ip.extend(dst);
                ip.extend(std::iter::repeat_n(1, usize::from(header) - 20));
                (0x0800u16, ip)
            }
            Network::Ipv6 { src, dst } => {
                let mut ip = vec![0x60, 0, 0, 0];
                ip.extend(length.to_be_bytes());
                ip.extend([protocol, 64]);
                ip.extend(src.to_be_bytes());
                ip.extend(dst.to_be_bytes());
                (0x86dd, ip)
            }
            Network::Other => {
                let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1];
                arp.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 9]);
                (0x0806, arp)
            }
        };
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1];
        for (ether_type, id) in &self.vlans {
            frame.extend(ether_type.to_be_bytes());
            frame.extend(id.to_be_bytes());
        }
        frame.extend(ether_type.to_be_bytes());
        frame.extend(network);
        frame.extend(transport);
        frame.extend(&self.payload);
        frame.extend(std::iter::repeat_n(0, self.padding));
        frame
    }
}

/// RESP array: `*N`, then each part as a bulk string.
pub fn resp(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        bytes.extend(format!("${}\r\n", part.len()).bytes());
        bytes.extend(*part);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Random frame. Its values come from small sets, so that random filters match.
pub fn random_frame(random: &mut Random) -> Vec<u8> {
    let mut vlans = Vec::new();
    if random.one_in(4) {
        vlans.push((*random.pick(&[&0x8100, &0x88a8]), *random.pick(&[&5, &6])));
        if random.one_in(2) {
            vlans.push((0x8100, *random.pick(&[&5, &6])));
        }
    }
    let network = match random.below(8) {
        0 => Network::Other,
        1 | 2 => Network::Ipv6 {
            src: *random.pick(&[&1, &(0x2001_0db8 << 96)]),
            dst: 2,
        },
        _ => Network::Ipv4 {
            src: *random.pick(&[&[10, 0, 0, 1], &[10, 0, 0, 2], &[192, 168, 0, 1]]),
            dst: [10, 0, 0, 9],
            ttl: *random.pick(&[&1, &64]),
            option_words: if random.one_in(4) {
                random.below(11) as u8
            } else {
                0
            },
            frag_offset: if random.one_in(16) { 7 } else { 0 },
        },
    };
    let transport = match random.below(8) {
        0 => Transport::Other(*random.pick(&[&1, &58, &0, &43, &44, &60])),
        1 | 2 => Transport::Udp {
            src: 4791,
            dst: *random.pick(&[&22341, &4791, &4791, &53, &53, &4789]),
        },
        _ => Transport::Tcp {
            src: 40000,
            dst: *random.pick(&[&6379, &6379, &6379, &80, &9092, &11211, &5432]),
            flags: *random.pick(&[&0x02, &0x10, &0x18]),
            option_words: if random.one_in(2) {
                random.below(11) as u8
            } else {
                0
            },
        },
    };
    let payload = match (&transport, random.below(8)) {
        (_, 0) => Vec::new(),
        (_, 1) => (0..random.below(60)).map(|_| random.next() as u8).collect(),
        (Transport::Tcp { dst: 6379, .. }, _) => random_resp(random),
        (Transport::Tcp { dst, .. }, _) => random_message(random, *dst),
        (Transport::Udp { dst: 53, .. }, _) => random_message(random, 53),
        (Transport::Udp { dst: 4791, .. }, _) => {
            let mut bytes = vec![*random.pick(&[&4_u8, &6, &7, &10, &17, &16])];
            bytes.extend((0..31).map(|_| random.next() as u8 & 3));
            bytes
        }
        (Transport::Udp { .. }, _) => {
            let kind = 1 + random.below(3) as u8;
            let mut bytes = vec![0x10 | kind, 0, 0, 1];
            bytes.extend((0..40).map(|_| random.next() as u8 & 3));
            if random.one_in(2) {
                bytes[18..20].copy_from_slice(&256u16.to_be_bytes());
                bytes.resize(20 + 1024, 7);
            }
            bytes
        }
        _ => (0..40).map(|_| random.next() as u8 & 7).collect(),
    };
    let frame = Frame {
        vlans,
        network,
        transport,
        payload,
        padding: if random.one_in(4) { 6 } else { 0 },
    };
    let mut bytes = frame.bytes();
    match random.below(6) {
        0 => bytes.truncate(random.below(bytes.len() + 1)),
        1 => {
            let at = random.below(bytes.len());
            bytes[at] = *random.pick(&[&0, &b'\r', &b'\n', &b'$', &b'9', &b'0', &0xff]);
        }
        _ => {}
    }
    bytes
}

/// Message of the protocol with this port.
fn random_message(random: &mut Random, port: u16) -> Vec<u8> {
    let counted = |text: &[u8]| [&(text.len() as u16).to_be_bytes(), text].concat();
    let text = |random: &mut Random, of: &[&str]| random.pick(of).as_bytes().to_vec();
    let mut bytes = match port {
        80 => {
            let method = text(random, &["GET", "POST", "get", "PROPFIND", "G", ""]);
            let path = text(
                random,
                &[
                    "/",
                    "/cart",
                    "/cart/17",
                    "/very/long/path/that/goes/on/and/on/and/on/until/the/end",
                ],
            );
            [&method, &b" "[..], &path, b" HTTP/1.1\r\nHost: x\r\n\r\n"].concat()
        }
        9092 => {
            let mut bytes = vec![0, 0, 0, 40];
            bytes.extend([0, *random.pick(&[&0_u8, &1, &18]), 0, random.below(4) as u8]);
            bytes.extend((random.below(3) as u32).to_be_bytes());
            match random.below(4) {
                0 => bytes.extend([0xff, 0xff]),
                _ => bytes.extend(counted(&text(random, &["app", "application", "", "a"]))),
            }
            bytes.extend([0, 1, 2, 3]);
            bytes
        }
        11211 => {
            let command = text(random, &["get", "gets", "set", "delete", "version"]);
            let key = text(random, &["cart:17", "cart:170", "k", "cart:"]);
            match random.below(3) {
                0 => [&command[..], b"\r\n"].concat(),
                1 => [&command[..], b" ", &key, b"\r\n"].concat(),
                _ => [&command[..], b" ", &key, b" 0 0 3\r\nabc\r\n"].concat(),
            }
        }
        5432 => {
            let kind = text(random, &["Q", "P", "X", "p"]);
            let query = text(
                random,
                &["SELECT 1", "select", "INSERT INTO cart VALUES (17)", ""],
            );
            let length = (query.len() as u32 + 5).to_be_bytes();
            [&kind[..], &length, &query, b"\0"].concat()
        }
        _ => {
            let mut bytes = vec![0, random.below(3) as u8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            for label in text(
                random,
                &["www.example.com", "WWW.Example.com", "example.com", "a"],
            )
            .split(|b| *b == b'.')
            {
                bytes.push(label.len() as u8);
                bytes.extend(label);
            }
            bytes.extend([0, 0, *random.pick(&[&1_u8, &28]), 0, 1]);
            bytes
        }
    };
    if random.one_in(6) {
        bytes.truncate(random.below(bytes.len() + 1));
    }
    bytes
}

fn random_resp(random: &mut Random) -> Vec<u8> {
    let command = random.pick(&[
        "GET",
        "get",
        "SET",
        "Set",
        "DEL",
        "PING",
        "GETSET",
        "GEORADIUSBYMEMBER",
        "INCRBYFLOAT",
    ]);
    let key: &[u8] = match random.below(10) {
        0 => b"",
        1 => b"c",
        2 => b"cart",
        3 => b"cart:",
        4 => b"cart:17",
        5 => b"cart:170",
        6 => b"cart:1234567890a",
        7 => b"cart:1234567890abcdef",
        8 => &[b'k'; 120],
        _ => &[b'k'; 1200],
    };
    let value = vec![b'v'; *random.pick(&[&0, &3, &50, &100, &1001])];
    let more: Vec<&[u8]> = vec![b"x"; random.below(12)];
    let mut parts: Vec<&[u8]> = vec![command.as_bytes(), key, &value];
    match random.below(6) {
        0 => parts.truncate(1),
        1 | 2 => parts.truncate(2),
        3 | 4 => {}
        _ => parts.extend(more),
    }
    let mut bytes = resp(&parts);
    match random.below(6) {
        0 => bytes.truncate(random.below(bytes.len())),
        1 => bytes.extend(bytes.clone()),
        _ => {}
    }
    bytes
}
