//! An Ethernet interface, opened with the fastest backend that the system allows.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::str::FromStr;
use std::time::Duration;

use crate::{EthernetFrames, Frames, LinkFault, RingFrames};

/// Backend that exchanges frames with an Ethernet interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Io {
    /// Memory-mapped rings if the system allows them, otherwise pnet.
    #[default]
    Auto,
    /// Rings shared with the kernel (PACKET_MMAP): one system call per batch.
    Rings,
    /// pnet's datalink channel: system calls for each frame.
    Pnet,
}

impl FromStr for Io {
    type Err = String;
    fn from_str(text: &str) -> Result<Io, String> {
        match text {
            "auto" => Ok(Io::Auto),
            "rings" => Ok(Io::Rings),
            "pnet" => Ok(Io::Pnet),
            _ => Err(format!("`{text}` is not one of auto, rings, pnet")),
        }
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Io::Auto => "auto",
            Io::Rings => "rings",
            Io::Pnet => "pnet",
        })
    }
}

/// An Ethernet interface, opened with some backend.
pub struct InterfaceFrames {
    name: String,
    way: Way,
}

enum Way {
    Rings(Box<RingFrames>),
    Pnet(EthernetFrames),
}

impl InterfaceFrames {
    /// Opens an interface of the current network namespace, for UDP frames with this destination port. Also returns the error
    /// of the rings if [`Io::Auto`] fell back to pnet, otherwise `None`.
    pub fn open(
        interface: &str,
        udp_port: u16,
        io: Io,
    ) -> io::Result<(InterfaceFrames, Option<io::Error>)> {
        let rings =
            || RingFrames::open(interface, udp_port).map(|rings| Way::Rings(Box::new(rings)));
        let pnet = || EthernetFrames::open(interface, udp_port).map(Way::Pnet);
        let (way, refused) = match io {
            Io::Pnet => (pnet()?, None),
            Io::Rings => (rings()?, None),
            Io::Auto => match rings() {
                Ok(rings) => (rings, None),
                // If the interface is missing or access is denied, this fails, too, with its own error.
                Err(refused) => (pnet()?, Some(refused)),
            },
        };
        let name = interface.to_owned();
        Ok((InterfaceFrames { name, way }, refused))
    }

    /// The backend that the interface uses; never [`Io::Auto`].
    pub fn io(&self) -> Io {
        match self.way {
            Way::Rings(_) => Io::Rings,
            Way::Pnet(_) => Io::Pnet,
        }
    }
}

impl Way {
    fn inner(&self) -> &dyn Frames {
        match self {
            Way::Rings(frames) => &**frames,
            Way::Pnet(frames) => frames,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Frames {
        match self {
            Way::Rings(frames) => &mut **frames,
            Way::Pnet(frames) => frames,
        }
    }
}

/// Adds the interface's name to an error.
fn named(name: &str) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("interface {name}: {error}"))
}

impl AsFd for InterfaceFrames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Rings(frames) => frames.as_fd(),
            Way::Pnet(frames) => frames.as_fd(),
        }
    }
}

impl Frames for InterfaceFrames {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.way.inner_mut().send(frame).map_err(named(&self.name))
    }

    fn room(&mut self, len: usize) -> io::Result<Option<&mut [u8]>> {
        self.way.inner_mut().room(len).map_err(named(&self.name))
    }

    fn written(&mut self, len: usize) {
        self.way.inner_mut().written(len);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.way.inner_mut().flush().map_err(named(&self.name))
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }

    fn receive(&mut self, timeout: Duration) -> io::Result<Option<&[u8]>> {
        self.way
            .inner_mut()
            .receive(timeout)
            .map_err(named(&self.name))
    }

    fn overflow(&mut self) -> Option<u64> {
        self.way.inner_mut().overflow()
    }

    fn unsent(&self) -> u64 {
        self.way.inner().unsent()
    }

    fn has_waiting(&self, frames: usize) -> bool {
        self.way.inner().has_waiting(frames)
    }

    fn fault(&self) -> Option<LinkFault> {
        self.way.inner().fault()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.way.inner().descriptors()
    }

    fn receive_batch(&mut self, most: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        self.way
            .inner_mut()
            .receive_batch(most, take)
            .map_err(named(&self.name))
    }
}
