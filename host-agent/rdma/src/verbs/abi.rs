//! Structures and constants of libibverbs on 64-bit machines, version IBVERBS_1.1, which rdma-core keeps stable.
//!
//! Each structure is only as long as necessary: complete where libibverbs writes into a structure of ours, and only the
//! beginning where libibverbs owns it. Sizes and offsets are compared at compile time with those of rdma-core 44's header,
//! measured by a C compiler.

use std::ffi::{c_int, c_void};
use std::mem::{offset_of, size_of};

/// libibverbs' struct of an open device; some functions of verbs are function pointers in it.
#[repr(C)]
pub struct Context {
    device: *mut c_void,
    before: [*mut c_void; 11],
    pub poll_cq: Option<unsafe extern "C" fn(*mut Cq, c_int, *mut WorkCompletion) -> c_int>,
    pub req_notify_cq: Option<unsafe extern "C" fn(*mut Cq, c_int) -> c_int>,
    between: [*mut c_void; 12],
    pub post_send:
        Option<unsafe extern "C" fn(*mut Qp, *mut SendWork, *mut *mut SendWork) -> c_int>,
    pub post_recv:
        Option<unsafe extern "C" fn(*mut Qp, *mut ReceiveWork, *mut *mut ReceiveWork) -> c_int>,
}

/// Declares types of libibverbs that are only used behind pointers.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])* #[repr(C)] pub struct $name { _opaque: [u8; 0] })*
    };
}

opaque! {
    /// A device in libibverbs' list of devices.
    Device
    /// libibverbs' protection domain of a device.
    Pd
    /// libibverbs' completion queue of a device.
    Cq
}

/// A completion channel, which reports completion events.
#[repr(C)]
pub struct Channel {
    context: *mut Context,
    pub fd: c_int,
}

/// libibverbs' struct of a registered memory region.
#[repr(C)]
pub struct Mr {
    context: *mut Context,
    pd: *mut Pd,
    address: *mut c_void,
    length: usize,
    handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

/// libibverbs' struct of a queue pair.
#[repr(C)]
pub struct Qp {
    pointers: [*mut c_void; 6],
    handle: u32,
    pub number: u32,
}

/// libibverbs' struct of a device's limits.
#[repr(C)]
pub struct DeviceAttributes {
    identity: [u64; 12],
    versions: [u32; 3],
    pub max_qp: c_int,
    pub max_qp_wr: c_int,
    flags: u32,
    max_sge: [c_int; 2],
    max_cq: c_int,
    pub max_cqe: c_int,
    pub max_mr: c_int,
    max_pd: c_int,
    /// Maximum number of outstanding READs of the peer at a queue pair.
    pub max_qp_rd_atom: c_int,
    others: [c_int; 2],
    /// Maximum number of outstanding READs that a queue pair may send.
    pub max_qp_init_rd_atom: c_int,
    more: [c_int; 16],
    pkeys: u16,
    delay: u8,
    pub ports: u8,
    end: u32,
}

/// libibverbs' struct of a port's attributes.
#[repr(C)]
#[derive(Default)]
pub struct PortAttributes {
    pub state: u32,
    max_mtu: u32,
    pub active_mtu: u32,
    others: [u32; 8],
    speed: u16,
    pub link_layer: u8,
    flags: u8,
    more: u32,
}

/// libibverbs' struct of an entry in a port's GID table. The GID is a union with 64-bit numbers in C: hence the alignment.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub struct GidEntry {
    pub gid: [u8; 16],
    pub index: u32,
    pub port: u32,
    pub kind: u32,
    /// The kernel's index of the network interface that has the GID; 0 if unknown.
    pub interface: u32,
}

/// Attributes with which a queue pair is created.
#[repr(C)]
pub struct QpInit {
    pub qp_context: *mut c_void,
    pub send_cq: *mut Cq,
    pub recv_cq: *mut Cq,
    pub srq: *mut c_void,
    pub capacity: Capacity,
    pub kind: u32,
    pub sq_sig_all: c_int,
    pub end: u32,
}

/// Depths of a queue pair's send queue and receive queue, and related limits.
#[repr(C)]
#[derive(Default)]
pub struct Capacity {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

/// Attributes that a state transition of a queue pair sets.
#[repr(C)]
#[derive(Default)]
pub struct QpAttributes {
    pub state: u32,
    pub current_state: u32,
    pub path_mtu: u32,
    pub migration: u32,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub peer_qpn: u32,
    pub access: u32,
    pub capacity: Capacity,
    pub path: Path,
    pub other_path: Path,
    pub pkey_index: u16,
    pub other_pkey_index: u16,
    pub drained: [u8; 2],
    pub max_reads: u8,
    pub max_peer_reads: u8,
    pub rnr_timer: u8,
    pub port: u8,
    pub timeout: u8,
    pub retry_count: u8,
    pub rnr_retry: u8,
    pub other_port: u8,
    pub other_timeout: u8,
    pub rate_limit: u32,
    pub end: u32,
}

/// Address vector: path from a queue pair to its peer. The GID is a union with 64-bit numbers in C: hence the alignment.
#[repr(C, align(8))]
#[derive(Default)]
pub struct Path {
    pub gid: [u8; 16],
    pub flow_label: u32,
    pub gid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub pad: u8,
    pub lid: u16,
    pub service_level: u8,
    pub source_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port: u8,
}

/// A range of bytes in a registered memory region (scatter/gather element).
#[repr(C)]
pub struct Range {
    pub address: u64,
    pub length: u32,
    pub lkey: u32,
}

/// libibverbs' struct of a work request for the send queue.
#[repr(C)]
pub struct SendWork {
    pub id: u64,
    pub next: *mut SendWork,
    pub ranges: *mut Range,
    pub num_ranges: c_int,
    pub opcode: u32,
    pub flags: u32,
    pub immediate: [u8; 4],
    pub remote_address: u64,
    pub rkey: u32,
    /// Fields that weir leaves 0: for atomics, other transports, memory windows, segmentation.
    pub others: [u64; 9],
}

/// libibverbs' struct of a work request for the receive queue.
#[repr(C)]
pub struct ReceiveWork {
    pub id: u64,
    pub next: *mut ReceiveWork,
    pub ranges: *mut Range,
    pub num_ranges: c_int,
}

/// libibverbs' struct of a work request's completion.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct WorkCompletion {
    pub id: u64,
    pub status: u32,
    pub opcode: u32,
    pub vendor: u32,
    pub byte_len: u32,
    pub immediate: [u8; 4],
    pub qpn: u32,
    pub source_qp: u32,
    pub flags: u32,
    pub more: [u32; 2],
}

const _: () = {
    assert!(offset_of!(Context, poll_cq) == 8 + 88);
    assert!(offset_of!(Context, req_notify_cq) == 8 + 96);
    assert!(offset_of!(Context, post_send) == 8 + 200);
    assert!(offset_of!(Context, post_recv) == 8 + 208);
    assert!(offset_of!(Channel, fd) == 8);
    assert!(offset_of!(Mr, lkey) == 36 && offset_of!(Mr, rkey) == 40);
    assert!(offset_of!(Qp, number) == 52);

    assert!(size_of::<DeviceAttributes>() == 232);
    assert!(offset_of!(DeviceAttributes, max_qp) == 108);
    assert!(offset_of!(DeviceAttributes, max_qp_wr) == 112);
    assert!(offset_of!(DeviceAttributes, max_cqe) == 132);
    assert!(offset_of!(DeviceAttributes, max_mr) == 136);
    assert!(offset_of!(DeviceAttributes, max_qp_rd_atom) == 144);
    assert!(offset_of!(DeviceAttributes, max_qp_init_rd_atom) == 156);
    assert!(offset_of!(DeviceAttributes, ports) == 227);

    assert!(size_of::<PortAttributes>() == 52);
    assert!(offset_of!(PortAttributes, active_mtu) == 8);
    assert!(offset_of!(PortAttributes, link_layer) == 46);

    assert!(size_of::<GidEntry>() == 32);
    assert!(offset_of!(GidEntry, index) == 16);
    assert!(offset_of!(GidEntry, kind) == 24);
    assert!(offset_of!(GidEntry, interface) == 28);

    assert!(size_of::<QpInit>() == 64);
    assert!(offset_of!(QpInit, capacity) == 32 && size_of::<Capacity>() == 20);
    assert!(offset_of!(QpInit, kind) == 52 && offset_of!(QpInit, sq_sig_all) == 56);

    assert!(size_of::<QpAttributes>() == 144);
    assert!(offset_of!(QpAttributes, rq_psn) == 20 && offset_of!(QpAttributes, sq_psn) == 24);
    assert!(offset_of!(QpAttributes, access) == 32 && offset_of!(QpAttributes, path) == 56);
    assert!(offset_of!(QpAttributes, pkey_index) == 120);
    assert!(offset_of!(QpAttributes, max_reads) == 126);
    assert!(offset_of!(QpAttributes, rnr_timer) == 128 && offset_of!(QpAttributes, port) == 129);
    assert!(offset_of!(QpAttributes, rnr_retry) == 132);
    assert!(offset_of!(QpAttributes, rate_limit) == 136);

    assert!(size_of::<Path>() == 32);
    assert!(offset_of!(Path, gid_index) == 20 && offset_of!(Path, traffic_class) == 22);
    assert!(offset_of!(Path, is_global) == 29 && offset_of!(Path, port) == 30);

    assert!(size_of::<Range>() == 16);
    assert!(size_of::<SendWork>() == 128);
    assert!(offset_of!(SendWork, num_ranges) == 24 && offset_of!(SendWork, immediate) == 36);
    assert!(offset_of!(SendWork, remote_address) == 40 && offset_of!(SendWork, rkey) == 48);
    assert!(size_of::<ReceiveWork>() == 32);
    assert!(size_of::<WorkCompletion>() == 48);
    assert!(offset_of!(WorkCompletion, byte_len) == 20);
    assert!(offset_of!(WorkCompletion, immediate) == 24);
    assert!(offset_of!(WorkCompletion, qpn) == 28 && offset_of!(WorkCompletion, flags) == 36);
};

/// Link layer of a port whose network is Ethernet.
pub const ETHERNET: u8 = 2;
/// State of a port with a link.
pub const PORT_ACTIVE: u32 = 4;
/// Type of a GID in the port's table: RoCEv2.
pub const ROCE_V2: u32 = 2;

/// Transport services of a queue pair: reliable and unreliable connection.
pub const RC: u32 = 2;
pub const UC: u32 = 3;

/// States of a queue pair: init, ready to receive, ready to send.
pub const INIT: u32 = 1;
pub const RTR: u32 = 2;
pub const RTS: u32 = 3;

/// Bits of the attributes that a state transition of a queue pair sets.
pub mod mask {
    pub const STATE: c_int = 1;
    pub const ACCESS: c_int = 1 << 3;
    pub const PKEY_INDEX: c_int = 1 << 4;
    pub const PORT: c_int = 1 << 5;
    pub const PATH: c_int = 1 << 7;
    pub const PATH_MTU: c_int = 1 << 8;
    pub const TIMEOUT: c_int = 1 << 9;
    pub const RETRY_COUNT: c_int = 1 << 10;
    pub const RNR_RETRY: c_int = 1 << 11;
    pub const RQ_PSN: c_int = 1 << 12;
    pub const MAX_READS: c_int = 1 << 13;
    pub const RNR_TIMER: c_int = 1 << 15;
    pub const SQ_PSN: c_int = 1 << 16;
    pub const MAX_PEER_READS: c_int = 1 << 17;
    pub const PEER_QPN: c_int = 1 << 20;

    use super::c_int;
}

/// Access rights of memory regions and queue pairs.
pub const LOCAL_WRITE: u32 = 1;
pub const REMOTE_WRITE: u32 = 2;
pub const REMOTE_READ: u32 = 4;

/// Operations of work requests for the send queue.
pub const WRITE: u32 = 0;
pub const WRITE_IMMEDIATE: u32 = 1;
pub const SEND: u32 = 2;
pub const SEND_IMMEDIATE: u32 = 3;
pub const READ: u32 = 4;
/// Flags of work requests for the send queue.
pub const SIGNALED: u32 = 2;
pub const SOLICITED: u32 = 4;

/// Operation of a completion, and flag of a completion with immediate data.
pub const RECEIVED_WRITE_IMMEDIATE: u32 = 129;
pub const WITH_IMMEDIATE: u32 = 2;
