//! A rank before it joins its job: its settings, and the search for the job's first chunk number.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aggregation::job::{self, ChunkId, Job, JobConfig, JobError, JobId, WorkerId};
use aggregation::rank::{Fallback, Rounding, Setup};
use host_agent::collective::{self, AttachError, CollectiveError, Config, JobLock};
use host_agent::frames::{Endpoint, EndpointError, Io};
use host_agent::metrics::{Address, Exporter, Role, Status};
use host_agent::serve::{Client, Deadline, RankOf};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::link::Link;
use crate::{Member, told};

/// A rank of a job that a switch has admitted, before it joins.
#[pyclass(frozen)]
pub struct Rank {
    interface: String,
    me: Endpoint,
    /// The rank's settings in the form of the daemon's messages.
    described: RankOf,
    /// The rank's settings as validated types.
    setup: Setup,
    /// The daemon through which the rank takes part; `None` if this process is the rank.
    agent: Option<Client>,
}

impl Rank {
    /// Takes the lock of the job, so that no other process of this host can be a rank of the job meanwhile.
    fn place(&self) -> PyResult<JobLock> {
        JobLock::take(&self.interface, self.described.job).map_err(|error| told(error.into()))
    }

    /// Starts an HTTP server for the rank's status and metrics at an address.
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

    /// The status of this rank, without its counters.
    fn blank(&self) -> Status {
        let rank = self.setup.rank.0;
        let mut status = Status::new(Role::Rank, &self.setup.job, Some(rank));
        status.interface = Some(self.interface.clone());
        status.address = Some(self.me.to_string());
        status
    }
}

/// A rank's status from its daemon; if the daemon does not answer, `blank` with the error.
fn status_of(client: &Client, blank: &Status) -> Status {
    // The status shows this process, not the daemon that sends its frames.
    let process = blank.process;
    match client.status() {
        Ok(status) => Status { process, ..status },
        Err(error) => Status {
            failed: Some(error.to_string()),
            ..blank.clone()
        },
    }
}

fn unattached(error: AttachError) -> PyErr {
    match error {
        AttachError::Carrier(error) => told(error),
        AttachError::Link(fault) => told(CollectiveError::Link(fault)),
        error => PyOSError::new_err(error.to_string()),
    }
}

/// The position of a rank in the tree of switches, for a job that a single switch sums.
fn under_one_switch(
    job: u16,
    rank: u16,
    ranks: u16,
    window: u32,
    values: u16,
) -> Result<(u16, u8, u8), JobError> {
    let job = Job::under_one_switch(JobConfig {
        job: JobId(job),
        workers: ranks,
        window,
        values_per_packet: values,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    })?;
    let place = job::TreePosition::under_one_switch(&job, WorkerId(rank));
    Ok((place.child.0, place.siblings, place.top))
}

fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Rank {
    /// `place` is the rank's number among the children of its switch, the number of these children, and that of the topmost
    /// switch's; `None` if a single switch sums all. `values` is the number of values per frame in the switch's program.
    /// `agent` is the socket of a daemon that owns the interface. `deadline` is the time in seconds after which a chunk may be
    /// closed with `quorum` contributors; late values are dropped, or join the next sum of the same key if `late` is `next`.
    #[new]
    /// `transport` carries frames between the rank and its switch: `udp` or `rdma`.
    #[pyo3(signature = (interface, job, rank, ranks, window, place = None, values = 256, agent = None, deadline = None, quorum = 1,
        late = "drop", transport = "udp"))]
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
        transport: &str,
    ) -> PyResult<Rank> {
        let place = match place {
            Some(place) => place,
            None => under_one_switch(job, rank, ranks, window, values).map_err(wrong)?,
        };
        let deadline = deadline.map(|seconds| {
            let after = Duration::try_from_secs_f64(seconds).map_err(wrong)?;
            let carries = match late {
                "drop" => false,
                "next" => true,
                _ => return Err(wrong(format!("late={late}: use `drop` or `next`"))),
            };
            Ok(Deadline {
                after_ns: u64::try_from(after.as_nanos()).map_err(wrong)?,
                quorum,
                carries,
            })
        });
        let described = RankOf {
            interface: Some(interface.clone()),
            job,
            rank,
            ranks,
            window,
            values_per_packet: values,
            place,
            deadline: deadline.transpose()?,
            transport: transport.parse().map_err(PyValueError::new_err)?,
        };
        let setup = described.setup(0).map_err(wrong)?;
        let agent = agent.map(|path| Client::connect(Path::new(path)));
        let agent = agent.transpose().map_err(told)?;
        let me = match &agent {
            None => Endpoint::from_interface(&interface)?,
            Some(agent) => agent.whereabouts(Some(&interface)).map_err(told)?,
        };
        Ok(Rank {
            me,
            agent,
            interface,
            described,
            setup,
        })
    }

    /// Addresses of this rank, which all other ranks need: `MAC/IPv4`.
    #[getter]
    fn address(&self) -> String {
        self.me.to_string()
    }

    /// Probes the switch for the first chunk number whose register cells are free. One rank does this before any rank joins.
    fn open(&self, py: Python<'_>) -> PyResult<u32> {
        if let Some(agent) = &self.agent {
            return py.detach(|| agent.open(&self.described)).map_err(told);
        }
        let _place = self.place()?;
        let (setup, transport) = (&self.setup, self.described.transport);
        let carrier =
            collective::attach_alone(&self.interface, Io::Auto, transport, setup, self.me);
        let mut carrier = carrier.map_err(unattached)?;
        let first = py.detach(|| collective::open_job_by(setup, &mut *carrier));
        Ok(first.map_err(told)?.0)
    }

    /// Joins the job, with the first chunk number from [`Rank::open`]. `peers` are the addresses of all ranks; a rank that does
    /// not answer the others for `gone_after` seconds is declared dead. Values are rounded to the nearest, or stochastically
    /// with the seed `stochastic`. With `fallback`, ranks sum while the switch is silent; with `silent`, from the beginning,
    /// since no switch was found. The rank's counters and its unfinished chunk are served at the address `metrics`.
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
        let ranks = self.described.ranks;
        if peers.len() != usize::from(ranks) {
            return Err(wrong(format!(
                "{} addresses for {ranks} ranks: give one address for each rank",
                peers.len()
            )));
        }
        let peers: Result<Vec<Endpoint>, EndpointError> =
            peers.iter().map(|peer| peer.parse()).collect();
        let after = Duration::try_from_secs_f64(gone_after).map_err(wrong)?;
        let setup = self.described.setup(first_chunk).map_err(wrong)?;
        let config = Config {
            setup: Setup {
                dead_after_ns: u64::try_from(after.as_nanos()).ok(),
                fallback: fallback.then_some(Fallback {
                    at_once: silent,
                    ..Fallback::IF_SILENT
                }),
                ..setup
            },
            me: self.me,
            peers: peers.map_err(wrong)?,
        };
        let io: Io = io.parse().map_err(PyValueError::new_err)?;
        let metrics: Option<Address> = metrics.map(str::parse).transpose().map_err(wrong)?;
        let (member, io, refused) = match &self.agent {
            None => {
                let transport = self.described.transport;
                let attached = collective::attach(&self.interface, io, transport, &config);
                let (carrier, way) = attached.map_err(unattached)?;
                let place = Some(self.place()?);
                let member = collective::Member::start_by(config, carrier, place)?;
                (Link::Own(Box::new(member)), way.io, way.notice)
            }
            // The daemon chooses the I/O backend.
            Some(agent) => {
                let joined = agent.join(
                    &self.described,
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
            exporter: Mutex::new(exporter.transpose()?),
            refused,
            spare: Arc::default(),
            ranks,
            member: Mutex::new(Some(Arc::new(member))),
            rounding: stochastic.map_or(Rounding::Nearest, |seed| Rounding::Stochastic { seed }),
        })
    }
}
