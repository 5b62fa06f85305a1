//! An Ethernet interface by the fastest way that the system allows.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;
use std::time::Duration;

use super::{EthernetFrames, Frames, RingFrames};

/// How frames are exchanged with an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Io {
    /// The rings, or, where the system refuses them, pnet.
    #[default]
    Auto,
    /// Rings shared with the kernel (PACKET_MMAP): a system call a batch.
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
            _ => Err(format!("`{text}` is none of auto, rings, pnet")),
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

/// An Ethernet interface.
pub enum InterfaceFrames {
    /// Through rings.
    Rings(RingFrames),
    /// Through pnet.
    Pnet(EthernetFrames),
}

impl InterfaceFrames {
    /// Opens an interface of the current network namespace. Says why, if the rings were wanted and refused.
    pub fn open(interface: &str, io: Io) -> io::Result<(InterfaceFrames, Option<io::Error>)> {
        let pnet = || EthernetFrames::open(interface).map(InterfaceFrames::Pnet);
        match io {
            Io::Pnet => Ok((pnet()?, None)),
            Io::Rings => Ok((InterfaceFrames::Rings(RingFrames::open(interface)?), None)),
            Io::Auto => match RingFrames::open(interface) {
                Ok(rings) => Ok((InterfaceFrames::Rings(rings), None)),
                // An interface that is missing, or not ours to open, fails here too, with its own reason.
                Err(refused) => Ok((pnet()?, Some(refused))),
            },
        }
    }

    /// By which way it was opened.
    pub fn io(&self) -> Io {
        match self {
            InterfaceFrames::Rings(_) => Io::Rings,
            InterfaceFrames::Pnet(_) => Io::Pnet,
        }
    }

    fn inner(&mut self) -> &mut dyn Frames {
        match self {
            InterfaceFrames::Rings(frames) => frames,
            InterfaceFrames::Pnet(frames) => frames,
        }
    }
}

impl AsFd for InterfaceFrames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            InterfaceFrames::Rings(frames) => frames.as_fd(),
            InterfaceFrames::Pnet(frames) => frames.as_fd(),
        }
    }
}

impl Frames for InterfaceFrames {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.inner().send(frame)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner().flush()
    }

    fn receive(&mut self, timeout: Duration) -> io::Result<Option<&[u8]>> {
        self.inner().receive(timeout)
    }

    fn overflow(&mut self) -> Option<u64> {
        self.inner().overflow()
    }

    fn receive_batch(&mut self, most: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        self.inner().receive_batch(most, take)
    }
}
