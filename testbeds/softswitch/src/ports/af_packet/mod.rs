//! Linux interfaces through AF_PACKET sockets (packet(7)): [`Ring`] shares its frames with the kernel (PACKET_MMAP),
//! [`Mmsg`] copies them in batches, for systems without the ring.

mod mmsg;
mod ring;
mod slots;
mod socket;

pub use mmsg::Mmsg;
pub use ring::{Options as RingOptions, Ring};
