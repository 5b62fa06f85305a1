//! Resources created with a device: protection domain, completion queue, memory regions, queue pairs.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use roce::Access;

use super::abi::{
    self, Capacity, Channel, Cq, Mr, Pd, Qp, QpAttributes, QpInit, Range, ReceiveWork, SendWork,
    WorkCompletion,
};
use super::device::Device;
use super::memory::Pages;
use crate::verbs_error::VerbsError;

/// Number of completions polled at once.
const BATCH: usize = 32;

/// Owns all resources until it is dropped or destroys them, so that all pointers are valid. A single thread uses it.
pub struct Resources {
    qps: BTreeMap<u32, NonNull<Qp>>,
    regions: BTreeMap<u32, (NonNull<Mr>, Pages)>,
    cq: NonNull<Cq>,
    channel: NonNull<Channel>,
    pd: NonNull<Pd>,
    entries: Entries,
    batch: [WorkCompletion; BATCH],
    /// Dropped last.
    device: Device,
}

/// Function pointers in a device's context.
#[derive(Clone, Copy)]
struct Entries {
    poll_cq: unsafe extern "C" fn(*mut Cq, c_int, *mut WorkCompletion) -> c_int,
    req_notify_cq: unsafe extern "C" fn(*mut Cq, c_int) -> c_int,
    post_send: unsafe extern "C" fn(*mut Qp, *mut SendWork, *mut *mut SendWork) -> c_int,
    post_recv: unsafe extern "C" fn(*mut Qp, *mut ReceiveWork, *mut *mut ReceiveWork) -> c_int,
}

impl Entries {
    fn from_device(device: &Device) -> Option<Self> {
        // SAFETY: the context is open, and begins with these fields.
        let context = unsafe { device.context().as_ref() };
        Some(Self {
            poll_cq: context.poll_cq?,
            req_notify_cq: context.req_notify_cq?,
            post_send: context.post_send?,
            post_recv: context.post_recv?,
        })
    }
}

/// Keys and address of a region.
#[derive(Debug, Clone, Copy)]
pub struct Registered {
    pub lkey: u32,
    pub rkey: u32,
    pub address: u64,
}

impl Resources {
    /// Creates the resources, with a completion queue of this depth.
    pub fn new(device: Device, depth: u32) -> Result<Self, VerbsError> {
        let library = device.library.clone();
        let context = device.context().as_ptr();
        let missing = || VerbsError::Call {
            call: "ibv_open_device",
            reason: io::ErrorKind::Unsupported.into(),
        };
        let entries = Entries::from_device(&device).ok_or_else(missing)?;
        let failed = VerbsError::last;
        // SAFETY: the context is open.
        let pd = NonNull::new(unsafe { (library.alloc_pd)(context) });
        let pd = pd.ok_or_else(|| failed("ibv_alloc_pd"))?;
        // SAFETY: the context is open.
        let channel = NonNull::new(unsafe { (library.create_comp_channel)(context) });
        let Some(channel) = channel else {
            let error = failed("ibv_create_comp_channel");
            // SAFETY: created above, and nothing was created with it.
            unsafe { (library.dealloc_pd)(pd.as_ptr()) };
            return Err(error);
        };
        let entries_wanted = c_int::try_from(depth).unwrap_or(c_int::MAX);
        // SAFETY: context and channel are valid.
        let cq = unsafe {
            (library.create_cq)(context, entries_wanted, null_mut(), channel.as_ptr(), 0)
        };
        let Some(cq) = NonNull::new(cq) else {
            let error = failed("ibv_create_cq");
            // SAFETY: both were created above, and nothing was created with them.
            unsafe {
                (library.destroy_comp_channel)(channel.as_ptr());
                (library.dealloc_pd)(pd.as_ptr());
            }
            return Err(error);
        };
        let resources = Self {
            qps: BTreeMap::new(),
            regions: BTreeMap::new(),
            cq,
            channel,
            pd,
            entries,
            batch: [WorkCompletion::default(); BATCH],
            device,
        };
        let events = resources.events();
        let flags = fcntl(events, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
        let flags = flags.and_then(|old| fcntl(events, FcntlArg::F_SETFL(old | OFlag::O_NONBLOCK)));
        flags.map_err(|errno| VerbsError::Call {
            call: "fcntl",
            reason: errno.into(),
        })?;
        Ok(resources)
    }

    /// Descriptor of completion events.
    fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel lives as long as this value, and its descriptor is open as long.
        unsafe { BorrowedFd::borrow_raw(self.channel.as_ref().fd) }
    }

    /// Numbers of regions and queue pairs.
    pub fn counts(&self) -> [usize; 2] {
        [self.regions.len(), self.qps.len()]
    }

    pub fn register(&mut self, len: usize, access: Access) -> Result<Registered, VerbsError> {
        let none = || VerbsError::Call {
            call: "malloc",
            reason: io::ErrorKind::OutOfMemory.into(),
        };
        let pages = Pages::new(len).ok_or_else(none)?;
        let (pd, first) = (self.pd.as_ptr(), pages.address());
        let rights = rights(access) as c_int;
        // SAFETY: the pages live until the region is deregistered (`deregister`).
        let mr =
            unsafe { (self.device.library.reg_mr)(pd, first.as_ptr().cast(), len.max(1), rights) };
        let Some(mr) = NonNull::new(mr) else {
            return Err(no_region(len));
        };
        // SAFETY: the region was just created, and begins with these fields.
        let (lkey, rkey) = unsafe { (mr.as_ref().lkey, mr.as_ref().rkey) };
        self.regions.insert(lkey, (mr, pages));
        Ok(Registered {
            lkey,
            rkey,
            address: first.as_ptr().expose_provenance() as u64,
        })
    }

    pub fn deregister(&mut self, lkey: u32) {
        let Some((mr, pages)) = self.regions.remove(&lkey) else {
            return;
        };
        // SAFETY: the region came from reg_mr, and is deregistered once.
        let code = unsafe { (self.device.library.dereg_mr)(mr.as_ptr()) };
        if code != 0 {
            // The device may still access the pages: leak them.
            std::mem::forget(pages);
        }
    }

    pub fn pages(&self, lkey: u32) -> Option<&Pages> {
        self.regions.get(&lkey).map(|(_, pages)| pages)
    }

    /// Creates a queue pair with queues of these depths, and returns its number.
    pub fn create(&mut self, kind: u32, sends: u32, receives: u32) -> Result<u32, VerbsError> {
        let mut init = QpInit {
            qp_context: null_mut(),
            send_cq: self.cq.as_ptr(),
            recv_cq: self.cq.as_ptr(),
            srq: null_mut(),
            capacity: Capacity {
                max_send_wr: sends,
                max_recv_wr: receives,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            kind,
            sq_sig_all: 0,
            end: 0,
        };
        // SAFETY: protection domain and completion queue are valid, and outlive the queue pair (`drop`).
        let qp = unsafe { (self.device.library.create_qp)(self.pd.as_ptr(), &raw mut init) };
        let qp = NonNull::new(qp).ok_or_else(|| VerbsError::last("ibv_create_qp"))?;
        // SAFETY: the queue pair was just created, and begins with these fields.
        let number = unsafe { qp.as_ref().number };
        self.qps.insert(number, qp);
        Ok(number)
    }

    pub fn modify(
        &mut self,
        number: u32,
        mut to: QpAttributes,
        mask: c_int,
    ) -> Result<(), VerbsError> {
        let Some(qp) = self.qps.get(&number) else {
            return Err(gone("ibv_modify_qp"));
        };
        // SAFETY: the queue pair is valid; the attributes live until the call returns.
        let code = unsafe { (self.device.library.modify_qp)(qp.as_ptr(), &raw mut to, mask) };
        VerbsError::returned("ibv_modify_qp", code)
    }

    /// Destroys a queue pair. Its completions can still be polled.
    pub fn destroy(&mut self, number: u32) {
        if let Some(qp) = self.qps.remove(&number) {
            // SAFETY: the queue pair came from create_qp, and is destroyed once.
            unsafe { (self.device.library.destroy_qp)(qp.as_ptr()) };
        }
    }

    /// Posts a send work request with its data, if any, at `range`: the device rejects ranges outside our regions.
    pub fn post_send(
        &mut self,
        number: u32,
        mut work: SendWork,
        mut range: Range,
    ) -> Result<(), VerbsError> {
        let Some(qp) = self.qps.get(&number) else {
            return Err(gone("ibv_post_send"));
        };
        (work.ranges, work.num_ranges) = (&raw mut range, c_int::from(range.length > 0));
        let mut refused = null_mut();
        // SAFETY: the queue pair is valid. The device copies request and range before the call returns (ibv_post_send(3)).
        let code =
            unsafe { (self.entries.post_send)(qp.as_ptr(), &raw mut work, &raw mut refused) };
        VerbsError::returned("ibv_post_send", code)
    }

    /// Posts a receive work request.
    pub fn post_receive(
        &mut self,
        number: u32,
        id: u64,
        mut range: Range,
    ) -> Result<(), VerbsError> {
        let Some(qp) = self.qps.get(&number) else {
            return Err(gone("ibv_post_recv"));
        };
        let mut work = ReceiveWork {
            id,
            next: null_mut(),
            ranges: &raw mut range,
            num_ranges: c_int::from(range.length > 0),
        };
        let mut refused = null_mut();
        // SAFETY: as above.
        let code =
            unsafe { (self.entries.post_recv)(qp.as_ptr(), &raw mut work, &raw mut refused) };
        VerbsError::returned("ibv_post_recv", code)
    }

    /// A batch of completions; empty if there are none.
    pub fn completions(&mut self) -> Result<&[WorkCompletion], VerbsError> {
        let (cq, first) = (self.cq.as_ptr(), self.batch.as_mut_ptr());
        // SAFETY: the queue is valid; the call writes at most `BATCH` completions.
        let count = unsafe { (self.entries.poll_cq)(cq, BATCH as c_int, first) };
        match usize::try_from(count) {
            Ok(count) => Ok(&self.batch[..count.min(BATCH)]),
            Err(_) => Err(VerbsError::last("ibv_poll_cq")),
        }
    }

    /// Requests an event for the next completion.
    pub fn arm(&mut self) -> Result<(), VerbsError> {
        // SAFETY: the queue is valid.
        let code = unsafe { (self.entries.req_notify_cq)(self.cq.as_ptr(), 0) };
        VerbsError::returned("ibv_req_notify_cq", code)
    }

    /// Waits for the event, for at most `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), VerbsError> {
        let came = frames::wait_readable([self.events()], timeout);
        let call = "ppoll";
        if !came.map_err(|reason| VerbsError::Call { call, reason })? {
            return Ok(());
        }
        let (mut cq, mut context) = (null_mut(), null_mut());
        // SAFETY: the channel is valid; the call writes two pointers.
        let code = unsafe {
            (self.device.library.get_cq_event)(self.channel.as_ptr(), &raw mut cq, &raw mut context)
        };
        if code == 0 {
            // SAFETY: the event belongs to this queue, the channel's only one. Destroying the queue waits for this
            // acknowledgement.
            unsafe { (self.device.library.ack_cq_events)(self.cq.as_ptr(), 1) };
        }
        Ok(())
    }
}

impl Drop for Resources {
    fn drop(&mut self) {
        for number in self.qps.keys().copied().collect::<Vec<_>>() {
            self.destroy(number);
        }
        for lkey in self.regions.keys().copied().collect::<Vec<_>>() {
            self.deregister(lkey);
        }
        let library = &self.device.library;
        // SAFETY: each was created in `new` and is destroyed once, after everything created with it; all events are acknowledged.
        unsafe {
            (library.destroy_cq)(self.cq.as_ptr());
            (library.destroy_comp_channel)(self.channel.as_ptr());
            (library.dealloc_pd)(self.pd.as_ptr());
        }
    }
}

fn gone(call: &'static str) -> VerbsError {
    let reason = io::ErrorKind::NotFound.into();
    VerbsError::Call { call, reason }
}

/// Access flags of verbs. Local reads are always allowed; remote writes require local writes (ibv_reg_mr(3)).
pub fn rights(access: Access) -> u32 {
    let bits = [
        (Access::LOCAL_WRITE, abi::LOCAL_WRITE),
        (Access::REMOTE_WRITE, abi::REMOTE_WRITE | abi::LOCAL_WRITE),
        (Access::REMOTE_READ, abi::REMOTE_READ),
    ];
    let allowed = bits.iter().filter(|(right, _)| access.allows(*right));
    allowed.fold(0, |all, (_, bits)| all | bits)
}

/// Error of a failed registration: if no more memory may be pinned, the system reports that there is none.
fn no_region(len: usize) -> VerbsError {
    let reason = io::Error::last_os_error();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    match (reason.kind(), limit) {
        (io::ErrorKind::OutOfMemory, Some(limit)) => VerbsError::Pin { len, limit },
        _ => VerbsError::Call {
            call: "ibv_reg_mr",
            reason,
        },
    }
}
