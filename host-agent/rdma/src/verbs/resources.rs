//! Creates and uses the resources of a device: protection domain, completion queue, memory regions, queue pairs.
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

/// Maximum number of completions that one call of the device returns.
const BATCH: usize = 32;

/// All resources that were created with a device; each pointer is valid until its resource is destroyed. One thread uses it.
pub struct Resources {
    qps: BTreeMap<u32, NonNull<Qp>>,
    regions: BTreeMap<u32, (NonNull<Mr>, Pages)>,
    cq: NonNull<Cq>,
    channel: NonNull<Channel>,
    pd: NonNull<Pd>,
    entries: Entries,
    batch: [WorkCompletion; BATCH],
    /// The open device; the last field, so that it is dropped after all resources.
    device: Device,
}

/// Function pointers from libibverbs' struct of an open device.
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

/// Keys and address of a registered memory region.
#[derive(Debug, Clone, Copy)]
pub struct Registered {
    pub lkey: u32,
    pub rkey: u32,
    pub address: u64,
}

impl Resources {
    /// Creates the protection domain, and a completion queue for `depth` completions.
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

    /// File descriptor of the device's completion events.
    fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel lives as long as this value, and its descriptor is open as long.
        unsafe { BorrowedFd::borrow_raw(self.channel.as_ref().fd) }
    }

    /// Number of memory regions, and number of queue pairs.
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

    /// Creates a queue pair with queues for this many sends and receives, and returns its number.
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

    /// Destroys a queue pair. Completions of its work requests can still be polled.
    pub fn destroy(&mut self, number: u32) {
        if let Some(qp) = self.qps.remove(&number) {
            // SAFETY: the queue pair came from create_qp, and is destroyed once.
            unsafe { (self.device.library.destroy_qp)(qp.as_ptr()) };
        }
    }

    /// Posts a work request to the send queue, with its data, if any, at `range`, which must be in one of our regions.
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

    /// Posts a work request to the receive queue.
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

    /// Takes a batch of completions from the device; the batch is empty if there are none.
    pub fn completions(&mut self) -> Result<&[WorkCompletion], VerbsError> {
        let (cq, first) = (self.cq.as_ptr(), self.batch.as_mut_ptr());
        // SAFETY: the queue is valid; the call writes at most `BATCH` completions.
        let count = unsafe { (self.entries.poll_cq)(cq, BATCH as c_int, first) };
        match usize::try_from(count) {
            Ok(count) => Ok(&self.batch[..count.min(BATCH)]),
            Err(_) => Err(VerbsError::last("ibv_poll_cq")),
        }
    }

    /// Requests an event from the device for the next completion.
    pub fn arm(&mut self) -> Result<(), VerbsError> {
        // SAFETY: the queue is valid.
        let code = unsafe { (self.entries.req_notify_cq)(self.cq.as_ptr(), 0) };
        VerbsError::returned("ibv_req_notify_cq", code)
    }

    /// Waits for the event of a completion, for at most `timeout`.
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

/// Access rights as flags of verbs. Local reads are always allowed; remote writes require local writes (ibv_reg_mr(3)).
pub fn rights(access: Access) -> u32 {
    let bits = [
        (Access::LOCAL_WRITE, abi::LOCAL_WRITE),
        (Access::REMOTE_WRITE, abi::REMOTE_WRITE | abi::LOCAL_WRITE),
        (Access::REMOTE_READ, abi::REMOTE_READ),
    ];
    let allowed = bits.iter().filter(|(right, _)| access.allows(*right));
    allowed.fold(0, |all, (_, bits)| all | bits)
}

/// Error for a region that the device did not register: `ENOMEM` means that no more memory may be pinned.
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
