//! Links of a topology as cables between processes: frames run through sockets and a thread of ours that counts and records.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use proof::Digest;
use scenario::model::topology::Topology;

use super::feed::feed;
use super::{Attachment, BedError, Options, PortRecording};
use crate::capture::{Handed, Limits, Recording};
use crate::link::{CableId, Hub, HubBuilder};
use crate::net::Counters;

/// A switch's port: the switch's end of a cable.
struct Port {
    cable: CableId,
    attachment: Attachment,
    /// Whether the switch has end A of the cable. The cable then records frames from the switch as `In`.
    is_end_a: bool,
}

/// Ports whose frames are recorded for a sink.
struct Streamed {
    ports: Vec<(String, u32)>,
    keep: u32,
    digest: Digest,
    sink: Box<dyn FnMut(Handed) + Send>,
}

pub struct MemoryLinks {
    hub: Hub,
    hosts: BTreeMap<String, (CableId, Attachment)>,
    ports: BTreeMap<(String, u32), Port>,
    /// A recording for a sink, which only `&mut self` accesses. The mutex makes [`MemoryLinks`] `Sync`; a sink need not be.
    streamed: Mutex<Option<Streamed>>,
}

impl MemoryLinks {
    pub fn up(topology: &Topology, options: &Options) -> Result<MemoryLinks, BedError> {
        if options.kernel_ip {
            return Err(BedError::NoKernelIp);
        }
        let mut builder = HubBuilder::new();
        let (mut hosts, mut ports) = (BTreeMap::new(), BTreeMap::new());
        for link in &topology.links {
            let (cable, ends) = builder.cable(None)?;
            // Between a host and a switch, end B is the switch.
            let [first, second] = &link.ends;
            let (a, b) = if topology.has_switch(first) {
                (second, first)
            } else {
                (first, second)
            };
            for (node, fd, is_end_a) in [(a, ends.a, true), (b, ends.b, false)] {
                let attachment = Attachment::Socket(Arc::new(fd));
                match topology
                    .ports(node)
                    .find(|port| std::ptr::eq(port.link, link))
                {
                    Some(port) if topology.has_switch(node) => {
                        let port_of_switch = Port {
                            cable,
                            attachment,
                            is_end_a,
                        };
                        ports.insert((node.clone(), port.number), port_of_switch);
                    }
                    _ => {
                        hosts.insert(node.clone(), (cable, attachment));
                    }
                }
            }
        }
        Ok(MemoryLinks {
            hub: builder.start()?,
            hosts,
            ports,
            streamed: Mutex::default(),
        })
    }

    pub fn host(&self, name: &str) -> Option<Attachment> {
        self.hosts.get(name).map(|host| host.1.clone())
    }

    pub fn port(&self, switch: &str, port: u32) -> Option<Attachment> {
        self.ports
            .get(&(switch.to_owned(), port))
            .map(|port| port.attachment.clone())
    }

    /// Counters of a host. A host has end A of its cable, so frames that entered the cable there are frames that the host sent.
    pub fn host_counters(&self, host: &str) -> Option<Counters> {
        let cable = self.hub.counters(self.hosts.get(host)?.0)?;
        Some(Counters {
            rx_bytes: cable.tx_bytes,
            rx_frames: cable.tx_frames,
            rx_dropped: cable.tx_dropped,
            tx_bytes: cable.rx_bytes,
            tx_frames: cable.rx_frames,
            tx_dropped: cable.rx_dropped,
        })
    }

    /// Starts to record ports for `sink`, each as a whole within limits; [`MemoryLinks::stop_recording`] hands the frames over.
    pub fn record_into(
        &mut self,
        ports: &[(String, u32)],
        limits: Limits,
        keep: u32,
        digest: Digest,
        sink: Box<dyn FnMut(Handed) + Send>,
    ) -> Result<(), BedError> {
        for (switch, port) in ports {
            let end = self.ports.get(&(switch.clone(), *port));
            let end = end.ok_or_else(|| BedError::no_port(switch, *port))?;
            self.hub.record(end.cable, limits);
        }
        *self.streamed() = Some(Streamed {
            ports: ports.to_vec(),
            keep,
            digest,
            sink,
        });
        Ok(())
    }

    /// Ends the recording that [`MemoryLinks::record_into`] started, hands its frames over to the sink, and returns the
    /// number of lost frames for each port.
    pub fn stop_recording(&mut self) -> Vec<u64> {
        let Some(mut streamed) = self.streamed().take() else {
            return Vec::new();
        };
        let recordings = self.take(&streamed.ports);
        feed(
            &recordings,
            streamed.keep,
            streamed.digest,
            &mut streamed.sink,
        )
    }

    fn streamed(&mut self) -> &mut Option<Streamed> {
        self.streamed
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the recordings of these ports and returns them in the order of `ports`, without ports that were not recorded.
    fn take(&self, ports: &[(String, u32)]) -> Vec<PortRecording> {
        let mut taken: BTreeMap<CableId, Option<Recording>> = BTreeMap::new();
        let recordings = ports.iter().filter_map(|(switch, port)| {
            let end = self.ports.get(&(switch.clone(), *port))?;
            let recording = taken
                .entry(end.cable)
                .or_insert_with(|| self.hub.recording(end.cable));
            let mut recording = recording.clone()?;
            let counters = self.hub.counters(end.cable)?;
            let undelivered = if end.is_end_a {
                for frame in &mut recording.frames {
                    frame.direction = frame.direction.reversed();
                }
                counters.tx_dropped
            } else {
                counters.rx_dropped
            };
            Some(PortRecording {
                switch: switch.clone(),
                port: *port,
                recording,
                undelivered,
            })
        });
        recordings.collect()
    }
}
