//! Options of a machine.

use std::net::Ipv4Addr;

/// Options of one machine.
#[derive(Debug, Clone)]
pub struct MachineOptions {
    /// Its host name: letters, digits, hyphens.
    pub name: String,
    /// Of the tap interface that is made for it in the caller's network namespace.
    pub interface: String,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Bits of the address that its network has.
    pub prefix: u8,
    /// Bytes of an IP packet, on both ends. rxe's own MTU is the largest power of two that fits in 80 bytes less.
    pub mtu: u16,
    /// Its memory.
    pub memory_mib: u32,
}

impl MachineOptions {
    /// A machine on a network of 24 bits, with packets of 4,200 bytes, so that rxe's are of 4,096, and a MAC made of its address.
    pub fn new(name: &str, interface: &str, address: Ipv4Addr) -> Self {
        let [a, b, c, d] = address.octets();
        Self {
            name: name.to_owned(),
            interface: interface.to_owned(),
            mac: [0x02, 0x76, a, b, c, d],
            address,
            prefix: 24,
            mtu: 4200,
            memory_mib: 256,
        }
    }
}
