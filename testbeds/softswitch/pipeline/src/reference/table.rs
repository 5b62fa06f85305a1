//! Interprets tables (P4_16 14.2): evaluates keys, compares the entries one by one, runs the entry's or the default action.

use super::bits::{Bits, ones};
use super::frame::{from_words, to_words};
use super::value::Value;
use super::{EnvUnit, Interpreter, Result};
use crate::externs::hash;
use crate::externs::meter;
use crate::op::Mark;
use crate::op::bindings::Object;
use crate::table::Bound;
use crate::table::key::FieldSpec;
use crate::table::profile::Indirect;
use p4lang::ast::Direction;
use p4lang::ir::{Const, ExternId, Key, Table, TableId, VarId};

impl<'p> Interpreter<'_, 'p> {
    pub(crate) fn apply_table(
        &mut self,
        id: TableId,
        hit_var: Option<VarId>,
        action_run: Option<VarId>,
    ) -> Result<()> {
        let EnvUnit::Control(control_id, control) = self.env().scope else {
            return Ok(());
        };
        let table = &control.tables[id.index()];
        let index = self.code.bindings.tables[&(control_id, id.0)] as usize;
        self.mark(&Mark::Table(table.name.clone()));
        let mut keys = Vec::new();
        for key in table.key.iter().filter(|k| is_matched(k)) {
            let value = self.expr(&key.expr)?;
            self.influences(&value.bits(), || {
                format!("key field {} of table {}", key.name, table.name)
            });
            keys.push(value);
        }
        let specs = &self.state.tables[index].spec.fields;
        let words = keys.iter().zip(specs);
        let words: Vec<u64> = words.flat_map(|(key, spec)| sought(key, spec)).collect();
        let found = self.state.tables[index].lookup_one_by_one(&words);
        self.state.found[index] = found;
        let hit = found.is_some();
        let bound = match self.indirect(table, index)? {
            Some(picked) => picked,
            None => self.state.tables[index].action(found).into(),
        };
        if let Some(var) = hit_var {
            self.env().vars[var.index()] = Value::Bits(Bits::bool(hit));
        }
        if let Some(var) = action_run {
            let number = bound.index.unwrap_or(u32::MAX);
            self.env().vars[var.index()] = Value::Bits(Bits::new(32, number));
        }
        let mut params = Vec::new();
        if let Some(offered) = bound.index.and_then(|i| table.actions.get(i as usize)) {
            let mut at = 0;
            for param in &control.actions[offered.action.index()].params {
                if param.direction == Direction::None {
                    let ty = &control.vars[param.var.index()].ty;
                    let (value, next) = from_words(self.program, ty, &bound.params, at);
                    at = next;
                    params.push(value);
                }
            }
        }
        self.trace_table(table, index, &keys, (hit, &bound), (control, &params));
        if self.state.tables[index].spec.idle_timeout {
            self.state.tables[index].touch(found, self.now_ns);
        }
        // v1model's direct counters and meters work at each application.
        let length = self.packet.len() as u64;
        let object = |id: &ExternId| self.code.bindings.objects[id.index()];
        let counts = |id: &ExternId| matches!(object(id), Object::AutomaticCounter);
        let marks = |id: &ExternId| matches!(object(id), Object::AutomaticMeter);
        if property(table, "counters").filter(counts).is_some() {
            self.state.tables[index].count(found, length);
        }
        if let Some(id) = property(table, "meters").filter(marks) {
            let table = &mut self.state.tables[index];
            let colour = table.mark(found, meter::GREEN, self.now_ns, length);
            self.colours.insert(id, colour);
        }
        match bound.index.and_then(|i| table.actions.get(i as usize)) {
            Some(offered) => self
                .block(&offered.calls)
                .and_then(|()| self.call_action(offered.action, &offered.args, Some(params))),
            None => Ok(()),
        }
    }

    /// The action of the member or group that the found table entry refers to; `None` if the entry has an action of its own.
    fn indirect(&mut self, table: &'p Table, index: usize) -> Result<Option<Bound>> {
        let implementation =
            property(table, "psa_implementation").or(property(table, "implementation"));
        let profile = implementation.and_then(|id| self.code.bindings.profiles.get(&id));
        let (Some(profile), Some(indirect)) = (
            profile.copied(),
            self.state.tables[index].found_indirect(self.state.found[index]),
        ) else {
            return Ok(None);
        };
        let profile = profile as usize;
        let selector = self.state.profiles[profile].selector;
        let hash = match (indirect, selector) {
            (Indirect::Group(_) | Indirect::OneShot(_), Some(selector)) => {
                let mut data = Bits::new(0, 0u8);
                for key in table.key.iter().filter(|k| is_selected(k)) {
                    data = data.concat(&self.expr(&key.expr)?.flat());
                }
                self.influences(&data, || {
                    format!("the hash input of the selector of {}", table.name)
                });
                let (algorithm, width) = (selector.algorithm, selector.width);
                let hash = hash::compute(algorithm, &data.bytes(0), width, data.width);
                Bits::new(width, hash & u64::try_from(ones(width)).unwrap_or(u64::MAX)).u64()
            }
            _ => 0,
        };
        let profile = &self.state.profiles[profile];
        let place = profile.tables.iter().position(|t| *t as usize == index);
        let action = profile.action(place.unwrap_or(0), indirect, hash);
        // An empty group is a hit without an action.
        Ok(Some(action.cloned().unwrap_or(Bound::nothing())))
    }
}

/// Converts a key field's value to the words that the lookup compares.
pub(crate) fn sought(key: &Value, spec: &FieldSpec) -> Vec<u64> {
    let mut words = to_words(key);
    if let (Some(top), Some(sign)) = (words.last_mut(), spec.sign()) {
        *top ^= sign;
    }
    words
}

/// Whether table entries match this key field: they do not match fields that a selector hashes.
pub(crate) fn is_matched(key: &Key) -> bool {
    !is_selected(key)
}

/// Whether a selector hashes this key field.
fn is_selected(key: &Key) -> bool {
    key.match_kind == "selector"
}

fn property(table: &Table, name: &str) -> Option<ExternId> {
    let mut found = table.properties.iter().filter(|(n, _)| n == name);
    found.find_map(|(_, value)| match value {
        Const::Extern(id) => Some(*id),
        _ => None,
    })
}
