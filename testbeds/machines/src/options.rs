//! Options of a virtual machine: its name, network and memory.

use std::net::Ipv4Addr;

/// Options of one virtual machine.
#[derive(Debug, Clone)]
pub struct MachineOptions {
    /// Host name of the machine: letters, digits, hyphens.
    pub name: String,
    /// Name of the machine's tap interface, which is made in the caller's network namespace.
    pub interface: String,
    /// MAC address of the machine.
    pub mac: [u8; 6],
    /// IPv4 address of the machine.
    pub address: Ipv4Addr,
    /// Prefix length of the machine's network, in bits.
    pub prefix: u8,
    /// Maximum length of an IP packet in bytes, also at the tap. The MTU of rxe (software RoCE) is the largest power of two at
    /// least 80 bytes shorter.
    pub mtu: u16,
    /// Memory of the machine, in MiB.
    pub memory_mib: u32,
}

impl MachineOptions {
    /// Options of a machine in a /24 network. Its MTU of 4,200 bytes gives RoCE an MTU of 4,096; its MAC derives from its
    /// address.
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
