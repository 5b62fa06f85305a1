//! P4 text as a data plane: p4lang compiles it, [`pipeline`] runs it.

use crate::dataplane::{Dataplane, LoadError, Loader, Program, Transmit};
use p4lang::diagnostics::{Code as DiagnosticCode, Sink};
use p4lang::runtime::{ActionCall, CloneSession, MulticastGroup, TableEntry};
use p4lang::{Compiled, Options};
use p4rt::rpc::Code;
use p4rt::status::{UpdateError, UpdateResult};
use p4rt::translate::CounterValue;
use pipeline::{ExternError, ReplicationError, Switch, TableError};
use std::path::Path;
use std::sync::Arc;

/// Takes P4 text as device config: a single file, as [`Compiled::preprocessed`] is.
#[derive(Debug, Clone, Default)]
pub struct P4Loader {
    /// How programs are run.
    pub config: pipeline::Config,
}

impl Loader for P4Loader {
    fn load(&self, device_config: &[u8]) -> Result<Program, LoadError> {
        let text = std::str::from_utf8(device_config)
            .map_err(|error| LoadError(format!("the device config is not P4 text: {error}")))?;
        let name = "device config";
        let file = |path: &str| (path == name).then(|| text.to_owned());
        let compiled = p4lang::compile(&file, name, &Options::default())
            .map_err(|errors| LoadError(errors.to_string()))?;
        self.program(compiled)
    }
}

impl P4Loader {
    /// Compiles a file and what it includes; also gives the device config that stands for it.
    pub fn load_file(
        &self,
        path: &Path,
        options: &Options,
    ) -> Result<(Program, Vec<u8>), LoadError> {
        let file = |path: &str| std::fs::read_to_string(path).ok();
        let compiled = p4lang::compile(&file, &path.to_string_lossy(), options)
            .map_err(|errors| LoadError(errors.to_string()))?;
        let device_config = compiled.preprocessed.clone().into_bytes();
        Ok((self.program(compiled)?, device_config))
    }

    /// Makes a compiled program ready to run.
    pub fn program(&self, compiled: Compiled) -> Result<Program, LoadError> {
        let program = Arc::new(compiled.program);
        let switch =
            Switch::new(Arc::clone(&program), self.config.clone()).map_err(|error| match error
                .span()
            {
                Some(span) => {
                    let mut sink = Sink::new();
                    sink.error(DiagnosticCode::Unsupported, span, error.to_string());
                    LoadError(sink.finish(Arc::clone(&program.source)).to_string())
                }
                None => LoadError(error.to_string()),
            })?;
        Ok(Program {
            p4info: compiled.p4info,
            dataplane: Box::new(P4Switch(switch)),
        })
    }
}

/// A program in execution.
struct P4Switch(Switch);

impl Dataplane for P4Switch {
    fn handle_packet(&mut self, now_ns: u64, port: u32, frame: &[u8]) {
        self.0.handle_packet(now_ns, port, frame);
    }

    fn handle_timeout(&mut self, now_ns: u64) {
        self.0.handle_timeout(now_ns);
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.poll_timeout()
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.0.poll_transmit().map(|transmit| Transmit {
            port: transmit.port,
            frame: transmit.bytes,
        })
    }

    fn recycle(&mut self, frame: Vec<u8>) {
        self.0.recycle(frame);
    }

    fn drops(&self) -> Vec<(String, u64)> {
        let drops = self.0.stats().drops().filter(|(_, frames)| *frames > 0);
        drops
            .map(|(reason, frames)| (reason.name().to_owned(), frames))
            .collect()
    }

    fn begin(&mut self) {
        self.0.begin();
    }

    fn commit(&mut self) {
        self.0.commit();
    }

    fn rollback(&mut self) {
        self.0.rollback();
    }

    fn insert_entry(&mut self, entry: &TableEntry) -> UpdateResult {
        self.0.insert_entry(entry).map_err(table_error)
    }

    fn modify_entry(&mut self, entry: &TableEntry) -> UpdateResult {
        self.0.modify_entry(entry).map_err(table_error)
    }

    fn delete_entry(&mut self, entry: &TableEntry) -> UpdateResult {
        self.0.delete_entry(entry).map_err(table_error)
    }

    fn entries(&self, table: &str) -> Vec<TableEntry> {
        self.0.entries(table).unwrap_or_default()
    }

    fn entry(&self, entry: &TableEntry) -> Option<TableEntry> {
        let same = |other: &TableEntry| {
            // The order of the key's fields is the writer's.
            let equal = other.key.len() == entry.key.len()
                && other.key.iter().all(|field| entry.key.contains(field));
            equal && other.priority == entry.priority
        };
        self.entries(&entry.table).into_iter().find(same)
    }

    fn set_default_action(&mut self, table: &str, action: Option<&ActionCall>) -> UpdateResult {
        self.0
            .set_default_action(table, action)
            .map_err(table_error)
    }

    fn default_action(&self, table: &str) -> Option<ActionCall> {
        self.0.default_action(table).ok()
    }

    fn set_multicast_group(&mut self, group: &MulticastGroup) -> UpdateResult {
        self.0.set_multicast_group(group).map_err(replication_error)
    }

    fn remove_multicast_group(&mut self, id: u32) -> UpdateResult {
        self.0.delete_multicast_group(id).map_err(replication_error)
    }

    fn multicast_group(&self, id: u32) -> Option<MulticastGroup> {
        self.multicast_groups()
            .into_iter()
            .find(|group| group.id == id)
    }

    fn multicast_groups(&self) -> Vec<MulticastGroup> {
        self.0.multicast_groups()
    }

    fn set_clone_session(&mut self, session: &CloneSession) -> UpdateResult {
        self.0.set_clone_session(session).map_err(replication_error)
    }

    fn remove_clone_session(&mut self, id: u32) -> UpdateResult {
        self.0.delete_clone_session(id).map_err(replication_error)
    }

    fn clone_session(&self, id: u32) -> Option<CloneSession> {
        self.clone_sessions()
            .into_iter()
            .find(|session| session.id == id)
    }

    fn clone_sessions(&self) -> Vec<CloneSession> {
        self.0.clone_sessions()
    }

    fn read_register(&self, name: &str, index: u64) -> Result<Vec<u128>, UpdateError> {
        self.0.register_read(name, index).map_err(extern_error)
    }

    fn write_register(&mut self, name: &str, index: u64, fields: &[u128]) -> UpdateResult {
        self.0
            .register_write(name, index, fields)
            .map_err(extern_error)
    }

    fn read_counter(&self, name: &str, index: u64) -> Result<CounterValue, UpdateError> {
        let value = self.0.counter_read(name, index).map_err(extern_error)?;
        Ok(CounterValue {
            packets: value.packets,
            bytes: value.bytes,
        })
    }

    fn write_counter(&mut self, name: &str, index: u64, value: CounterValue) -> UpdateResult {
        let value = pipeline::CounterValue {
            packets: value.packets,
            bytes: value.bytes,
        };
        self.0
            .counter_write(name, index, value)
            .map_err(extern_error)
    }
}

fn table_error(error: TableError) -> UpdateError {
    let code = match error {
        TableError::NoSuchTable | TableError::NotFound => Code::NotFound,
        TableError::DuplicateEntry => Code::AlreadyExists,
        TableError::Full(_) => Code::ResourceExhausted,
        TableError::ConstTable => Code::PermissionDenied,
        TableError::ValueTooWide(_) => Code::OutOfRange,
        _ => Code::InvalidArgument,
    };
    UpdateError::new(code, error.to_string())
}

fn replication_error(error: ReplicationError) -> UpdateError {
    let code = match error {
        ReplicationError::NotFound => Code::NotFound,
        ReplicationError::Full => Code::ResourceExhausted,
        ReplicationError::ZeroId | ReplicationError::BadReplicas => Code::InvalidArgument,
    };
    UpdateError::new(code, error.to_string())
}

fn extern_error(error: ExternError) -> UpdateError {
    let code = match error {
        ExternError::NotFound => Code::NotFound,
        ExternError::OutOfRange | ExternError::ValueTooWide => Code::OutOfRange,
        ExternError::WrongShape => Code::InvalidArgument,
        ExternError::Full => Code::ResourceExhausted,
        ExternError::Duplicate => Code::AlreadyExists,
    };
    UpdateError::new(code, error.to_string())
}
