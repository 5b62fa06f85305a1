//! The native half of the Python package `weir`: a rank of an all-reduce (`host_agent::collective`).
//!
//! Values come and go by address: the Python half owns the tensors, and keeps them until it has waited.
#![allow(unsafe_code)]

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::Values;
use aggregation::rto::Retransmission;
use host_agent::collective::{self, CollectiveError, Config, Pending};
use host_agent::frames::{Endpoint, InterfaceFrames, Io, Mac};
use pnet::datalink;
use pnet::ipnetwork::IpNetwork;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

/// A rank of a job, on an Ethernet interface.
#[pyclass]
struct Member {
    member: collective::Member,
    spare: Arc<Spare>,
    /// How frames come and go.
    io: Io,
    /// Why not by rings.
    refused: Option<String>,
}

/// Sums that are to come.
#[pyclass]
struct Sums {
    pending: Mutex<Option<Pending>>,
    spare: Arc<Spare>,
}

/// Bytes that are kept for values to come.
const SPARE_LIMIT: usize = 256 << 20;

/// Buffers whose sums were taken. A new one of a gradient's size comes from the kernel page by page, which takes longer than to
/// fill it.
#[derive(Default)]
struct Spare(Mutex<Vec<Vec<f32>>>);

impl Spare {
    /// An empty buffer with room for so many: the smallest that there is, or a new one.
    fn take(&self, length: usize) -> Vec<f32> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = kept.iter().enumerate();
        let fits = fits.filter(|(_, buffer)| buffer.capacity() >= length);
        match fits.min_by_key(|(_, buffer)| buffer.capacity()) {
            Some((at, _)) => kept.swap_remove(at),
            None => Vec::with_capacity(length),
        }
    }

    /// Keeps a buffer, if there is room for it.
    fn give(&self, mut buffer: Vec<f32>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held: usize = kept.iter().map(Vec::capacity).sum();
        if size_of::<f32>() * (held + buffer.capacity()) <= SPARE_LIMIT {
            buffer.clear();
            kept.push(buffer);
        }
    }
}

/// Where an interface is.
fn endpoint(interface: &str) -> PyResult<Endpoint> {
    let mut all = datalink::interfaces().into_iter();
    let found = all.find(|found| found.name == interface);
    let found =
        found.ok_or_else(|| PyOSError::new_err(format!("there is no interface {interface}")))?;
    let mac = found.mac.filter(|mac| !mac.is_zero());
    let mac = mac.ok_or_else(|| {
        PyOSError::new_err(format!("interface {interface} has no Ethernet address"))
    })?;
    let ip: Option<Ipv4Addr> = found.ips.iter().find_map(|ip| match ip {
        IpNetwork::V4(ip) => Some(ip.ip()),
        IpNetwork::V6(_) => None,
    });
    Ok(Endpoint {
        mac: Mac(mac.octets()),
        ip: ip.ok_or_else(|| {
            PyOSError::new_err(format!("interface {interface} has no IPv4 address"))
        })?,
    })
}

#[pymethods]
impl Member {
    /// Opens an interface, and joins a job that a switch has been told of.
    #[new]
    #[pyo3(signature = (interface, job, rank, ranks, window, values_per_packet = 256, io = "auto"))]
    fn new(
        interface: &str,
        job: u16,
        rank: u8,
        ranks: u8,
        window: u32,
        values_per_packet: u16,
        io: &str,
    ) -> PyResult<Member> {
        if rank >= ranks {
            let told = format!("rank {rank} of {ranks} ranks: ranks count from 0");
            return Err(PyValueError::new_err(told));
        }
        let job = Job::new(JobConfig {
            job: JobId(job),
            workers: ranks,
            window,
            values_per_packet,
            values_per_round: 0,
            first_chunk: ChunkId(0),
        });
        let config = Config {
            job: job.map_err(|error| PyValueError::new_err(error.to_string()))?,
            rank: WorkerId(rank),
            me: endpoint(interface)?,
            retransmission: Retransmission::default(),
        };
        let io: Io = io.parse().map_err(PyValueError::new_err)?;
        let (frames, refused) = InterfaceFrames::open(interface, io)?;
        Ok(Member {
            io: frames.io(),
            refused: refused.map(|error| error.to_string()),
            spare: Arc::default(),
            member: collective::Member::start(config, frames)?,
        })
    }

    /// Sums values over all ranks: `length` of them from `address` on, int32 if they are `integers`, else float32. They are
    /// copied before this returns.
    fn all_reduce(&self, address: usize, length: usize, integers: bool) -> PyResult<Sums> {
        if address == 0 || !address.is_multiple_of(4) {
            return Err(PyValueError::new_err(
                "values stand at a multiple of 4 bytes",
            ));
        }
        // SAFETY: the caller says that `length` values of this type stand there, and holds on to them meanwhile: Python's
        // lock is held.
        let values = unsafe {
            match integers {
                true => Values::Integers(
                    std::slice::from_raw_parts(address as *const i32, length).to_vec(),
                ),
                false => {
                    let mut values = self.spare.take(length);
                    values.extend_from_slice(std::slice::from_raw_parts(
                        address as *const f32,
                        length,
                    ));
                    Values::Floats(values)
                }
            }
        };
        let pending = self.member.all_reduce(values).map_err(told)?;
        Ok(Sums {
            pending: Mutex::new(Some(pending)),
            spare: Arc::clone(&self.spare),
        })
    }

    /// By which way frames come and go: `rings` or `pnet`.
    #[getter]
    fn io(&self) -> String {
        self.io.to_string()
    }

    /// Why it is not `rings` that they come and go by, where these were wanted.
    #[getter]
    fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Operations that are done, frames, bytes, frames sent again, probes, chunks whose exponent was guessed wrongly, timeouts.
    fn counters(&self) -> [(&'static str, u64); 7] {
        let (counters, _) = self.member.counters();
        [
            ("operations", counters.operations),
            ("frames", counters.sent.frames),
            ("bytes", counters.sent.bytes),
            ("frames_again", counters.sent.retransmitted_frames),
            ("probes", counters.probes),
            ("guessed_again", counters.repeated_guesses),
            ("timeouts", counters.timeouts),
        ]
    }
}

#[pymethods]
impl Sums {
    /// Waits, and writes the sums to `address`, where there is room for `length` values of the type that was given.
    fn wait(&self, py: Python<'_>, address: usize, length: usize, seconds: f64) -> PyResult<()> {
        let pending = self
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let pending =
            pending.ok_or_else(|| PyRuntimeError::new_err("these sums were waited for before"))?;
        let timeout = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let values = py.detach(|| pending.wait(timeout)).map_err(told)?;
        if values.len() != length || address == 0 || !address.is_multiple_of(4) {
            return Err(PyValueError::new_err(
                "the sums are as many as the values were",
            ));
        }
        // SAFETY: the caller says that there is room for as many values there, which nobody else touches; both types have 4
        // bytes, and `values` is memory of our own.
        unsafe {
            let to = address as *mut u8;
            let from = match &values {
                Values::Floats(values) => values.as_ptr().cast::<u8>(),
                Values::Integers(values) => values.as_ptr().cast::<u8>(),
            };
            std::ptr::copy_nonoverlapping(from, to, 4 * length);
        }
        if let Values::Floats(values) = values {
            self.spare.give(values);
        }
        Ok(())
    }
}

fn told(error: CollectiveError) -> PyErr {
    match error {
        CollectiveError::Timeout { .. } => PyTimeoutError::new_err(error.to_string()),
        CollectiveError::Io(_) => PyOSError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// `weir._native`.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Member>()?;
    module.add_class::<Sums>()
}
