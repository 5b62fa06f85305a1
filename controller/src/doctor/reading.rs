//! Reads the state of a switch by P4Runtime, without becoming its primary controller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use admission::Grant;
use p4lang::runtime::{MulticastGroup, TableEntry};
use p4rt::client::{Client, ClientError};
use scenario::plan::names::{aggregate, forward, guard};
use tokio::runtime::Runtime;

use super::cells::Cells;
use super::guard::GuardReading;
use super::switch_jobs::SwitchJobs;
use crate::jobs::entries::param_of;
use crate::target::{Item, Query};

/// Timeout for connecting to a switch, and for each of its answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why the doctor cannot read a switch.
#[derive(Debug, thiserror::Error)]
pub enum ReadingError {
    /// An error of the P4Runtime client.
    #[error(transparent)]
    Client(#[from] Box<ClientError>),
}

impl From<ClientError> for ReadingError {
    fn from(error: ClientError) -> ReadingError {
        ReadingError::Client(Box::new(error))
    }
}

/// State of a switch when the doctor read it: entries, register cells, counters.
#[derive(Debug, Clone)]
pub struct SwitchReading {
    /// Jobs that the switch sums, parsed from its table entries.
    pub told: SwitchJobs,
    /// Contents of the switch's register cells, or why they cannot be read.
    pub cells: Result<Cells, String>,
    /// Number of received frames by port; empty if the switch does not report it.
    pub arrived: BTreeMap<u32, u64>,
    /// Admitted jobs and dropped frames; `None` if the program does not check the senders of a job's frames.
    pub guard: Option<GuardReading>,
    /// Number of frames dropped, since the program was loaded, because the rank that they name is behind another port.
    pub foreign: u64,
}

impl SwitchReading {
    /// Number of pairs of register cells (slots) of the switch; `None` if its cells cannot be read.
    pub fn pairs(&self) -> Option<u32> {
        let cells = self.cells.as_ref().ok()?;
        u32::try_from(cells.owners.len() / 2).ok()
    }
}

/// A read-only P4Runtime connection to a switch.
pub struct Session {
    runtime: Arc<Runtime>,
    client: Client,
    sums: bool,
    guards: bool,
    has_cells: Result<(), String>,
}

impl Session {
    /// Connects to the switch at `address` (`host:port`), and reads which tables and registers its program has.
    pub fn open(
        runtime: Arc<Runtime>,
        address: &str,
        device_id: u64,
    ) -> Result<Session, ReadingError> {
        let client = runtime.block_on(async {
            let mut client = Client::connect(address, device_id, PATIENCE).await?;
            client.fetch_pipeline().await?;
            Ok::<_, ClientError>(client)
        })?;
        let index = client.index()?;
        let sums = index.tables.named(aggregate::JOBS).is_some();
        let guards = index.tables.named(guard::LEASES).is_some();
        let registers = [aggregate::OWNERS, aggregate::BITMAPS];
        let lacks = registers
            .iter()
            .find(|name| index.registers.named(name).is_none());
        let has_cells = match lacks {
            Some(name) => Err(format!("its program has no {name}")),
            None => Ok(()),
        };
        Ok(Session {
            runtime,
            client,
            sums,
            guards,
            has_cells,
        })
    }

    /// Reads the switch's entries, register cells and counters once.
    pub fn look(&self) -> Result<SwitchReading, ReadingError> {
        let entries = |table: &str| Query::Entries {
            table: Some(table.to_owned()),
        };
        let mut queries = Vec::new();
        if self.sums {
            queries.extend([
                entries(aggregate::JOBS),
                entries(aggregate::MEMBERS),
                Query::MulticastGroups { id: None },
            ]);
            // A switch that is a wire forwards by port.
            if self.client.index()?.tables.named(forward::TABLE).is_some() {
                queries.push(entries(forward::TABLE));
            }
        }
        let items = match queries.is_empty() {
            true => Vec::new(),
            false => self.read(&queries)?,
        };
        let (mut entries, mut groups): (Vec<TableEntry>, Vec<MulticastGroup>) = Default::default();
        for item in items {
            match item {
                Item::TableEntry(entry) => entries.push(entry),
                Item::MulticastGroup(group) => groups.push(group),
                _ => {}
            }
        }
        Ok(SwitchReading {
            told: SwitchJobs {
                guards: self.guards,
                ..SwitchJobs::new(self.sums, &entries, &groups)
            },
            cells: self.cells(),
            arrived: self.arrived(),
            guard: match self.guards {
                true => Some(self.guard()?),
                false => None,
            },
            // A program without this counter drops such frames uncounted.
            foreign: match self.sums {
                true => self.counter(aggregate::OUTCOMES).unwrap_or_default(),
                false => Vec::new(),
            }
            .get(aggregate::OUTCOME_FOREIGN)
            .copied()
            .unwrap_or(0),
        })
    }

    fn guard(&self) -> Result<GuardReading, ClientError> {
        // Read first: a lease that has run out by then has also run out when its entry is judged.
        let now_ns = self.clock();
        let entries = self
            .runtime
            .block_on(self.client.read_noted(guard::LEASES))?;
        let grants = entries.iter().filter_map(|(entry, note)| {
            // The entry of job 0 stores the tenants, which are not a grant.
            let grant = serde_json::from_slice::<Grant>(note).ok()?;
            let until_ns = param_of::<u64>(entry, guard::DEADLINE);
            Some(Grant { until_ns, ..grant })
        });
        Ok(GuardReading {
            grants: grants.collect(),
            now_ns,
            outcomes: self.counter(guard::OUTCOMES)?,
            strangers: self.counter(guard::STRANGERS)?,
        })
    }

    fn counter(&self, name: &str) -> Result<Vec<u64>, ClientError> {
        let items = self.read(&[Query::Counter {
            name: name.to_owned(),
            index: None,
        }])?;
        Ok(items.iter().map(Item::packets).collect())
    }

    fn read(&self, queries: &[Query]) -> Result<Vec<Item>, ClientError> {
        self.runtime.block_on(self.client.read(queries))
    }

    /// Reads the register cells: the chunk that each holds (its owner), then the bitmaps, then the owners again. A cell whose
    /// owner has changed in between counts as empty.
    fn cells(&self) -> Result<Cells, String> {
        self.has_cells.clone()?;
        let before = self.register(aggregate::OWNERS)?;
        let bitmaps = self.register(aggregate::BITMAPS)?;
        let after = self.register(aggregate::OWNERS)?;
        let stays = before.iter().zip(&after).map(|(one, other)| one == other);
        let bitmaps = bitmaps.iter().zip(stays);
        Ok(Cells {
            bitmaps: bitmaps
                .map(|(bits, stays)| if stays { *bits } else { 0 })
                .collect(),
            owners: after.into_iter().map(|owner| owner as u32).collect(),
        })
    }

    /// Reads the first value of each cell of a register, by cell index. On a Tofino chip, a cell also has a second value.
    fn register(&self, name: &str) -> Result<Vec<u64>, String> {
        let query = Query::Register {
            name: name.to_owned(),
            index: None,
        };
        let items = self.read(&[query]).map_err(|error| error.to_string())?;
        let mut cells = BTreeMap::new();
        for (at, item) in (0..).zip(items) {
            if let Item::Register { index, fields, .. } = item {
                let value = fields.first().and_then(|field| field.to()).unwrap_or(0);
                cells.insert(index.unwrap_or(at), value);
            }
        }
        Ok(cells.into_values().collect())
    }

    /// Reads the switch's clock in nanoseconds; `None` for all but the embedded switch, which alone has leases.
    #[cfg(feature = "testbed")]
    fn clock(&self) -> Option<u64> {
        crate::target::extension::clock(&self.runtime, self.client.address()).ok()
    }

    #[cfg(not(feature = "testbed"))]
    fn clock(&self) -> Option<u64> {
        None
    }

    #[cfg(feature = "testbed")]
    fn arrived(&self) -> BTreeMap<u32, u64> {
        // Switches other than the embedded one do not report counts.
        let counts = crate::target::extension::port_counts(&self.runtime, self.client.address());
        let counts = counts.unwrap_or_default().into_iter();
        counts.map(|port| (port.port, port.rx_frames)).collect()
    }

    #[cfg(not(feature = "testbed"))]
    fn arrived(&self) -> BTreeMap<u32, u64> {
        BTreeMap::new()
    }
}
