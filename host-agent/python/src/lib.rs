//! The native half of the Python package `weir`: a rank of an all-reduce (`host_agent::collective`).
//!
//! Values come and go by address: the Python half owns the tensors, and keeps them until it has waited.
#![allow(unsafe_code)]

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aggregation::job::{ChunkId, Job, JobConfig, JobId, Place, WorkerId};
use aggregation::rank::{Reduction, Rounding, Setup, Values, bf16, f16};
use aggregation::rto::Retransmission;
use host_agent::collective::{self, CollectiveError, Config, Pending};
use host_agent::frames::{Endpoint, EndpointError, InterfaceFrames, Io, Mac};
use host_agent::metrics::{Address, Exporter};
use pnet::datalink;
use pnet::ipnetwork::IpNetwork;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    weir,
    NonFinite,
    PyRuntimeError,
    "Some rank's values held NaN or infinity: the operation has no sums, at any rank."
);

/// A rank of a job, on an Ethernet interface.
#[pyclass]
struct Member {
    member: collective::Member,
    rounding: Rounding,
    spare: Arc<Spare>,
    /// How frames come and go.
    io: Io,
    /// Why not by rings.
    refused: Option<String>,
    /// Shows what it counts.
    exporter: Option<Exporter>,
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

/// A rank of a job that a switch has been told of, before it joins.
#[pyclass(frozen)]
struct Rank {
    interface: String,
    me: Endpoint,
    job: JobConfig,
    setup: Setup,
}

impl Rank {
    /// Shows a member of this rank at an address.
    fn show(&self, member: &collective::Member, io: Io, address: &Address) -> PyResult<Exporter> {
        let (observer, interface) = (member.observer(), self.interface.clone());
        let show = move || {
            let mut status = observer.status();
            status.interface = Some(interface.clone());
            status.io = Some(io.to_string());
            status
        };
        Exporter::start(address, show).map_err(|error| {
            PyOSError::new_err(format!("cannot show metrics at {address}: {error}"))
        })
    }
}

fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Rank {
    /// `place` is the rank's number among the children of its switch, how many those are, and how many the topmost switch has;
    /// `None` where one switch sums all.
    #[new]
    #[pyo3(signature = (interface, job, rank, ranks, window, place = None))]
    fn new(
        interface: String,
        job: u16,
        rank: u16,
        ranks: u16,
        window: u32,
        place: Option<(u16, u8, u8)>,
    ) -> PyResult<Rank> {
        if rank >= ranks {
            return Err(wrong(format!(
                "rank {rank} of {ranks} ranks: ranks count from 0"
            )));
        }
        let config = JobConfig {
            job: JobId(job),
            workers: ranks,
            window,
            values_per_packet: wire::VALUES_PER_PACKET as u16,
            values_per_round: 0,
            first_chunk: ChunkId(0),
        };
        let job = match place {
            None => Job::under_one_switch(config),
            Some(_) => Job::new(config),
        };
        let job = job.map_err(wrong)?;
        let mut setup = Setup::under_one_switch(job, WorkerId(rank), Retransmission::default());
        if let Some((child, siblings, top)) = place {
            setup.place = Place {
                child: WorkerId(child),
                siblings,
                top,
            };
            if !setup.place.is_possible() {
                return Err(wrong(format!(
                    "child {child} of {siblings}, and {top} at the top: no place among switches"
                )));
            }
        }
        Ok(Rank {
            me: endpoint(&interface)?,
            interface,
            job: config,
            setup,
        })
    }

    /// Where it is, as the other ranks are to be told: `MAC/IPv4`.
    #[getter]
    fn address(&self) -> String {
        self.me.to_string()
    }

    /// Asks the switch from which chunk number on its cells are free. One rank does it, before any joins.
    fn open(&self, py: Python<'_>) -> PyResult<u32> {
        let (mut frames, _) = InterfaceFrames::open(&self.interface, Io::Auto)?;
        let first = py.detach(|| collective::open_job(&self.setup, self.me, &mut frames));
        Ok(first.map_err(told)?.0)
    }

    /// Joins, with the first chunk that [`Rank::open`] found. `peers` are all ranks' addresses: one that does not answer the
    /// others for `gone_after` seconds is gone. Values are rounded to the nearest, or by chance, of which `stochastic` is the seed.
    /// What the rank counts, and what it waits for, is shown at the address `metrics`.
    #[pyo3(signature = (first_chunk, peers, gone_after = 5.0, stochastic = None, io = "auto", metrics = None))]
    fn join(
        &self,
        first_chunk: u32,
        peers: Vec<String>,
        gone_after: f64,
        stochastic: Option<u64>,
        io: &str,
        metrics: Option<&str>,
    ) -> PyResult<Member> {
        let ranks = self.job.workers;
        if peers.len() != usize::from(ranks) {
            return Err(wrong(format!("{} addresses of {ranks} ranks", peers.len())));
        }
        let peers: Result<Vec<Endpoint>, EndpointError> =
            peers.iter().map(|peer| peer.parse()).collect();
        let after = Duration::try_from_secs_f64(gone_after).map_err(wrong)?;
        let job = Job::new(JobConfig {
            first_chunk: ChunkId(first_chunk),
            ..self.job
        });
        let config = Config {
            setup: Setup {
                job: job.map_err(wrong)?,
                dead_after_ns: u64::try_from(after.as_nanos()).ok(),
                ..self.setup
            },
            me: self.me,
            peers: peers.map_err(wrong)?,
        };
        let io: Io = io.parse().map_err(PyValueError::new_err)?;
        let metrics: Option<Address> = metrics.map(str::parse).transpose().map_err(wrong)?;
        let (frames, refused) = InterfaceFrames::open(&self.interface, io)?;
        let io = frames.io();
        let member = collective::Member::start(config, frames)?;
        let exporter = metrics.map(|address| self.show(&member, io, &address));
        Ok(Member {
            io,
            exporter: exporter.transpose()?,
            refused: refused.map(|error| error.to_string()),
            spare: Arc::default(),
            member,
            rounding: stochastic.map_or(Rounding::Nearest, |seed| Rounding::Stochastic { seed }),
        })
    }
}

#[pymethods]
impl Member {
    /// Sums values over all ranks, or averages them: `length` of this type from `address` on, which are copied before this
    /// returns.
    fn all_reduce(
        &self,
        address: usize,
        length: usize,
        dtype: &str,
        average: bool,
    ) -> PyResult<Sums> {
        // SAFETY: the caller says that `length` values of this type stand there, and holds on to them meanwhile: Python's
        // lock is held. Any bits are a value of each of these types.
        let values = unsafe {
            match dtype {
                "float32" => Values::Floats(copied(address, length, self.spare.take(length))?),
                "float16" => Values::Float16s(copied::<f16>(address, length, Vec::new())?),
                "bfloat16" => Values::Bfloat16s(copied::<bf16>(address, length, Vec::new())?),
                "int32" => Values::Integers(copied::<i32>(address, length, Vec::new())?),
                "int8" => Values::Int8s(copied::<i8>(address, length, Vec::new())?),
                _ => {
                    let told = format!(
                        "{dtype} is not summed: float32, float16, bfloat16, int32 and int8 are"
                    );
                    return Err(PyValueError::new_err(told));
                }
            }
        };
        let reduction = Reduction {
            average,
            rounding: self.rounding,
        };
        let pending = self.member.all_reduce_as(values, reduction).map_err(told)?;
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

    /// Where it shows what it counts.
    #[getter]
    fn metrics(&self) -> Option<String> {
        let exporter = self.exporter.as_ref();
        exporter.map(|exporter| exporter.address().to_string())
    }

    /// Operations that have their sums, and those that have none for a value that is not finite; frames, bytes, frames sent
    /// again, probes, chunks whose exponent was guessed wrongly, timeouts.
    fn counters(&self) -> [(&'static str, u64); 8] {
        let (counters, _) = self.member.counters();
        [
            ("operations", counters.operations),
            ("non_finite", counters.non_finite),
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
    /// Waits, and writes the sums to `address`, where there is room for `length` values of the type that was given. Gives what
    /// they are off by at most.
    fn wait(&self, py: Python<'_>, address: usize, length: usize, seconds: f64) -> PyResult<f64> {
        let pending = self
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let pending =
            pending.ok_or_else(|| PyRuntimeError::new_err("these sums were waited for before"))?;
        let timeout = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let sums = py.detach(|| pending.wait(timeout)).map_err(told)?;
        // SAFETY: the caller says that there is room for `length` values of this type there, which nobody else touches.
        unsafe {
            match &sums.values {
                Values::Floats(values) => put(values, address, length)?,
                Values::Float16s(values) => put(values, address, length)?,
                Values::Bfloat16s(values) => put(values, address, length)?,
                Values::Integers(values) => put(values, address, length)?,
                Values::Int8s(values) => put(values, address, length)?,
            }
        }
        if let Values::Floats(values) = sums.values {
            self.spare.give(values);
        }
        Ok(sums.error_bound)
    }
}

fn is_aligned<T>(address: usize) -> PyResult<()> {
    if address == 0 || !address.is_multiple_of(align_of::<T>()) {
        return Err(PyValueError::new_err(format!(
            "values stand at a multiple of {} bytes",
            align_of::<T>()
        )));
    }
    Ok(())
}

/// A copy of values.
///
/// # Safety
/// `length` values of this type stand at `address`, if that is aligned, and nobody writes to them meanwhile.
unsafe fn copied<T: Copy>(address: usize, length: usize, mut into: Vec<T>) -> PyResult<Vec<T>> {
    is_aligned::<T>(address)?;
    // SAFETY: said above.
    into.extend_from_slice(unsafe { std::slice::from_raw_parts(address as *const T, length) });
    Ok(into)
}

/// Writes values.
///
/// # Safety
/// There is room for `length` values of this type at `address`, if that is aligned, and nobody else touches it meanwhile.
unsafe fn put<T: Copy>(values: &[T], address: usize, length: usize) -> PyResult<()> {
    is_aligned::<T>(address)?;
    if values.len() != length {
        return Err(PyValueError::new_err(
            "the sums are as many as the values were",
        ));
    }
    // SAFETY: said above; `values` is memory of our own.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), address as *mut T, length) };
    Ok(())
}

fn told(error: CollectiveError) -> PyErr {
    match error {
        CollectiveError::Timeout { .. } => PyTimeoutError::new_err(error.to_string()),
        CollectiveError::NonFinite(_) => NonFinite::new_err(error.to_string()),
        CollectiveError::Io(_) => PyOSError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// `weir._native`.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Rank>()?;
    module.add_class::<Member>()?;
    module.add_class::<Sums>()?;
    module.add("NonFinite", module.py().get_type::<NonFinite>())
}
