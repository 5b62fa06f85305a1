//! L-values (P4_16 6.6): resolves a path and its indices once (6.8), for later reads and writes.

use super::value::Value;
use super::{EnvUnit, Interpreter, Result};
use crate::reference::poison::Fill;
use crate::rules::InvalidFields;
use p4lang::ir::{Access, LValue, Type, VarId};

/// A step of a resolved path from a variable to a part of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep {
    /// A field of a struct or header, or a member of a union, by number from 0.
    Field(u32),
    /// An element of a stack by index, which may be out of range.
    Element(u64),
    /// Bits `hi ..= lo` of a scalar.
    Slice(u32, u32),
}

/// A resolved l-value: a variable, and the path to a part of its value.
#[derive(Debug, Clone)]
pub struct VarPath {
    /// Variable of the current parser, control or function.
    pub var: VarId,
    /// Steps from the variable to the part of its value.
    pub steps: Vec<PathStep>,
    /// Type of the l-value.
    pub ty: Type,
}

impl Interpreter<'_, '_> {
    /// Resolves an l-value. In a parser, `next` and `last` may raise `StackOutOfBounds` (8.18).
    pub(crate) fn resolve(&mut self, lvalue: &LValue) -> Result<VarPath> {
        let mut steps = Vec::with_capacity(lvalue.path.len());
        for access in &lvalue.path {
            let step = match access {
                Access::Field(i) => PathStep::Field(*i),
                Access::Slice(hi, lo) => PathStep::Slice(*hi, *lo),
                Access::Index(e) => {
                    let index = self.expr(e)?.bits();
                    self.influences(&index, || "a stack index".into());
                    PathStep::Element(index.u64())
                }
                Access::Next | Access::Last => {
                    let (next, count) = match follow(&self.env().vars[lvalue.var.index()], &steps) {
                        Some(Value::Stack { next, elements }) => (*next, elements.len() as u32),
                        _ => (0, 0),
                    };
                    let index = match access {
                        Access::Next => Some(next),
                        _ => next.checked_sub(1),
                    };
                    let exists = index.is_some_and(|i| i < count);
                    if !exists && matches!(self.env().scope, EnvUnit::Parser(_)) {
                        let error = self.error_named("StackOutOfBounds");
                        return self.fail(error);
                    }
                    PathStep::Element(index.map_or(u64::MAX, u64::from))
                }
            };
            steps.push(step);
        }
        Ok(VarPath {
            var: lvalue.var,
            steps,
            ty: lvalue.ty.clone(),
        })
    }

    /// Reads the value of an l-value. A stack element that does not exist is undefined (8.18).
    pub(crate) fn read(&mut self, place: &VarPath) -> Value {
        let (whole, slice) = match place.steps.split_last() {
            Some((PathStep::Slice(hi, lo), whole)) => (whole, Some((*hi, *lo))),
            _ => (place.steps.as_slice(), None),
        };
        let found = follow(&self.env().vars[place.var.index()], whole).cloned();
        match (found, slice) {
            (Some(Value::Own(_, bits)), None) => Value::Bits(bits),
            (Some(value), None) => value,
            (Some(value), Some((hi, lo))) => Value::Bits(value.bits().slice(hi, lo)),
            (None, _) => self.undefined(&place.ty),
        }
    }

    pub(crate) fn write(&mut self, place: &VarPath, value: Value) {
        self.change(place.var, &place.steps, |to, _| to.assign(value));
    }

    /// Assigns a value to an l-value, as an assignment statement does.
    pub(crate) fn assign(&mut self, place: &VarPath, value: Value) {
        self.change(place.var, &place.steps, |to, fill| {
            match fill.invalid == InvalidFields::Kept {
                true => assign_valid(to, value),
                false => to.assign(value),
            }
        });
    }

    /// Changes the value of an l-value by a closure.
    pub(crate) fn change(
        &mut self,
        var: VarId,
        steps: &[PathStep],
        change: impl FnOnce(&mut Value, &mut Fill),
    ) {
        let last = self.envs.len() - 1;
        let fill = &mut self.watch.fill;
        store(&mut self.envs[last].vars[var.index()], steps, fill, change);
    }
}

/// The value at the end of a path without a slice; `None` for a stack element beyond the end.
fn follow<'v>(value: &'v Value, steps: &[PathStep]) -> Option<&'v Value> {
    let Some((step, rest)) = steps.split_first() else {
        return Some(value);
    };
    let inner = match (value, step) {
        (
            Value::Struct(fields) | Value::Union(fields) | Value::Header { fields, .. },
            PathStep::Field(i),
        ) => fields.get(*i as usize)?,
        (Value::Stack { elements, .. }, PathStep::Element(i)) => {
            elements.get(usize::try_from(*i).ok()?)?
        }
        _ => return None,
    };
    follow(inner, rest)
}

fn store(
    to: &mut Value,
    steps: &[PathStep],
    fill: &mut Fill,
    change: impl FnOnce(&mut Value, &mut Fill),
) {
    let Some((step, rest)) = steps.split_first() else {
        return change(to, fill);
    };
    match (to, step) {
        // A write to a field of an invalid header does not change any defined state (8.17).
        (Value::Header { valid: false, .. }, _) if !fill.invalid.are_written() => {}
        (Value::Struct(fields) | Value::Header { fields, .. }, PathStep::Field(i)) => {
            store(&mut fields[*i as usize], rest, fill, change);
        }
        (Value::Union(members), PathStep::Field(i)) => {
            let i = *i as usize;
            store(&mut members[i], rest, fill, change);
            // A write to a member makes the others invalid, whether the member is valid afterwards or not (8.21).
            if rest.is_empty() {
                let others = members.iter_mut().enumerate().filter(|(j, _)| *j != i);
                others.for_each(|(_, member)| invalidate(member, fill));
            }
        }
        (Value::Stack { elements, .. }, PathStep::Element(i)) => {
            let element = usize::try_from(*i).ok().and_then(|i| elements.get_mut(i));
            if let Some(element) = element {
                store(element, rest, fill, change);
            }
        }
        (Value::Bits(bits), PathStep::Slice(_, lo)) => {
            let mut part = Value::Bits(bits.clone());
            change(&mut part, fill);
            *bits = bits.insert(*lo, &part.bits());
        }
        (Value::Own(valid, bits), PathStep::Slice(_, lo)) => {
            let mut part = Value::Bits(bits.clone());
            change(&mut part, fill);
            (*valid, *bits) = (true, bits.insert(*lo, &part.bits()));
        }
        _ => {}
    }
}

/// Assigns a value field by field. Where it has an invalid header, the destination's becomes invalid and keeps its fields.
fn assign_valid(to: &mut Value, value: Value) {
    match (to, value) {
        (Value::Header { valid, .. }, Value::Header { valid: false, .. }) => *valid = false,
        (Value::Struct(to), Value::Struct(parts)) | (Value::Union(to), Value::Union(parts)) => {
            assign_each(to, parts);
        }
        (
            Value::Stack { elements, next },
            Value::Stack {
                elements: parts,
                next: new,
            },
        ) => {
            assign_each(elements, parts);
            *next = new;
        }
        (to, value) => to.assign(value),
    }
}

fn assign_each(to: &mut [Value], parts: Vec<Value>) {
    for (to, part) in to.iter_mut().zip(parts) {
        assign_valid(to, part);
    }
}

/// Interprets `setInvalid`: the header keeps its fields where the architecture's rules say so.
pub fn set_invalid(value: &mut Value, fill: &mut Fill) {
    match value {
        Value::Header { valid, .. } if fill.invalid == InvalidFields::Kept => *valid = false,
        other => invalidate(other, fill),
    }
}

/// Makes a header, a union's members or a stack's elements invalid, and their fields undefined.
pub fn invalidate(value: &mut Value, fill: &mut Fill) {
    match value {
        Value::Header { valid, fields } => {
            *valid = false;
            fields.iter_mut().for_each(|f| forget(f, fill));
        }
        Value::Union(inner)
        | Value::Stack {
            elements: inner, ..
        } => {
            inner.iter_mut().for_each(|v| invalidate(v, fill));
        }
        _ => {}
    }
}

/// Makes the fields of a header undefined.
fn forget(value: &mut Value, fill: &mut Fill) {
    match value {
        Value::Bits(bits) => *bits = fill.bits(bits.width),
        Value::Varbit(_, bits) => *bits = super::bits::Bits::new(0, 0u8),
        Value::Struct(inner)
        | Value::Stack {
            elements: inner, ..
        } => inner.iter_mut().for_each(|f| forget(f, fill)),
        _ => {}
    }
}
