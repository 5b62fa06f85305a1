//! Finds and opens an RDMA device, and chooses one of its ports.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::rc::Rc;

use roce::packet::Mtu;

use super::abi::{self, Context, DeviceAttributes, GidEntry, PortAttributes};
use super::library::Library;
use crate::provider::Gid;
use crate::verbs_error::VerbsError;

/// Error number `ENOSYS`, which libibverbs returns if the kernel has no RDMA module.
const NO_SUCH_CALL: i32 = nix::errno::Errno::ENOSYS as i32;
/// Maximum number of entries read from a device's GID table: the kernel takes their length in 16 bits.
const GIDS: usize = 1024;

/// Which RDMA device the caller wants to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The only device that belongs to one of these network interfaces.
    Any(Vec<At>),
    /// The RDMA device with this name.
    Named(String),
    /// The device that belongs to this network interface.
    Interface(At),
}

/// A network interface of this process's network namespace. The kernel by default lists RDMA devices of all namespaces, but
/// traffic of a device from another namespace would not pass this namespace's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// IPv4 address of the interface.
    pub ip: Ipv4Addr,
    /// The kernel's index of the interface.
    pub index: u32,
}

impl At {
    /// Whether a device's port belongs to this interface. `index` is the index of the port's interface, or 0 if unknown.
    fn has(&self, port: &Port, index: u32) -> bool {
        port.ip == self.ip && [0, self.index].contains(&index)
    }
}

/// A port of an RDMA device, with one of its IPv4 addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name of the RDMA device that has the port.
    pub device: String,
    /// Number of the port in its device, from 1.
    pub number: u8,
    /// Index of the IPv4 address in the port's GID table.
    pub gid_index: u8,
    /// IPv4 address of the port.
    pub ip: Ipv4Addr,
    /// Largest path MTU of the port.
    pub mtu: Mtu,
}

impl Port {
    pub fn gid(&self) -> Gid {
        self.ip.into()
    }
}

/// Limits of an RDMA device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub qps: u64,
    /// Maximum number of work requests in a queue.
    pub work: u64,
    pub completions: u64,
    pub regions: u64,
    /// Maximum number of outstanding READs that a queue pair may send, and that its peer may send to it.
    pub reads: [u64; 2],
}

/// An open RDMA device, with its active ports.
pub struct Device {
    pub library: Rc<Library>,
    /// libibverbs' device, which stays open until this value is dropped.
    context: NonNull<Context>,
    pub limits: Limits,
    /// Active ports: one entry for each IPv4 address with RoCEv2, with the kernel's index of the network interface that has it.
    ports: Vec<(Port, u32)>,
    /// Number of a port that is not active, for the error message; `None` if all ports are active.
    inactive: Option<u8>,
}

/// Opens the wanted RDMA device; returns it with the port to use.
///
/// # Errors
/// [`VerbsError`], if there is none or it cannot be used.
pub fn find(library: &Rc<Library>, wanted: &Wanted) -> Result<(Device, Port), VerbsError> {
    let is_wanted = |name: &str| match wanted {
        Wanted::Named(wanted) => name == wanted,
        Wanted::Any(_) | Wanted::Interface(_) => true,
    };
    let (opened, names) = open_all(library, &is_wanted)?;
    let mut refused = None;
    let mut found = Vec::new();
    for (name, opened) in names.iter().zip(opened) {
        let device = match opened {
            Ok(device) => device,
            Err(error) => {
                refused = refused.or(Some(error));
                continue;
            }
        };
        let port = device.ports.iter().find(|(port, interface)| match wanted {
            Wanted::Named(_) => true,
            Wanted::Any(here) => here.iter().any(|at| at.has(port, *interface)),
            Wanted::Interface(at) => at.has(port, *interface),
        });
        match (port, device.inactive) {
            (Some((port, _)), _) => {
                let port = port.clone();
                found.push((device, port));
            }
            (None, Some(port)) => {
                let device = name.clone();
                refused = refused.or(Some(VerbsError::Inactive { device, port }));
            }
            (None, None) => {}
        }
    }
    if found.len() > 1 {
        let names: Vec<String> = found.into_iter().map(|(_, port)| port.device).collect();
        return Err(VerbsError::Several(names.join(", ")));
    }
    if let Some(found) = found.pop() {
        return Ok(found);
    }
    Err(refused.unwrap_or_else(|| match (wanted, &*names) {
        (Wanted::Named(name), []) => VerbsError::Unknown(name.clone()),
        (_, []) => VerbsError::NoDevice,
        (Wanted::Interface(At { ip, .. }), _) => VerbsError::NoAddress(*ip),
        (Wanted::Any(_), names) => VerbsError::NoneHere(names.join(", ")),
        (_, names) => VerbsError::NoIpv4(names.join(", ")),
    }))
}

/// Whether the host has an RDMA device with this name.
pub fn is_device(library: &Rc<Library>, name: &str) -> bool {
    let named = open_all(library, &|other| other == name);
    named.is_ok_and(|(_, names)| !names.is_empty())
}

type Opened = Vec<Result<Device, VerbsError>>;

/// Opens all devices that may be the wanted one; fails if a device cannot be opened.
fn open_all(
    library: &Rc<Library>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<(Opened, Vec<String>), VerbsError> {
    let mut count = 0;
    // SAFETY: the call writes to a local number.
    let list = unsafe { (library.get_device_list)(&raw mut count) };
    if list.is_null() {
        let error = io::Error::last_os_error();
        // The kernel has no RDMA module loaded.
        return match error.raw_os_error() {
            Some(NO_SUCH_CALL) => Err(VerbsError::NoDevice),
            _ => Err(VerbsError::last("ibv_get_device_list")),
        };
    }
    let (mut opened, mut names) = (Vec::new(), Vec::new());
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the list has `count` devices, until it is freed below.
        let device = unsafe { *list.add(at) };
        // SAFETY: the device holds its name, which ends with a zero byte.
        let name = unsafe { CStr::from_ptr((library.get_device_name)(device)) };
        let name = name.to_string_lossy().into_owned();
        if !is_wanted(&name) {
            continue;
        }
        // SAFETY: the device is in the list. An open device stays open when the list is freed (ibv_get_device_list(3)).
        let context = NonNull::new(unsafe { (library.open_device)(device) });
        opened.push(match context {
            Some(context) => Device::new(library.clone(), context, &name),
            None => Err(refusal(&name)),
        });
        names.push(name);
    }
    // SAFETY: the list came from get_device_list.
    unsafe { (library.free_device_list)(list) };
    Ok((opened, names))
}

/// Error for a device that could not be opened. libibverbs opens its file twice, and reports the result of the second attempt.
fn refusal(name: &str) -> VerbsError {
    let error = VerbsError::last("ibv_open_device");
    let Some(file) = file(name) else {
        return error;
    };
    match File::options().read(true).write(true).open(&file) {
        Err(reason) if reason.kind() == io::ErrorKind::PermissionDenied => VerbsError::Permission {
            device: name.to_owned(),
            file,
            reason,
        },
        _ => error,
    }
}

/// Path of the file by which programs open a device, `/dev/infiniband/…`; `None` if it is not known.
fn file(device: &str) -> Option<PathBuf> {
    let entries = fs::read_dir("/sys/class/infiniband_verbs").ok()?;
    let mut files = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let of = fs::read_to_string(entry.path().join("ibdev")).ok()?;
        let file = Path::new("/dev/infiniband").join(entry.file_name());
        (of.trim() == device).then_some(file)
    });
    files.next()
}

impl Device {
    /// Reads limits, ports and addresses of a device that was just opened as `context`.
    fn new(
        library: Rc<Library>,
        context: NonNull<Context>,
        name: &str,
    ) -> Result<Self, VerbsError> {
        // SAFETY: the structure has only numbers, for which zero is valid.
        let mut attributes: DeviceAttributes = unsafe { std::mem::zeroed() };
        // From here on, dropping this value closes the device.
        let mut device = Self {
            library,
            context,
            limits: Limits::new(&attributes),
            ports: Vec::new(),
            inactive: None,
        };
        // SAFETY: the context is open; the call writes one structure of this type.
        let code = unsafe { (device.library.query_device)(context.as_ptr(), &raw mut attributes) };
        VerbsError::returned("ibv_query_device", code)?;
        device.limits = Limits::new(&attributes);
        let gids = device.gids()?;
        for number in 1..=attributes.ports {
            device.add_port(name, number, &gids)?;
        }
        Ok(device)
    }

    fn add_port(&mut self, name: &str, number: u8, gids: &[GidEntry]) -> Result<(), VerbsError> {
        let mut port = PortAttributes::default();
        // SAFETY: the context is open; the call writes at most one structure of this type.
        let code =
            unsafe { (self.library.query_port)(self.context.as_ptr(), number, &raw mut port) };
        VerbsError::returned("ibv_query_port", code)?;
        if port.link_layer != abi::ETHERNET {
            return Ok(());
        }
        if port.state != abi::PORT_ACTIVE {
            self.inactive = Some(number);
            return Ok(());
        }
        let mtu = port.active_mtu.checked_sub(1);
        let mtu = mtu.and_then(|code| Mtu::ALL.get(code as usize).copied());
        let mtu = mtu.unwrap_or(Mtu::B256);
        let of_port = gids
            .iter()
            .filter(|gid| gid.port == u32::from(number) && gid.kind == abi::ROCE_V2);
        self.ports.extend(of_port.filter_map(|gid| {
            let port = Port {
                device: name.to_owned(),
                number,
                gid_index: gid.index.try_into().ok()?,
                ip: Gid(gid.gid).ipv4()?,
                mtu,
            };
            Some((port, gid.interface))
        }));
        Ok(())
    }

    fn gids(&self) -> Result<Vec<GidEntry>, VerbsError> {
        let mut gids = vec![GidEntry::default(); GIDS];
        let (context, first) = (self.context.as_ptr(), gids.as_mut_ptr());
        // SAFETY: the context is open; the call writes at most `GIDS` entries of this size.
        let count = unsafe {
            (self.library.query_gid_table)(context, first, GIDS, 0, size_of::<GidEntry>())
        };
        match usize::try_from(count) {
            Ok(count) => gids.truncate(count),
            Err(_) => {
                let reason = io::Error::from_raw_os_error(count.unsigned_abs() as i32);
                let call = "ibv_query_gid_table";
                return Err(VerbsError::Call { call, reason });
            }
        }
        Ok(gids)
    }

    /// libibverbs' open device, valid as long as this value lives.
    pub fn context(&self) -> NonNull<Context> {
        self.context
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the context is open, and everything created with it is gone: its owner drops this value last.
        unsafe { (self.library.close_device)(self.context.as_ptr()) };
    }
}

impl Limits {
    fn new(attributes: &DeviceAttributes) -> Self {
        let number = |number: i32| u64::try_from(number).unwrap_or(0);
        Self {
            qps: number(attributes.max_qp),
            work: number(attributes.max_qp_wr),
            completions: number(attributes.max_cqe),
            regions: number(attributes.max_mr),
            reads: [
                number(attributes.max_qp_init_rd_atom),
                number(attributes.max_qp_rd_atom),
            ],
        }
    }
}
