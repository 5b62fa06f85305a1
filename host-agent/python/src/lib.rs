//! The native half of the Python package `weir`: a rank of an all-reduce (`host_agent::collective`).
//!
//! Values come and go by address: the Python half owns the tensors, and keeps them until it has waited.
#![allow(unsafe_code)]

mod memory;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aggregation::job::{ChunkId, Job, JobConfig, JobId, Place, WorkerId};
use aggregation::rank::{
    Carry, Fallback, LAYOUT, Lateness, RankCounters, Reduction, Rounding, Setup, Share,
    Sums as RankSums, Terms, Values, bf16, f16,
};
use aggregation::rto::Retransmission;
use host_agent::collective::{self, CollectiveError, Config, Pending, Place as HostPlace};
use host_agent::frames::{Endpoint, EndpointError, Frames, InterfaceFrames, Io};
use host_agent::metrics::{Address, Exporter, Role, Status};
use host_agent::serve::{Client, Deadline, Kind, RankOf, RemotePending};
use memory::{Spare, copied, put, put_bytes, words};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    weir,
    NonFinite,
    PyRuntimeError,
    "Some rank's values held NaN or infinity: the operation has no sums, at any rank."
);

pyo3::create_exception!(
    weir,
    Silent,
    PyRuntimeError,
    "No switch answers for the job."
);

/// A rank of a job, on an Ethernet interface.
#[pyclass]
struct Member {
    /// `None` once it was closed.
    member: Option<Link>,
    ranks: u16,
    rounding: Rounding,
    spare: Arc<Spare>,
    /// How frames come and go.
    io: Io,
    /// Why not by rings.
    refused: Option<String>,
    /// Shows what it counts.
    exporter: Option<Exporter>,
}

/// What is written to Python's memory when an operation is done.
#[derive(Clone, Copy)]
enum Writes {
    Sums,
    /// The words of a broadcast, which are bytes of whatever type.
    Bytes,
    Nothing,
}

/// Sums that are to come.
#[pyclass]
struct Sums {
    pending: Mutex<Option<Awaited>>,
    writes: Writes,
    spare: Arc<Spare>,
    ranks: u16,
}

/// How a rank is attached: by itself, or by a daemon.
enum Link {
    Own(Box<collective::Member>),
    Agent(Client),
}

/// Sums that are to come by either.
enum Awaited {
    Own(Pending),
    Agent(RemotePending),
}

impl Link {
    fn all_reduce_as(
        &self,
        values: Values,
        reduction: Reduction,
    ) -> Result<Awaited, CollectiveError> {
        Ok(match self {
            Link::Own(member) => Awaited::Own(member.all_reduce_as(values, reduction)?),
            Link::Agent(client) => Awaited::Agent(client.all_reduce_as(&values, reduction)?),
        })
    }
}

impl Awaited {
    fn wait(self, timeout: Duration) -> Result<RankSums, CollectiveError> {
        match self {
            Awaited::Own(pending) => pending.wait(timeout),
            Awaited::Agent(pending) => pending.wait(timeout),
        }
    }
}

/// Ethernet, IPv4 and UDP.
const EMPTY_FRAME: u64 = 42;

/// A rank of a job that a switch has been told of, before it joins.
#[pyclass(frozen)]
struct Rank {
    interface: String,
    me: Endpoint,
    job: JobConfig,
    setup: Setup,
    /// As a daemon is told of it.
    deadline: Option<Deadline>,
    /// The daemon by which it is a rank, if not by itself.
    agent: Option<Client>,
}

impl Rank {
    /// As a daemon is told of it.
    fn described(&self) -> RankOf {
        RankOf::new(
            Some(self.interface.clone()),
            &self.job,
            &self.setup,
            self.deadline,
        )
    }

    /// Taken by itself: no other process of this host is a rank of the job meanwhile.
    fn place(&self) -> PyResult<HostPlace> {
        HostPlace::take(&self.interface, self.job.job.0).map_err(|error| told(error.into()))
    }

    /// Shows a member of this rank at an address.
    fn show(&self, member: &Link, io: Io, address: &Address) -> PyResult<Exporter> {
        let interface = self.interface.clone();
        let started = match member {
            Link::Own(member) => {
                let observer = member.observer();
                Exporter::start(address, move || Status {
                    interface: Some(interface.clone()),
                    io: Some(io.to_string()),
                    ..observer.status()
                })
            }
            Link::Agent(client) => {
                let (client, blank) = (client.clone(), self.blank());
                Exporter::start(address, move || status_of(&client, &blank))
            }
        };
        started.map_err(|error| {
            PyOSError::new_err(format!("cannot show metrics at {address}: {error}"))
        })
    }

    /// What is known of this rank without asking.
    fn blank(&self) -> Status {
        let rank = self.setup.rank.0;
        let mut status = Status::new(Role::Rank, &self.setup.job, Some(rank));
        status.interface = Some(self.interface.clone());
        status.address = Some(self.me.to_string());
        status
    }
}

/// What a daemon says of a rank; of one whose daemon has gone, why there is nothing.
fn status_of(client: &Client, blank: &Status) -> Status {
    // Its process is this one, whoever sends its frames.
    let process = blank.process;
    match client.status() {
        Ok(status) => Status { process, ..status },
        Err(error) => Status {
            failed: Some(error.to_string()),
            ..blank.clone()
        },
    }
}

fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Rank {
    /// `place` is the rank's number among the children of its switch, how many those are, and how many the topmost switch has;
    /// `None` where one switch sums all. `values` is how many a frame has, as the switch's program says. `agent` is the socket of
    /// a daemon that owns the interface. `deadline` is after how many seconds a sum is made of those who are there, if `quorum`
    /// are; what comes later is dropped, or joins the next sum of the same key if `late` is `next`.
    #[new]
    #[pyo3(signature = (interface, job, rank, ranks, window, place = None, values = 256, agent = None, deadline = None, quorum = 1,
        late = "drop"))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        interface: String,
        job: u16,
        rank: u16,
        ranks: u16,
        window: u32,
        place: Option<(u16, u8, u8)>,
        values: u16,
        agent: Option<&str>,
        deadline: Option<f64>,
        quorum: u16,
        late: &str,
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
            values_per_packet: values,
            values_per_round: 0,
            first_chunk: ChunkId(0),
        };
        let job = match place {
            None => Job::under_one_switch(config),
            Some(_) => Job::new(config),
        };
        let job = job.map_err(wrong)?;
        let mut setup = Setup::under_one_switch(job, WorkerId(rank), Retransmission::of_ranks());
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
        let deadline = deadline.map(|seconds| {
            let after = Duration::try_from_secs_f64(seconds).map_err(wrong)?;
            let carry = match late {
                "drop" => Carry::Drop,
                "next" => Carry::NextRound,
                _ => return Err(wrong(format!("{late}: what is late is `drop` or `next`"))),
            };
            let after_ns = u64::try_from(after.as_nanos()).map_err(wrong)?;
            let lateness = Lateness::new(&job, setup.place, after_ns, quorum, carry);
            setup.lateness = Some(lateness.map_err(wrong)?);
            Ok(Deadline {
                after_ns,
                quorum,
                carries: carry == Carry::NextRound,
            })
        });
        let deadline = deadline.transpose()?;
        let agent = agent.map(|path| Client::connect(Path::new(path)));
        let agent = agent.transpose().map_err(told)?;
        let me = match &agent {
            None => Endpoint::of(&interface)?,
            Some(agent) => agent.whereabouts(Some(&interface)).map_err(told)?,
        };
        Ok(Rank {
            me,
            agent,
            interface,
            job: config,
            setup,
            deadline,
        })
    }

    /// Where it is, as the other ranks are to be told: `MAC/IPv4`.
    #[getter]
    fn address(&self) -> String {
        self.me.to_string()
    }

    /// Asks the switch from which chunk number on its cells are free. One rank does it, before any joins.
    fn open(&self, py: Python<'_>) -> PyResult<u32> {
        if let Some(agent) = &self.agent {
            return py.detach(|| agent.open(&self.described())).map_err(told);
        }
        let _place = self.place()?;
        let (mut frames, _) = InterfaceFrames::open(&self.interface, Io::Auto)?;
        let first = py.detach(|| collective::open_job(&self.setup, self.me, &mut frames));
        Ok(first.map_err(told)?.0)
    }

    /// Joins, with the first chunk that [`Rank::open`] found. `peers` are all ranks' addresses: one that does not answer the
    /// others for `gone_after` seconds is gone. Values are rounded to the nearest, or by chance, of which `stochastic` is the seed.
    /// While the switch is silent ranks sum themselves, if `fallback` says so; `silent` if no switch was found. What the rank
    /// counts, and what it waits for, is shown at the address `metrics`.
    #[pyo3(signature = (first_chunk, peers, gone_after = 5.0, stochastic = None, io = "auto", fallback = true, silent = false,
        metrics = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn join(
        &self,
        first_chunk: u32,
        peers: Vec<String>,
        gone_after: f64,
        stochastic: Option<u64>,
        io: &str,
        fallback: bool,
        silent: bool,
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
                fallback: fallback.then_some(Fallback {
                    at_once: silent,
                    ..Fallback::IF_SILENT
                }),
                ..self.setup
            },
            me: self.me,
            peers: peers.map_err(wrong)?,
        };
        let io: Io = io.parse().map_err(PyValueError::new_err)?;
        let metrics: Option<Address> = metrics.map(str::parse).transpose().map_err(wrong)?;
        let (member, io, refused) = match &self.agent {
            None => {
                let (frames, refused) = InterfaceFrames::open(&self.interface, io)?;
                let io = frames.io();
                if let Some(fault) = frames.fault() {
                    return Err(told(CollectiveError::Link(fault)));
                }
                let place = Some(Arc::new(self.place()?));
                let member = collective::Member::start_at(config, frames, place)?;
                (
                    Link::Own(Box::new(member)),
                    io,
                    refused.map(|error| error.to_string()),
                )
            }
            // How frames come and go is the daemon's to say.
            Some(agent) => {
                let joined = agent.join(
                    &self.described(),
                    first_chunk,
                    &config.peers,
                    after,
                    fallback.then_some(silent),
                );
                let (io, refused) = joined.map_err(told)?;
                (Link::Agent(agent.clone()), io, refused)
            }
        };
        let exporter = metrics.map(|address| self.show(&member, io, &address));
        Ok(Member {
            io,
            exporter: exporter.transpose()?,
            refused,
            spare: Arc::default(),
            ranks,
            member: Some(member),
            rounding: stochastic.map_or(Rounding::Nearest, |seed| Rounding::Stochastic { seed }),
        })
    }
}

#[pymethods]
impl Member {
    /// Sums values over all ranks, or averages them: `length` of this type from `address` on, which are copied before this
    /// returns. What of them is late joins the next sum of the same `key`, if that is wanted. A rank that does not take the sums
    /// only gives its values; `root` is who does, if not all.
    #[pyo3(signature = (address, length, dtype, average, key = None, takes = true, root = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn all_reduce(
        &self,
        address: usize,
        length: usize,
        dtype: &str,
        average: bool,
        key: Option<u64>,
        takes: bool,
        root: Option<u16>,
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
        let (share, writes) = match takes {
            true => (Share::GivesAndTakes, Writes::Sums),
            false => (Share::Gives, Writes::Nothing),
        };
        let reduction = Reduction {
            average,
            rounding: self.rounding,
            key,
            share,
            terms: root.map(|root| {
                let deed = if average { "average" } else { "sum" };
                Terms::named(dtype, deed, Some(root), length as u64)
            }),
        };
        self.begin(values, reduction, writes)
    }

    /// Gives all other ranks these bytes, which are copied before this returns: so many elements of that type, of the rank `root`,
    /// which is this one. They are the only ones in a sum of zeros, and so come as they are.
    fn broadcast(
        &self,
        address: usize,
        bytes: usize,
        dtype: &str,
        length: u64,
        root: u16,
    ) -> PyResult<Sums> {
        // SAFETY: the caller says that so many bytes stand there, and holds on to them meanwhile: Python's lock is held.
        let values = Values::Integers(unsafe { words(address, bytes)? });
        let reduction = Reduction {
            share: Share::Gives,
            terms: Some(Terms::named(dtype, "broadcast", Some(root), length)),
            ..Reduction::default()
        };
        self.begin(values, reduction, Writes::Nothing)
    }

    /// Takes so many bytes, elements of that type, of the rank `root`, which gives them.
    fn receive(&self, bytes: usize, dtype: &str, length: u64, root: u16) -> PyResult<Sums> {
        let reduction = Reduction {
            share: Share::Takes,
            terms: Some(Terms::named(dtype, "broadcast", Some(root), length)),
            ..Reduction::default()
        };
        let values = Values::Integers(vec![0; bytes.div_ceil(size_of::<i32>())]);
        self.begin(values, reduction, Writes::Bytes)
    }

    /// Says what this rank gives to an operation that is done by other means. Waiting for it fails at all ranks if they do not
    /// say the same, or some have given their values to the switch.
    #[pyo3(signature = (dtype, deed, length, root = None))]
    fn compare(&self, dtype: &str, deed: &str, length: u64, root: Option<u16>) -> PyResult<Sums> {
        let reduction = Reduction {
            share: Share::Compares,
            terms: Some(Terms::named(dtype, deed, root, length)),
            ..Reduction::default()
        };
        self.begin(Values::Integers(vec![0]), reduction, Writes::Nothing)
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

    /// How often the switch fell silent, so that ranks summed themselves. A daemon tells it with each sum.
    #[getter]
    fn fallbacks(&self) -> u64 {
        match &self.member {
            Some(Link::Own(member)) => member.counters().0.fallbacks,
            Some(Link::Agent(client)) => client.fallbacks(),
            None => 0,
        }
    }

    /// Leaves the job: what has no sums yet fails.
    fn close(&mut self, py: Python<'_>) {
        let left = (self.exporter.take(), self.member.take());
        // The thread may stay a moment for what others have missed.
        py.detach(|| drop(left));
    }

    /// Where it shows what it counts.
    #[getter]
    fn metrics(&self) -> Option<String> {
        let exporter = self.exporter.as_ref();
        exporter.map(|exporter| exporter.address().to_string())
    }

    /// Operations that have their sums, and those that have none for a value that is not finite; frames, bytes, frames sent
    /// again, probes, chunks whose exponent was guessed wrongly, timeouts; how often the switch fell silent, and was there again,
    /// and chunks that hosts have summed meanwhile. Then, of deadlines: chunks whose sum is of fewer than all; those without this
    /// rank's values, and those with its values cut off; those of both kinds of which nothing joins another sum; sums that what
    /// was late has joined, and those that it should have and could not; chunks that this rank closed, and those of which the
    /// switch had forgotten whether they were.
    fn counters(&self) -> PyResult<[(&'static str, u64); 19]> {
        let counters = match &self.member {
            Some(Link::Own(member)) => member.counters().0,
            Some(Link::Agent(client)) => counted(&client.status().map_err(told)?),
            None => RankCounters::default(),
        };
        Ok([
            ("operations", counters.operations),
            ("non_finite", counters.non_finite),
            ("frames", counters.sent.frames),
            ("bytes", counters.sent.bytes),
            ("frames_again", counters.sent.retransmitted_frames),
            ("probes", counters.probes),
            ("guessed_again", counters.repeated_guesses),
            ("timeouts", counters.timeouts),
            ("fallbacks", counters.fallbacks),
            ("returns", counters.returns),
            ("chunks_by_hosts", counters.by_hosts),
            ("partial", counters.partial_chunks),
            ("late", counters.late_chunks),
            ("clipped", counters.clipped_chunks),
            ("dropped", counters.dropped_chunks),
            ("carried", counters.carried),
            ("lost", counters.lost_residuals),
            ("closed", counters.closes),
            ("forgotten", counters.forgotten),
        ])
    }
}

#[pymethods]
impl Sums {
    /// Waits, and writes the sums to `address`, where there is room for `length` values of the type that was given, or for the
    /// bytes of a broadcast; nothing where the rank takes none. Gives what they are off by at most, and of how many ranks the part
    /// is that has the fewest.
    fn wait(
        &self,
        py: Python<'_>,
        address: usize,
        length: usize,
        seconds: f64,
    ) -> PyResult<(f64, u16)> {
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
        let contributors = self.fewest(&sums);
        // SAFETY: the caller says that there is room for `length` values of this type there, which nobody else touches.
        unsafe {
            match (self.writes, &sums.values) {
                (Writes::Nothing, _) => {}
                (Writes::Bytes, Values::Integers(words)) => put_bytes(words, address, length)?,
                (_, Values::Floats(values)) => put(values, address, length)?,
                (_, Values::Float16s(values)) => put(values, address, length)?,
                (_, Values::Bfloat16s(values)) => put(values, address, length)?,
                (_, Values::Integers(values)) => put(values, address, length)?,
                (_, Values::Int8s(values)) => put(values, address, length)?,
            }
        }
        if let Values::Floats(values) = sums.values {
            self.spare.give(values);
        }
        Ok((sums.error_bound, contributors))
    }
}

impl Member {
    fn begin(&self, values: Values, reduction: Reduction, writes: Writes) -> PyResult<Sums> {
        let member = self.member.as_ref().ok_or(CollectiveError::Closed);
        let pending = member.and_then(|member| member.all_reduce_as(values, reduction));
        let pending = pending.map_err(told)?;
        Ok(Sums {
            pending: Mutex::new(Some(pending)),
            writes,
            spare: Arc::clone(&self.spare),
            ranks: self.ranks,
        })
    }
}

impl Sums {
    fn fewest(&self, sums: &RankSums) -> u16 {
        let partial = sums.partial.iter();
        let counts = partial.map(|partial| partial.contributors.len() as u16);
        counts.min().unwrap_or(self.ranks)
    }
}

/// What a status says that a rank has counted.
fn counted(status: &Status) -> RankCounters {
    let count = |name: &str| status.counters.get(name).copied().unwrap_or(0);
    let mut counters = RankCounters {
        fallbacks: count("weir_fallbacks_total"),
        returns: count("weir_returns_total"),
        by_hosts: count("weir_chunks_by_hosts_total"),
        operations: count("weir_operations_total"),
        non_finite: count("weir_non_finite_operations_total"),
        probes: count("weir_probes_total"),
        repeated_guesses: count("weir_repeated_guesses_total"),
        timeouts: count("weir_timeouts_total"),
        partial_chunks: count("weir_partial_chunks_total"),
        late_chunks: count("weir_late_chunks_total"),
        clipped_chunks: count("weir_clipped_chunks_total"),
        dropped_chunks: count("weir_dropped_chunks_total"),
        carried: count("weir_carried_operations_total"),
        lost_residuals: count("weir_lost_residuals_total"),
        closes: count("weir_closes_total"),
        forgotten: count("weir_forgotten_chunks_total"),
        ..RankCounters::default()
    };
    counters.sent.frames = count("weir_sent_frames_total");
    counters.sent.retransmitted_frames = count("weir_resent_frames_total");
    // Metrics count whole frames.
    let headers = (EMPTY_FRAME * counters.sent.frames).min(count("weir_sent_bytes_total"));
    counters.sent.bytes = count("weir_sent_bytes_total") - headers;
    counters
}

fn told(error: CollectiveError) -> PyErr {
    match error {
        CollectiveError::Agent { kind, ref text } => match kind {
            Kind::NonFinite => NonFinite::new_err(text.clone()),
            Kind::Silent => Silent::new_err(text.clone()),
            Kind::Io => PyOSError::new_err(text.clone()),
            Kind::Refused | Kind::Failed => PyRuntimeError::new_err(text.clone()),
        },
        CollectiveError::Timeout { .. } | CollectiveError::Late { .. } => {
            PyTimeoutError::new_err(error.to_string())
        }
        CollectiveError::Opening(_) => Silent::new_err(error.to_string()),
        CollectiveError::NonFinite(_) => NonFinite::new_err(error.to_string()),
        CollectiveError::Io(_) | CollectiveError::Link(_) => PyOSError::new_err(error.to_string()),
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
    // Ranks of other versions may send other frames.
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("LAYOUT", LAYOUT)?;
    module.add("Silent", module.py().get_type::<Silent>())?;
    module.add("NonFinite", module.py().get_type::<NonFinite>())
}
