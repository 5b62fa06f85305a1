//! Calls of BMv2's Thrift service `standard`: tables, counters and registers.

use std::net::SocketAddr;
use std::time::Duration;

use super::connection::{Connection, ThriftError};
use super::refusal::Family;
use super::types::{ActionEntry, Counts, KeyPart, RawEntry};
use super::value::Value;

/// Number of the BMv2 context (a pipeline of its own) that every call names: BMv2's programs have only this one.
pub const CONTEXT: i32 = 0;

const STANDARD: &str = "standard";

type Result<T> = std::result::Result<T, ThriftError>;

/// Numbers the arguments of a Thrift call: the context is argument 1, and `rest` follows from 2 on.
pub(super) fn arguments(rest: impl IntoIterator<Item = Value>) -> Vec<(i16, Value)> {
    (1..)
        .zip(std::iter::once(Value::I32(CONTEXT)).chain(rest))
        .collect()
}

/// A connection to a BMv2 switch, with a typed method for each Thrift call.
pub struct Runtime {
    pub(super) connection: Connection,
}

impl Runtime {
    /// Connects to a switch; see [`Connection::open`].
    pub fn connect(address: SocketAddr, timeout: Duration) -> Result<Runtime> {
        Ok(Runtime {
            connection: Connection::open(address, timeout)?,
        })
    }

    /// Address of the switch, `host:port`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.connection.address()
    }

    pub(super) fn standard(
        &mut self,
        method: &str,
        arguments: Vec<(i16, Value)>,
        family: Family,
    ) -> Result<Option<Value>> {
        self.connection.call(STANDARD, method, arguments, family)
    }

    /// Converts a call's result with `read`; fails if the result is missing or has another form.
    pub(super) fn expect<T>(
        &self,
        method: &str,
        result: Option<Value>,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T> {
        result
            .as_ref()
            .and_then(read)
            .ok_or_else(|| ThriftError::Exchange {
                address: self.address(),
                call: method.to_owned(),
                reason: format!("its answer is not of the expected form: {result:?}"),
            })
    }

    // Tables.

    /// Adds an entry to a table; returns the entry's handle.
    pub fn add_entry(
        &mut self,
        table: &str,
        key: &[KeyPart],
        action: &str,
        data: &[Vec<u8>],
        priority: Option<i32>,
    ) -> Result<i32> {
        const METHOD: &str = "bm_mt_add_entry";
        let key = Value::structs(key.iter().map(KeyPart::to_value).collect());
        let options = priority.map(|priority| (1, priority.into()));
        let result = self.standard(
            METHOD,
            arguments([
                table.into(),
                key,
                action.into(),
                Value::binaries(data),
                Value::Struct(options.into_iter().collect()),
            ]),
            Family::Table,
        )?;
        self.expect(METHOD, result, Value::i32)
    }

    /// Changes the action of the table entry with the handle `handle`.
    pub fn modify_entry(
        &mut self,
        table: &str,
        handle: i32,
        action: &str,
        data: &[Vec<u8>],
    ) -> Result<()> {
        let rest = [
            table.into(),
            handle.into(),
            action.into(),
            Value::binaries(data),
        ];
        self.standard("bm_mt_modify_entry", arguments(rest), Family::Table)?;
        Ok(())
    }

    /// Removes the table entry with the handle `handle`.
    pub fn delete_entry(&mut self, table: &str, handle: i32) -> Result<()> {
        let rest = [table.into(), handle.into()];
        self.standard("bm_mt_delete_entry", arguments(rest), Family::Table)?;
        Ok(())
    }

    /// Reads all entries of a table.
    pub fn entries(&mut self, table: &str) -> Result<Vec<RawEntry>> {
        const METHOD: &str = "bm_mt_get_entries";
        let result = self.standard(METHOD, arguments([table.into()]), Family::Table)?;
        self.expect(METHOD, result, |value| {
            value.list()?.iter().map(RawEntry::of_value).collect()
        })
    }

    /// Default action of a table, for packets that match no entry.
    pub fn default_entry(&mut self, table: &str) -> Result<ActionEntry> {
        const METHOD: &str = "bm_mt_get_default_entry";
        let result = self.standard(METHOD, arguments([table.into()]), Family::Table)?;
        self.expect(METHOD, result, ActionEntry::of_value)
    }

    /// Sets the default action of a table, for packets that match no entry; `data` are the action's parameters.
    pub fn set_default(&mut self, table: &str, action: &str, data: &[Vec<u8>]) -> Result<()> {
        let rest = [table.into(), action.into(), Value::binaries(data)];
        self.standard("bm_mt_set_default_action", arguments(rest), Family::Table)?;
        Ok(())
    }

    /// Resets a table's default action to the one that its program declares.
    pub fn reset_default(&mut self, table: &str) -> Result<()> {
        let rest = [table.into()];
        self.standard("bm_mt_reset_default_entry", arguments(rest), Family::Table)?;
        Ok(())
    }

    // Cells.

    /// Reads the cell `index` of a counter array.
    pub fn read_counter(&mut self, counter: &str, index: i32) -> Result<Counts> {
        const METHOD: &str = "bm_counter_read";
        let rest = [counter.into(), index.into()];
        let result = self.standard(METHOD, arguments(rest), Family::Counter)?;
        self.expect(METHOD, result, Counts::of_value)
    }

    /// Writes the cell `index` of a counter array.
    pub fn write_counter(&mut self, counter: &str, index: i32, value: Counts) -> Result<()> {
        let rest = [counter.into(), index.into(), value.to_value()];
        self.standard("bm_counter_write", arguments(rest), Family::Counter)?;
        Ok(())
    }

    /// Reads the cell `index` of a register, in two's complement.
    pub fn read_register(&mut self, register: &str, index: i32) -> Result<i64> {
        const METHOD: &str = "bm_register_read";
        let rest = [register.into(), index.into()];
        let result = self.standard(METHOD, arguments(rest), Family::Register)?;
        self.expect(METHOD, result, Value::i64)
    }

    /// Reads all cells of a register, in order of their index.
    pub fn read_register_whole(&mut self, register: &str) -> Result<Vec<i64>> {
        const METHOD: &str = "bm_register_read_all";
        let result = self.standard(METHOD, arguments([register.into()]), Family::Register)?;
        self.expect(METHOD, result, |value| {
            value.list()?.iter().map(Value::i64).collect()
        })
    }

    /// Writes the cell `index` of a register.
    pub fn write_register(&mut self, register: &str, index: i32, value: i64) -> Result<()> {
        let rest = [register.into(), index.into(), value.into()];
        self.standard("bm_register_write", arguments(rest), Family::Register)?;
        Ok(())
    }

    /// Writes `value` to the cells `from..to` of a register.
    pub fn write_register_range(
        &mut self,
        register: &str,
        from: i32,
        to: i32,
        value: i64,
    ) -> Result<()> {
        let rest = [register.into(), from.into(), to.into(), value.into()];
        self.standard("bm_register_write_range", arguments(rest), Family::Register)?;
        Ok(())
    }
}
