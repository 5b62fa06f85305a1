//! Port numbers with a meaning, and checks of port numbers, for each architecture.

use p4lang::ir::Arch;
use std::ops::RangeInclusive;

/// PSA's recirculation port: `PSA_PORT_RECIRCULATE`.
pub const RECIRCULATE_PORT: u32 = 0xffff_fffa;
/// The default CPU port: `PSA_PORT_CPU`.
pub const CPU_PORT: u32 = 0xffff_fffd;
/// v1model's `egress_spec` that drops the packet.
pub const DROP_PORT: u32 = 511;
/// Number of pipes of a Tofino.
pub(crate) const PIPES: u32 = 4;
/// Number of device ports of a Tofino, over all its pipes.
pub(crate) const PORTS: u32 = PIPES << 7;
/// Device port of the CPU on the PCIe bus: first that of a Tofino 1, then that of a Tofino 2.
pub(crate) const CPU_PORTS: [u32; 2] = [320, 0];
/// Recirculation ports within each pipe of a Tofino.
pub(crate) const RECIRCULATION: std::ops::RangeInclusive<u32> = 68..=71;

/// The reason why a port number is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The number exceeds the architecture's type for ports, or does not denote a port.
    #[error("port {port} does not exist: this architecture has ports {first} to {last}")]
    Unknown {
        /// The invalid port number.
        port: u32,
        /// The lowest valid port number.
        first: u32,
        /// The highest valid port number.
        last: u32,
    },
    /// The port with this number is reserved for packets to and from the controller.
    #[error("port {0} is reserved for the controller")]
    Cpu(u32),
    /// The port with this number is a recirculation port.
    #[error("port {0} is reserved for recirculation")]
    Recirculation(u32),
}

/// Valid ingress ports: v1model's and Tofino's port numbers have 9 bits, and v1model's highest one means to drop.
#[must_use]
pub fn ports(arch: &Arch) -> RangeInclusive<u32> {
    match arch {
        Arch::V1model => 0..=DROP_PORT - 1,
        Arch::Tna | Arch::T2na => 0..=PORTS - 1,
        Arch::Psa | Arch::Other(_) => 0..=u32::MAX,
    }
}

/// Checks that packets may arrive at this port of a switch.
///
/// # Errors
/// Returns an error if the architecture has no such port.
pub fn check_port(arch: &Arch, port: u32) -> Result<(), PortError> {
    let ports = ports(arch);
    if ports.contains(&port) {
        return Ok(());
    }
    let (first, last) = ports.into_inner();
    Err(PortError::Unknown { port, first, last })
}

/// Checks that an interface may be attached to this port of a switch.
///
/// # Errors
/// Returns an error if the architecture has no such port, or reserves it.
pub fn check_attachable(arch: &Arch, cpu_port: u32, port: u32) -> Result<(), PortError> {
    check_port(arch, port)?;
    let (cpu, recirculates) = match arch {
        Arch::Tna | Arch::T2na => {
            let tofino2 = *arch == Arch::T2na;
            (device_cpu_port(cpu_port, tofino2), recirculates(port))
        }
        _ => (cpu_port, *arch == Arch::Psa && port == RECIRCULATE_PORT),
    };
    if port == cpu {
        return Err(PortError::Cpu(port));
    }
    if recirculates {
        return Err(PortError::Recirculation(port));
    }
    Ok(())
}

/// The device port of a Tofino's CPU: `configured` if that is a valid device port, else the chip's default.
pub(crate) fn device_cpu_port(configured: u32, tofino2: bool) -> u32 {
    if configured < PORTS {
        configured
    } else {
        CPU_PORTS[usize::from(tofino2)]
    }
}

/// Whether every Tofino returns packets that leave through this device port to ingress.
pub(crate) fn recirculates(port: u32) -> bool {
    RECIRCULATION.contains(&(port & 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CPU_PORT;

    #[test]
    fn ports_to_which_an_interface_may_be_attached() {
        let check = |arch: &Arch, port| check_attachable(arch, CPU_PORT, port);
        let unknown = |port, last| {
            Err(PortError::Unknown {
                port,
                first: 0,
                last,
            })
        };
        assert_eq!(check(&Arch::V1model, 510), Ok(()));
        assert_eq!(check(&Arch::V1model, 511), unknown(511, 510));
        assert_eq!(check(&Arch::V1model, 600), unknown(600, 510));
        assert_eq!(
            check_attachable(&Arch::V1model, 510, 510),
            Err(PortError::Cpu(510))
        );
        assert_eq!(check(&Arch::Psa, 600), Ok(()));
        assert_eq!(
            check(&Arch::Psa, RECIRCULATE_PORT),
            Err(PortError::Recirculation(RECIRCULATE_PORT))
        );
        assert_eq!(check(&Arch::Psa, CPU_PORT), Err(PortError::Cpu(CPU_PORT)));
        assert_eq!(check(&Arch::Tna, 0), Ok(()));
        assert_eq!(check(&Arch::Tna, 512), unknown(512, 511));
        assert_eq!(
            check(&Arch::Tna, 68 + 128),
            Err(PortError::Recirculation(196))
        );
        assert_eq!(check(&Arch::Tna, 320), Err(PortError::Cpu(320)));
        assert_eq!(check(&Arch::T2na, 0), Err(PortError::Cpu(0)));
        assert_eq!(check(&Arch::T2na, 320), Ok(()));
    }
}
