//! Builds frames: Ethernet, IPv4 and UDP headers around a payload.

pub type Mac = [u8; 6];
pub type Ip = [u8; 4];

/// The bytes as a big-endian number, for action parameters and keys.
pub fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |n, b| n << 8 | u128::from(*b))
}

pub fn ethernet(dst: Mac, src: Mac, ether_type: u16, rest: &[u8]) -> Vec<u8> {
    let mut frame = [dst, src].concat();
    frame.extend(ether_type.to_be_bytes());
    frame.extend(rest);
    frame
}

/// An IPv4 packet with a correct header checksum.
pub fn ipv4(src: Ip, dst: Ip, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend([src, dst].concat());
    let words = packet.chunks(2);
    let sum: u32 = words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) as u16 + (folded >> 16) as u16);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(payload);
    packet
}

pub fn udp(src: u16, dst: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = [src.to_be_bytes(), dst.to_be_bytes()].concat();
    packet.extend(((8 + payload.len()) as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}
