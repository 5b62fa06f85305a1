//! Which numbers an architecture's ports may have.

use crate::arch::psa::RECIRCULATE_PORT;
use crate::arch::tna;
use crate::arch::v1model::DROP_PORT;
use p4lang::ir::Arch;
use std::ops::RangeInclusive;

/// Why there can be no such port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The type of ports does not hold it, or it means something else.
    #[error("there is no port {port}: this architecture's are {first} to {last}")]
    Unknown {
        /// The number.
        port: u32,
        /// The first port.
        first: u32,
        /// The last one.
        last: u32,
    },
    /// Packets to and from the controller pass it.
    #[error("port {0} is the controller's")]
    Cpu(u32),
    /// What goes there comes back in.
    #[error("port {0} is a recirculation port")]
    Recirculation(u32),
}

/// Where packets may come in: v1model's ports and Tofino's have 9 bits, and v1model's last one means to drop.
#[must_use]
pub fn ports(arch: &Arch) -> RangeInclusive<u32> {
    match arch {
        Arch::V1model => 0..=DROP_PORT - 1,
        Arch::Tna | Arch::T2na => 0..=tna::PORTS - 1,
        Arch::Psa | Arch::Other(_) => 0..=u32::MAX,
    }
}

/// Whether packets may come in at a port.
///
/// # Errors
/// The architecture has no such port.
pub fn check_port(arch: &Arch, port: u32) -> Result<(), PortError> {
    let ports = ports(arch);
    if ports.contains(&port) {
        return Ok(());
    }
    let (first, last) = ports.into_inner();
    Err(PortError::Unknown { port, first, last })
}

/// Whether an interface may be attached to a port.
///
/// # Errors
/// The architecture has no such port, or needs it for itself.
pub fn check_attachable(arch: &Arch, cpu_port: u32, port: u32) -> Result<(), PortError> {
    check_port(arch, port)?;
    let (cpu, recirculates) = match arch {
        Arch::Tna | Arch::T2na => {
            let tofino2 = *arch == Arch::T2na;
            (tna::cpu_port(cpu_port, tofino2), tna::recirculates(port))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CPU_PORT;

    #[test]
    fn what_an_interface_may_be_attached_to() {
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
