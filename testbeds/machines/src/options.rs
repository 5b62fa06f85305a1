//! Options of a machine.

use std::net::Ipv4Addr;

/// Options of one machine.
#[derive(Debug, Clone)]
pub struct MachineOptions {
    /// Host name: letters, digits, hyphens.
    pub name: String,
    /// Name of the tap interface that is made in the caller's network namespace.
    pub interface: String,
    /// MAC address.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// Prefix length of the network, in bits.
    pub prefix: u8,
    /// Maximum length of an IP packet in bytes, on both ends. rxe's MTU is the largest power of two that is at least 80 bytes shorter.
    pub mtu: u16,
    /// Memory, in MiB.
    pub memory_mib: u32,
}

impl MachineOptions {
    /// A machine in a /24 network with an MTU of 4,200 bytes, so that rxe's is 4,096, and a MAC derived from its address.
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
