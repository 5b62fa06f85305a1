//! A network of virtual machines without flooding or ARP: the switch knows the port of each address, and hosts each neighbor.

use std::fmt::Write;
use std::net::Ipv4Addr;

use crate::{Machine, MachineError};

/// A program for the embedded switch (v1model). It forwards a frame to the port of its destination address (port 1 for
/// the first address in `macs`), and drops frames to other addresses.
pub fn switch_program(macs: &[[u8; 6]]) -> String {
    let entries = macs
        .iter()
        .zip(1..)
        .fold(String::new(), |mut text, (mac, port)| {
            let mac = mac.map(|byte| format!("{byte:02x}")).concat();
            // Writing to a string cannot fail.
            let _ = write!(text, " 0x{mac}: forward({port});");
            text
        });
    format!(
        "\
#include <core.p4>
#include <v1model.p4>
header ethernet_h {{ bit<48> dst; bit<48> src; bit<16> type; }}
struct headers_t {{ ethernet_h ethernet; }}
struct metadata_t {{}}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
    state start {{ packet.extract(hdr.ethernet); transition accept; }}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{}} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
    action drop() {{ mark_to_drop(std); }}
    action forward(bit<9> port) {{ std.egress_spec = port; }}
    table macs {{
        key = {{ hdr.ethernet.dst: exact; }}
        actions = {{ forward; drop; }}
        default_action = drop();
        const entries = {{{entries} }}
    }}
    apply {{ macs.apply(); }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{ apply {{}} }}
control C(inout headers_t hdr, inout metadata_t meta) {{ apply {{}} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

/// Arguments of `ip` that set a permanent neighbor entry: IP address, MAC address and interface.
pub fn neighbour(address: Ipv4Addr, mac: [u8; 6], interface: &str) -> String {
    let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
    format!("neighbour replace {address} lladdr {mac} dev {interface} nud permanent")
}

impl Machine {
    /// Sets a permanent neighbor entry in the machine, so that it sends no ARP for this address.
    pub fn introduce(&self, address: Ipv4Addr, mac: [u8; 6]) -> Result<(), MachineError> {
        let arguments = neighbour(address, mac, "eth0");
        self.succeed(&format!("/usr/bin/ip {arguments}"))
            .map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_port() {
        let program = switch_program(&[[2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 10]]);
        let entries = "const entries = { 0x020000000009: forward(1); 0x02000000000a: forward(2); }";
        assert!(program.contains(entries), "{program}");
    }
}
