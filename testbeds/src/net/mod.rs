//! Creates and configures network interfaces through rtnetlink: veth pairs, addresses, offloads, rates, counters.
//!
//! The calls block. They run on a separate thread, so they may be made from anywhere, even from inside an
//! asynchronous runtime; setting up is not a hot path.

mod bridge_port;
mod ethtool;
mod existing;
mod lasting;
mod neighbours;
mod tbf;

use std::fs;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;
use std::sync::PoisonError;

use futures::{StreamExt, TryStreamExt};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use rtnetlink::LinkUnspec;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute,
    LinkInfo, LinkMessage, Stats64,
};
use tokio::runtime::Runtime;

pub use bridge_port::BridgePort;
pub use ethtool::Merging;
pub use ethtool::Sending;
pub use existing::Found;
pub use lasting::Lasting;

use crate::namespace::Namespace;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Length of the longest interface name, in bytes.
pub const NAME_LIMIT: usize = 15;

/// Error of creating, reading or changing an interface.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The kernel refused an operation on an interface.
    #[error("{what} {interface}: {source}")]
    Interface {
        /// The operation that failed, as text.
        what: &'static str,
        /// Name of the interface.
        interface: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The netlink socket to the kernel failed.
    #[error("netlink: {0}")]
    Channel(#[source] io::Error),
    /// The name is one that no interface can have.
    #[error(
        "`{0}` cannot be the name of an interface: 1 to {NAME_LIMIT} characters, no `/`, no space"
    )]
    Name(String),
}

/// Configuration that [`Netlink::configure`] gives an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Ethernet address of the interface.
    pub mac: Mac,
    /// Size of the largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// IP address and prefix length; `None`: the kernel's own stack does not answer on the interface.
    pub address: Option<(Ipv4Addr, u8)>,
    /// Whether ARP is enabled. Without ARP the peers' addresses must be given with [`Netlink::add_neighbours`].
    pub arp: bool,
    /// Limit on the length of bundles, in bytes with the Ethernet header: the interface sends packets that stand for many frames,
    /// and leaves checksums unfinished, for a peer that takes both. The kernel splits longer ones. At most 65,536. `None`: each packet
    /// that leaves is a finished frame.
    pub bundles: Option<u32>,
}

/// One end of a new virtual Ethernet pair.
#[derive(Debug, Clone, Copy)]
pub struct LinkEnd<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Namespace of the interface; `None`: the namespace of the [`Netlink`].
    pub namespace: Option<&'a Namespace>,
}

/// A limit on the sending rate of an interface, enforced by a token bucket in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Bits per second, including the Ethernet header and without the FCS.
    pub rate_bps: u64,
    /// Maximum number of bytes that are sent at once at the speed of the link.
    pub burst_bytes: u32,
    /// Maximum number of bytes that wait; the kernel drops frames beyond it.
    pub limit_bytes: u32,
}

/// Counters of an interface. Bytes do not include the FCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Number of bytes received.
    pub rx_bytes: u64,
    /// Number of frames received.
    pub rx_frames: u64,
    /// Number of bytes sent.
    pub tx_bytes: u64,
    /// Number of frames sent.
    pub tx_frames: u64,
    /// Number of frames not received for lack of buffer space.
    pub rx_dropped: u64,
    /// Number of frames that were to be sent and were dropped.
    pub tx_dropped: u64,
}

/// A connection to the kernel that controls the interfaces of one network namespace.
pub struct Netlink {
    namespace: Namespace,
    /// The netlink connection; the lock makes one request run at a time.
    channel: Mutex<(Runtime, rtnetlink::Handle)>,
}

impl Netlink {
    /// Opens a connection for the namespace of the calling thread.
    pub fn open() -> Result<Netlink, NetError> {
        let namespace = Namespace::current().map_err(NetError::Channel)?;
        Netlink::open_in(&namespace)
    }

    /// Opens a connection for another namespace; it keeps working when the calling thread is elsewhere.
    pub fn open_in(namespace: &Namespace) -> Result<Netlink, NetError> {
        let channel = namespace
            .run(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_io()
                    .build()?;
                let (connection, handle, _) = {
                    let _guard = runtime.enter();
                    rtnetlink::new_connection()?
                };
                runtime.spawn(connection);
                Ok((runtime, handle))
            })
            .map_err(NetError::Channel)?;
        Ok(Netlink {
            namespace: namespace.clone(),
            channel: Mutex::new(channel),
        })
    }

    /// Creates a virtual Ethernet pair, both ends down and in this namespace.
    pub fn create_veth(&self, name: &str, peer: &str) -> Result<(), NetError> {
        let ends = [name, peer].map(|name| LinkEnd {
            name,
            namespace: None,
        });
        self.connect(ends, 0)
    }

    /// Creates a virtual Ethernet pair, each end down and in its namespace. Moving an interface to a namespace afterwards
    /// makes the kernel wait for an RCU grace period. `group` is for [`Netlink::remove_group`]; the kernel's default is 0.
    pub fn connect(&self, ends: [LinkEnd<'_>; 2], group: u32) -> Result<(), NetError> {
        let end = |end: &LinkEnd<'_>| {
            check_name(end.name)?;
            let mut attributes = vec![
                LinkAttribute::IfName(end.name.to_owned()),
                LinkAttribute::Group(group),
            ];
            attributes.extend(
                end.namespace
                    .map(|namespace| LinkAttribute::NetNsFd(namespace.as_fd().as_raw_fd())),
            );
            let mut message = LinkMessage::default();
            message.attributes = attributes;
            Ok(message)
        };
        let [mut message, peer] = [end(&ends[0])?, end(&ends[1])?];
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.request("cannot create", ends[0].name, |handle| async move {
            handle.link().add(message).execute().await
        })
    }

    /// Removes all interfaces of an interface group and their peers in one request. An empty group is no error.
    pub fn remove_group(&self, group: u32) -> Result<(), NetError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::Group(group));
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::DelLink(message));
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK;
        let removed = self.request("cannot remove", "a group", |handle| {
            acknowledged(handle, request)
        });
        match removed {
            Err(NetError::Interface { source, .. })
                if source.raw_os_error() == Some(libc::ENODEV) =>
            {
                Ok(())
            }
            other => other,
        }
    }

    /// Moves an interface into another namespace. The interface is then down and without addresses.
    pub fn move_to(&self, name: &str, namespace: &Namespace) -> Result<(), NetError> {
        let index = self.index(name)?;
        let fd = namespace.as_fd().as_raw_fd();
        let message = LinkUnspec::new_with_index(index).setns_by_fd(fd).build();
        self.request("cannot move", name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// Gives an interface its addresses, switches off what would create or merge frames (IPv6, receive offloads) and, without
    /// [`Interface::bundles`], what would leave frames unfinished, and brings it up.
    pub fn configure(&self, interface: &Interface) -> Result<(), NetError> {
        let name = &interface.name;
        let index = self.index(name)?;
        let mut link = LinkUnspec::new_with_index(index)
            .address(interface.mac.to_vec())
            .mtu(interface.mtu)
            .arp(interface.arp)
            .append_extra_attribute(no_ipv6_address());
        if let Some(limit) = interface.bundles {
            // A limit of up to 65,536 bytes holds for IPv4, too.
            link = link.append_extra_attribute(LinkAttribute::GsoMaxSize(limit));
        }
        let message = link.build();
        self.request("cannot configure", name, |handle| async move {
            handle.link().set(message).execute().await
        })?;
        self.disable_ipv6(name)?;
        self.namespace
            .run(|| ethtool::offloads_off(name, interface.bundles.is_none()))
            .map_err(|source| failure("cannot switch the offloads off of", name, source))?;
        if let Some((address, prefix)) = interface.address {
            self.request("cannot give an address to", name, |handle| async move {
                handle
                    .address()
                    .add(index, IpAddr::V4(address), prefix)
                    .execute()
                    .await
            })?;
        }
        let up = LinkUnspec::new_with_index(index).up().build();
        self.request("cannot bring up", name, |handle| async move {
            handle.link().set(up).execute().await
        })
    }

    /// Lets the interfaces that are created in this namespace from now on deliver what they receive on one processor, so that all
    /// listeners of an interface get its packets in the same order. Returns `false` where the kernel cannot (before Linux 6.3), or
    /// /proc/sys is read-only. `number` chooses the processor, so that the work of several interfaces can be spread; `None`: new
    /// interfaces deliver on the sending processor again.
    ///
    /// Unlike [`Netlink::one_order`], it also orders bundles: Linux puts only packets of senders without segmentation offloads
    /// into a virtual Ethernet interface's queue.
    pub fn deliver_on_one_processor(&self, number: Option<usize>) -> Result<bool, NetError> {
        let path = "/proc/sys/net/core/rps_default_mask";
        let mask = number.map_or("0".to_owned(), processor_mask);
        let result = self.namespace.run(|| fs::write(path, mask));
        match result.map_err(|error| (error.raw_os_error(), error)) {
            Ok(()) => Ok(true),
            // The last: the processor is isolated (`isolcpus`).
            Err((
                Some(libc::ENOENT | libc::EROFS | libc::EACCES | libc::EPERM | libc::EINVAL),
                _,
            )) => Ok(false),
            Err((_, source)) => Err(failure("cannot order", "new interfaces", source)),
        }
    }

    /// Delivers frames of a virtual Ethernet interface unmerged and in the same order to all its listeners, whichever processors
    /// the frames come from, if the other end sends no bundles. Kernels before 5.19 cannot; they deliver frames in any order.
    pub fn one_order(&self, name: &str) -> Result<(), NetError> {
        let index = self.index(name)?;
        let message = LinkUnspec::new_with_index(index)
            // With a limit of one byte per merged frame, GRO merges none.
            .append_extra_attribute(LinkAttribute::GroMaxSize(1))
            .build();
        let limited = self.request("cannot configure", name, |handle| async move {
            handle.link().set(message).execute().await
        });
        if limited.is_err() {
            return Ok(());
        }
        let set = self.namespace.run(|| ethtool::one_queue(name));
        set.map_err(|source| failure("cannot order", name, source))
    }

    /// Adds permanent neighbor entries (IP address and Ethernet address), so the host sends no ARP for them.
    pub fn add_neighbours(
        &self,
        name: &str,
        neighbours: impl IntoIterator<Item = (Ipv4Addr, Mac)>,
    ) -> Result<(), NetError> {
        let index = self.index(name)?;
        let entries = neighbours
            .into_iter()
            .map(|(address, mac)| neighbours::entry(index, address, mac));
        let entries: Vec<_> = entries.collect();
        let told = self.namespace.run(|| neighbours::add(entries));
        told.map_err(|source| failure("cannot add a neighbour on", name, source))
    }

    /// Limits the sending rate of an interface.
    pub fn limit_rate(&self, name: &str, rate: Rate) -> Result<(), NetError> {
        let index = self.index(name)?;
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewQueueDiscipline(
            tbf::message(index, rate),
        ));
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        self.request("cannot limit the rate of", name, |handle| {
            acknowledged(handle, request)
        })
    }

    /// Removes an interface; if it is an end of a virtual Ethernet pair, the other end too.
    pub fn remove(&self, name: &str) -> Result<(), NetError> {
        let index = self.index(name)?;
        self.request("cannot remove", name, |handle| async move {
            handle.link().del(index).execute().await
        })
    }

    /// Reads the counters of an interface.
    pub fn counters(&self, name: &str) -> Result<Counters, NetError> {
        let statistics = self
            .link(name)?
            .attributes
            .into_iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Stats64(statistics) => Some(statistics),
                _ => None,
            });
        match statistics {
            Some(Stats64 {
                rx_bytes,
                rx_packets,
                tx_bytes,
                tx_packets,
                rx_dropped,
                tx_dropped,
                ..
            }) => Ok(Counters {
                rx_bytes,
                rx_frames: rx_packets,
                tx_bytes,
                tx_frames: tx_packets,
                rx_dropped,
                tx_dropped,
            }),
            None => Err(failure(
                "no counters of",
                name,
                io::ErrorKind::Unsupported.into(),
            )),
        }
    }

    /// The names of all interfaces of the namespace.
    pub fn interfaces(&self) -> Result<Vec<String>, NetError> {
        Ok(self.links()?.iter().filter_map(existing::name_in).collect())
    }

    fn links(&self) -> Result<Vec<LinkMessage>, NetError> {
        self.request("cannot list", "interfaces", |handle| async move {
            handle.link().get().execute().try_collect().await
        })
    }

    fn index(&self, name: &str) -> Result<u32, NetError> {
        Ok(self.link(name)?.header.index)
    }

    fn link(&self, name: &str) -> Result<LinkMessage, NetError> {
        check_name(name)?;
        let wanted = name.to_owned();
        let link = self.request("cannot find", name, |handle| async move {
            handle
                .link()
                .get()
                .match_name(wanted)
                .execute()
                .try_next()
                .await
        })?;
        link.ok_or_else(|| failure("cannot find", name, io::ErrorKind::NotFound.into()))
    }

    /// Disables IPv6 on an interface where /proc/sys is writable; the netlink attribute only prevents IPv6 addresses.
    fn disable_ipv6(&self, name: &str) -> Result<(), NetError> {
        let path = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        let result = self.namespace.run(|| fs::write(path, "1"));
        match result.map_err(|error| (error.raw_os_error(), error)) {
            Ok(()) => Ok(()),
            // A kernel without IPv6; a container whose /proc/sys is read-only.
            Err((Some(libc::ENOENT | libc::EROFS | libc::EACCES | libc::EPERM), _)) => Ok(()),
            Err((_, source)) => Err(failure("cannot disable IPv6 on", name, source)),
        }
    }

    fn request<T, F>(
        &self,
        what: &'static str,
        interface: &str,
        work: impl FnOnce(rtnetlink::Handle) -> F + Send,
    ) -> Result<T, NetError>
    where
        T: Send,
        F: Future<Output = Result<T, rtnetlink::Error>>,
    {
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let (runtime, handle) = &*channel;
        let result = std::thread::scope(|scope| {
            scope
                .spawn(|| runtime.block_on(work(handle.clone())))
                .join()
                .unwrap_or(Err(rtnetlink::Error::RequestFailed))
        });
        result.map_err(|error| failure(what, interface, io_error(error)))
    }
}

/// Sends a netlink request and waits for the kernel's acknowledgment.
async fn acknowledged(
    mut handle: rtnetlink::Handle,
    request: NetlinkMessage<RouteNetlinkMessage>,
) -> Result<(), rtnetlink::Error> {
    let mut answers = handle.request(request)?;
    while let Some(answer) = answers.next().await {
        if let NetlinkPayload::Error(error) = answer.payload
            && error.raw_code() != 0
        {
            return Err(rtnetlink::Error::NetlinkError(error));
        }
    }
    Ok(())
}

fn failure(what: &'static str, interface: &str, source: io::Error) -> NetError {
    NetError::Interface {
        what,
        interface: interface.into(),
        source,
    }
}

fn io_error(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other.to_string()),
    }
}

/// Netlink attribute for no IPv6 link-local address, hence no duplicate address detection and no router solicitation.
fn no_ipv6_address() -> LinkAttribute {
    LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(
        In6AddrGenMode::None,
    )])])
}

/// Mask of one of the processors that this process may use, as files of the kernel have it: 32 bits a word.
fn processor_mask(number: usize) -> String {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let allowed = (0..CpuSet::count()).filter(|processor| allowed.is_set(*processor) == Ok(true));
    let allowed: Vec<usize> = allowed.collect();
    let processor = allowed.get(number % allowed.len().max(1)).unwrap_or(&0);
    format!(
        "{:x}{}",
        1_u32 << (processor % 32),
        ",00000000".repeat(processor / 32)
    )
}

fn check_name(name: &str) -> Result<(), NetError> {
    let bad = name.is_empty()
        || name.len() > NAME_LIMIT
        || name == "."
        || name == ".."
        || name
            .chars()
            .any(|c| c == '/' || c == ':' || c.is_whitespace() || c.is_control());
    if bad {
        Err(NetError::Name(name.into()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_would_refuse_or_cut() {
        for name in [
            "",
            ".",
            "..",
            "a b",
            "a/b",
            "a:b",
            "sixteen-letters-",
            "tab\t",
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["w0", "fifteen-letters", "s1-p3"] {
            assert!(check_name(name).is_ok(), "{name:?}");
        }
    }
}
