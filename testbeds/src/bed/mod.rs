//! A running topology: hosts, links, and the attachments of switches.
//!
//! Two backends with one interface: virtual Ethernet between network namespaces ([`Wiring::Veth`]), or sockets between
//! processes ([`Wiring::Memory`]) where namespaces are refused.

mod feed;
mod memory;
mod recording;
mod veth;
mod wire;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use proof::Digest;
use recording::{InterfaceRecording, PortInterface};
use scenario::model::topology::Topology;

use crate::capture::{CaptureError, Filter, Handed, Limits, Recording};
use crate::host::{Host, Process, ProcessError};
use crate::net::{Counters, NetError};

/// How the links of a topology are implemented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wiring {
    /// Virtual Ethernet between network namespaces; needs the calling process to be in a [`crate::sandbox`].
    Veth,
    /// Sockets between processes, with cables in memory.
    Memory,
}

/// Options for bringing up a topology.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the links are implemented.
    pub wiring: Wiring,
    /// Whether the hosts' kernels speak IP on their interfaces. Off for agents, which make their own packets: the
    /// kernel would answer them with ICMP errors.
    pub kernel_ip: bool,
    /// Whether the switches take bundles, packets that stand for many frames. If not, each frame on the links is finished.
    pub bundles: bool,
    /// Which frames are recorded at switch ports.
    pub filter: Filter,
    /// Limits of a recording that is collected in memory.
    pub limits: Limits,
}

/// Errors of a topology while it is brought up or runs.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// An operation on an interface failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A recording failed.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A process in a host failed, or could not be started.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// An operation on a cable or a network namespace failed.
    #[error("cannot build the network: {0}")]
    Io(#[from] io::Error),
    /// Hosts whose kernels speak IP were requested without network namespaces.
    #[error(
        "hosts that speak IP need network namespaces; this scenario cannot run over in-memory links"
    )]
    NoKernelIp,
    /// The topology does not have this host or port.
    #[error("the topology has no {0}")]
    Unknown(String),
}

impl BedError {
    fn no_port(switch: &str, port: u32) -> BedError {
        BedError::Unknown(format!("port {port} of switch {switch}"))
    }
}

/// Where an agent or a switch's port is attached, as their command lines take it.
#[derive(Debug, Clone)]
pub enum Attachment {
    /// A network interface with this name.
    Interface(String),
    /// A socket that the agent or switch inherits.
    Socket(Arc<OwnedFd>),
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attachment::Interface(name) => f.write_str(name),
            Attachment::Socket(fd) => write!(f, "fd:{}", fd.as_fd().as_raw_fd()),
        }
    }
}

/// Recording of one port of a switch.
#[derive(Debug)]
pub struct PortRecording {
    /// Name of the switch.
    pub switch: String,
    /// Number of the switch's port.
    pub port: u32,
    /// Recorded frames; `In` are frames towards the switch.
    pub recording: Recording,
    /// Number of frames that were recorded before the link dropped them, so that they did not arrive.
    pub undelivered: u64,
}

enum Links {
    Veth(veth::VethLinks),
    Memory(memory::MemoryLinks),
    Wire(wire::WireLinks),
}

/// A running topology. Dropping it takes its hosts and links down.
pub struct Bed {
    topology: Topology,
    options: Options,
    /// Recording of the links' frames; declared before them, so that it ends first.
    recording: Option<InterfaceRecording>,
    links: Links,
}

impl Bed {
    /// Brings up the hosts and links of a topology.
    pub fn up(topology: &Topology, options: &Options) -> Result<Bed, BedError> {
        let links = match options.wiring {
            Wiring::Veth => Links::Veth(veth::VethLinks::up(topology, options)?),
            Wiring::Memory => Links::Memory(memory::MemoryLinks::up(topology, options)?),
        };
        Ok(Bed {
            topology: topology.clone(),
            options: options.clone(),
            recording: None,
            links,
        })
    }

    /// A topology of one switch between two interfaces of this namespace, which have been taken already.
    pub fn between(topology: &Topology, interfaces: [&str; 2], options: &Options) -> Bed {
        Bed {
            topology: topology.clone(),
            options: options.clone(),
            recording: None,
            links: Links::Wire(wire::WireLinks::new(topology, interfaces)),
        }
    }

    /// Starts to record ports, given as switch name and port number. `sink` gets the frames with their port's index in `ports`.
    /// `keep` bytes of each frame are kept, and `digest` computes its identity from all its bytes. [`Options::filter`] applies.
    ///
    /// Call it after the switches have opened their ports: the kernel hands a frame first to the packet socket that was bound
    /// last. A frame is then stamped before its switch has it, so a machine that stands still never makes its time in the
    /// switch seem shorter than it was. `sink` runs on the recorder's thread until
    /// [`Bed::stop_recording`] has returned. Frames on links in memory are collected within [`Options::limits`] and handed over
    /// when the recording stops.
    pub fn record_into(
        &mut self,
        ports: &[(String, u32)],
        keep: u32,
        digest: Digest,
        sink: impl FnMut(Handed) + Send + 'static,
    ) -> Result<(), BedError> {
        if let Links::Memory(links) = &mut self.links {
            let limits = Limits {
                frame_bytes: Limits::WHOLE_FRAMES.frame_bytes,
                ..self.options.limits
            };
            return links.record_into(ports, limits, keep, digest, Box::new(sink));
        }
        let interfaces = ports.iter().map(|(switch, port)| {
            self.port_interface(switch, *port)
                .ok_or_else(|| BedError::no_port(switch, *port))
        });
        let interfaces = interfaces.collect::<Result<Vec<_>, _>>()?;
        let filter = self.options.filter;
        let recording = InterfaceRecording::hand_over(interfaces, filter, keep, digest, sink)?;
        self.recording = Some(recording);
        Ok(())
    }

    /// Ends the recording that [`Bed::record_into`] started, at one time for all ports: the sink gets all frames that
    /// passed before, and is dropped. Returns the number of lost frames for each port, in the order of `ports` there;
    /// an empty list if no recording runs.
    pub fn stop_recording(&mut self) -> Result<Vec<u64>, BedError> {
        if let Links::Memory(links) = &mut self.links {
            return Ok(links.stop_recording());
        }
        match self.recording.take() {
            Some(recording) => Ok(recording.stop()?),
            None => Ok(Vec::new()),
        }
    }

    /// Interface that is a switch's port; `None` for a port that the topology does not have, and for links in memory.
    fn port_interface(&self, switch: &str, port: u32) -> Option<PortInterface> {
        match &self.links {
            Links::Veth(links) => links.port_interface(switch, port),
            Links::Wire(links) => links.port_interface(switch, port),
            Links::Memory(_) => None,
        }
    }

    /// Whether a switch that reads frames from packet sockets sees the same timestamps as the captures: the kernel stamps a frame
    /// once, for all sockets.
    pub fn shares_stamps(&self) -> bool {
        matches!(self.links, Links::Veth(_) | Links::Wire(_))
    }

    /// The topology that runs.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A host with its network namespace; `None` over links in memory, or if there is no such host.
    pub fn host(&self, name: &str) -> Option<&Host> {
        match &self.links {
            Links::Veth(links) => links.host(name),
            Links::Memory(_) | Links::Wire(_) => None,
        }
    }

    /// Where the program of a host is attached.
    pub fn host_attachment(&self, host: &str) -> Result<Attachment, BedError> {
        match &self.links {
            Links::Veth(links) => links
                .host(host)
                .map(|_| Attachment::Interface(veth::HOST_INTERFACE.into())),
            Links::Memory(links) => links.host(host),
            Links::Wire(_) => None,
        }
        .ok_or_else(|| BedError::Unknown(format!("host {host}")))
    }

    /// Number and attachment of each port of a switch, in order of port number.
    pub fn ports(&self, switch: &str) -> Vec<(u32, Attachment)> {
        self.topology
            .ports(switch)
            .filter_map(|port| {
                let attachment = match &self.links {
                    Links::Veth(links) => links.port(switch, port.number),
                    Links::Memory(links) => links.port(switch, port.number),
                    Links::Wire(links) => links.port(switch, port.number),
                };
                Some((port.number, attachment?))
            })
            .collect()
    }

    /// Whether the link of a switch's port carries bundles: both its ends may send packets that stand for many frames.
    pub fn port_takes_bundles(&self, switch: &str, port: u32) -> bool {
        match &self.links {
            Links::Veth(links) => links.port_takes_bundles(switch, port),
            // The peer of an existing interface shows that it takes bundles by sending one.
            Links::Memory(_) | Links::Wire(_) => false,
        }
    }

    /// Starts a process in a host of the topology. Where the host's link carries bundles, agents send them from the start
    /// (`WEIR_IO=bundles`), unless `WEIR_IO` is set.
    pub fn spawn_in_host(&self, host: &str, command: Command) -> Result<Process, BedError> {
        let attachment = self.host_attachment(host)?;
        match self.host(host) {
            Some(namespace) => Ok(namespace.spawn(command)?),
            None => Ok(Process::spawn(host, inheriting(command, &[attachment]))?),
        }
    }

    /// Starts a switch's process in the namespace that has the interfaces of the switch's ports.
    pub fn spawn_switch(&self, switch: &str, command: Command) -> Result<Process, BedError> {
        let attachments: Vec<Attachment> =
            self.ports(switch).into_iter().map(|port| port.1).collect();
        let command = inheriting(command, &attachments);
        Ok(Process::spawn_switch(switch, command)?)
    }

    /// Counters of a host's end of its link, received and sent from the host's point of view.
    pub fn host_counters(&self, host: &str) -> Result<Counters, BedError> {
        match &self.links {
            Links::Veth(links) => links.host_counters(host),
            Links::Memory(links) => links
                .host_counters(host)
                .ok_or_else(|| BedError::Unknown(format!("host {host}"))),
            Links::Wire(_) => Err(BedError::Unknown(format!("host {host}"))),
        }
    }
}

/// Lets a child process inherit the sockets among its attachments.
#[allow(unsafe_code)]
fn inheriting(mut command: Command, attachments: &[Attachment]) -> Command {
    let sockets: Vec<Arc<OwnedFd>> = attachments
        .iter()
        .filter_map(|attachment| match attachment {
            Attachment::Socket(fd) => Some(Arc::clone(fd)),
            Attachment::Interface(_) => None,
        })
        .collect();
    if !sockets.is_empty() {
        // SAFETY: fcntl(2) is async-signal-safe, and the closure only touches descriptors that it keeps open.
        unsafe {
            command.pre_exec(move || {
                for socket in &sockets {
                    fcntl(socket.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))
                        .map_err(io::Error::from)?;
                }
                Ok(())
            });
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use nix::sys::socket::{MsgFlags, recv, send};
    use proof::Way;

    use super::*;

    #[test]
    fn frames_on_cables_are_returned_when_the_recording_stops() {
        let topology = Topology::star("s1", &["a", "b"]);
        let options = Options {
            wiring: Wiring::Memory,
            kernel_ip: false,
            bundles: true,
            filter: Filter::Everything,
            limits: Limits::AGGREGATION_HEADERS,
        };
        let mut bed = Bed::up(&topology, &options).unwrap();
        let digest = Digest::of_seed(1);
        let unknown = bed.record_into(&[("s1".into(), 99)], 4, digest, drop);
        assert!(matches!(unknown, Err(BedError::Unknown(_))));
        let ports: Vec<(String, u32)> = bed
            .ports("s1")
            .iter()
            .map(|(port, _)| ("s1".to_owned(), *port))
            .collect();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        bed.record_into(&ports, 4, digest, move |handed| {
            if let Handed::Batch(batch) = handed {
                let frames = batch.sights().map(|sight| {
                    assert_eq!(sight.bytes.len(), 4);
                    (batch.port, sight.way, sight.identity)
                });
                let mut seen = sink.lock().unwrap_or_else(PoisonError::into_inner);
                seen.extend(frames);
            }
        })
        .unwrap();
        let socket = |attachment: Attachment| match attachment {
            Attachment::Socket(fd) => fd,
            Attachment::Interface(name) => panic!("{name}"),
        };
        let host = socket(bed.host_attachment("a").unwrap());
        let switch = bed.ports("s1").into_iter().map(|port| socket(port.1));
        let switch: Vec<_> = switch.collect();
        let (frame, mut buffer) = ([7_u8; 300], [0_u8; 400]);
        send(host.as_raw_fd(), &frame, MsgFlags::empty()).unwrap();
        recv(switch[0].as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap();
        send(switch[1].as_raw_fd(), &frame, MsgFlags::empty()).unwrap();
        let other = socket(bed.host_attachment("b").unwrap());
        recv(other.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap();
        assert_eq!(bed.stop_recording().unwrap(), [0, 0]);
        let identity = digest.of(&frame, 300);
        let mut seen = seen.lock().unwrap().clone();
        seen.sort();
        assert_eq!(seen, [(0, Way::In, identity), (1, Way::Out, identity)]);
        assert!(bed.stop_recording().unwrap().is_empty());
    }
}
