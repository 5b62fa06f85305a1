//! A bridge in the test's namespace, to which machines are attached like to a switch.

use machines::{Image, Machine, MachineOptions};
use std::net::Ipv4Addr;
use test_support::namespace::{in_namespace, ip, veth};

pub const A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const B: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// Address of the test's interface, see [`host`].
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);

/// The image, in the namespace of the named test; `None` outside of it, or if something is missing.
pub fn inside(test: &str) -> Option<Image> {
    if !in_namespace(test) {
        return None;
    }
    machines::for_test(test)
}

/// Makes a bridge that sends no packets itself: no spanning tree, no IPv6, no multicast groups.
pub fn bridge(name: &str) {
    ip(&format!(
        "link add {name} mtu 4200 type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    ));
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    ip(&format!("link set {name} up"));
}

/// Attaches an interface of the test's namespace to the bridge.
pub fn host(name: &str, bridge: &str) {
    let port = format!("{name}-port");
    veth(name, &port);
    ip(&format!("link set {port} mtu 4200 master {bridge}"));
    ip(&format!("link set {name} mtu 4200"));
    ip(&format!("address add {HOST}/24 dev {name}"));
}

/// Boots a machine on a bridge.
pub fn one_on_a_bridge(image: &Image) -> Machine {
    bridge("between");
    let machine = Machine::boot(image, &MachineOptions::new("a", "tap-a", A)).expect("a machine");
    ip("link set tap-a master between");
    machine
}

/// Boots two machines on a bridge.
pub fn two_on_a_bridge(image: &Image) -> [Machine; 2] {
    bridge("between");
    let options = [("a", "tap-a", A), ("b", "tap-b", B)]
        .map(|(name, interface, address)| MachineOptions::new(name, interface, address));
    let machines = Machine::boot_all(image, &options).expect("two machines");
    for options in &options {
        ip(&format!("link set {} master between", options.interface));
    }
    for machine in &machines {
        let (name, time) = (machine.name(), machine.boot_time());
        println!(
            "{name}: booted in {time:.1?} by {:?}",
            machine.accelerator()
        );
    }
    machines
}
