//! PSA's extern objects and functions.

use super::expr::literal;
use super::layout::width;
use super::{Compiler, Result, const_u64};
use crate::error::LoadError;
use crate::externs::hash::Algorithm;
use crate::externs::register::{Bank, Info, WORD_LIMIT};
use crate::externs::{checksum, counter, meter, random};
use crate::op::{HashPlan, Op, RegisterPlan, Slot, T3};
use hashbrown::HashMap;
use p4lang::ir::{Arg, Const, Expr, ExternId, ExternInstance, LValue, Type};

/// Cells of one counter or meter at most.
const CELL_LIMIT: u64 = 1 << 24;

/// What an extern instance became.
#[derive(Debug, Clone, Copy)]
pub enum Object {
    /// Index into the code's registers.
    Register(u32),
    /// Index into the counters.
    Counter(u32),
    /// Of the table that names it.
    DirectCounter,
    /// Index into the meters.
    Meter(u32),
    /// Its algorithm.
    Hash(Algorithm),
    /// Unit and algorithm.
    Checksum(u32, Algorithm),
    /// Unit.
    InternetChecksum(u32),
    /// Index into the generators.
    Random(u32),
    /// Index into the names.
    Digest(u32),
    /// Nothing that a program can call.
    Passive,
}

impl Compiler<'_> {
    /// Lays out all extern instances.
    pub(super) fn declare_objects(&mut self, seed: u64) -> Result<()> {
        let program = self.program;
        self.registers_into_banks()?;
        let mut registers = 0;
        for (i, instance) in program.externs.iter().enumerate() {
            self.span = instance.span;
            let size = || {
                let named = instance
                    .args
                    .iter()
                    .find(|(n, _)| n == "size" || n == "n_counters" || n == "n_meters");
                named
                    .or(instance.args.first())
                    .and_then(|(_, v)| const_u64(v))
            };
            let cells = || match size() {
                Some(n) if n <= CELL_LIMIT => Ok(n as usize),
                _ => Err(LoadError::TooLarge(format!(
                    "{} has more than {CELL_LIMIT} cells",
                    instance.name
                ))),
            };
            let name = instance.name.clone();
            let object = match instance.type_name.as_str() {
                "Register" => {
                    registers += 1;
                    Object::Register(registers - 1)
                }
                "Counter" => {
                    let kind = self.counter_kind(instance)?;
                    let cells = vec![counter::CounterValue::default(); cells()?];
                    self.state
                        .counters
                        .push(counter::Counter { name, kind, cells });
                    Object::Counter(self.state.counters.len() as u32 - 1)
                }
                "DirectCounter" => Object::DirectCounter,
                "Meter" => {
                    let bytes = self.counter_kind(instance)?.bytes;
                    let colours = self.colours();
                    self.state
                        .meters
                        .push(meter::Meter::new(name, bytes, colours, cells()?));
                    Object::Meter(self.state.meters.len() as u32 - 1)
                }
                "Hash" => Object::Hash(self.algorithm(instance)?),
                "Checksum" => Object::Checksum(self.checksum_unit(), self.algorithm(instance)?),
                "InternetChecksum" => Object::InternetChecksum(self.checksum_unit()),
                "Random" => {
                    let mut bounds = instance.args.iter().filter_map(|(_, v)| const_u64(v));
                    let (Some(low), Some(high)) = (bounds.next(), bounds.next()) else {
                        return self.unsupported("a Random beyond 64 bits");
                    };
                    self.state
                        .randoms
                        .push(random::Random::new(seed, i as u64, low, high));
                    Object::Random(self.state.randoms.len() as u32 - 1)
                }
                "Digest" => {
                    self.state.digest_names.push(name);
                    Object::Digest(self.state.digest_names.len() as u32 - 1)
                }
                "PacketReplicationEngine" | "BufferingQueueingEngine" => Object::Passive,
                "ActionProfile" | "ActionSelector" => {
                    return self.unsupported("action profiles and selectors");
                }
                other => return self.unsupported(format!("extern {other}")),
            };
            self.objects.push(object);
        }
        Ok(())
    }

    /// Registers of equal size within one top-level control share a bank: see `externs::register`.
    fn registers_into_banks(&mut self) -> Result<()> {
        let program = self.program;
        let mut banks: Vec<(u64, u32, bool)> = Vec::new();
        let mut index: HashMap<(&str, u64, bool), usize> = HashMap::new();
        for instance in program.externs.iter().filter(|e| e.type_name == "Register") {
            self.span = instance.span;
            let Some(size) = instance
                .args
                .iter()
                .find(|(n, _)| n == "size")
                .or(instance.args.first())
            else {
                return self.unsupported("a register without a size");
            };
            let Some(size) = const_u64(&size.1) else {
                return self.unsupported("a register of this size");
            };
            let Some(ty) = instance.type_args.first() else {
                return self.unsupported("a register without a type");
            };
            let layout = self.layout(ty)?;
            let layout = &self.code.layouts[layout as usize];
            if layout.header || layout.varbit.is_some() {
                return self.unsupported("a register of this type");
            }
            let widths: Vec<u32> = layout.fields.iter().map(|f| f.width).collect();
            if widths.iter().any(|w| *w > 128) {
                return self.unsupported("a register field beyond 128 bits");
            }
            let words = layout.slots;
            let narrow = widths.iter().all(|w| *w <= 32);
            let top = instance.name.split('.').next().unwrap_or("");
            let bank = *index.entry((top, size, narrow)).or_insert_with(|| {
                banks.push((size, 0, narrow));
                banks.len() - 1
            });
            let offset = banks[bank].1;
            banks[bank].1 += words;
            self.code.registers.push(RegisterPlan {
                bank: bank as u32,
                offset,
                words,
            });
            self.registers.push(Info {
                name: instance.name.clone(),
                size,
                bank: bank as u32,
                offset,
                widths,
            });
        }
        let words = |bank: &(u64, u32, bool)| bank.0.saturating_mul(bank.1.into());
        if banks
            .iter()
            .fold(0u64, |sum, b| sum.saturating_add(words(b)))
            > WORD_LIMIT
        {
            return Err(LoadError::TooLarge(format!(
                "registers of more than {WORD_LIMIT} words"
            )));
        }
        self.state.banks = banks
            .iter()
            .map(|(rows, stride, narrow)| Bank::new(*rows, *stride, *narrow))
            .collect();
        // The constructor's second argument is the value that cells start with.
        for (info, instance) in self
            .registers
            .iter()
            .zip(program.externs.iter().filter(|e| e.type_name == "Register"))
        {
            let Some((_, initial)) = instance.args.get(1) else {
                continue;
            };
            let Some(words) = super::expr::const_limbs(initial, info.widths.iter().sum()) else {
                continue;
            };
            if info.widths.len() == 1 && words.iter().any(|w| *w != 0) {
                for row in 0..info.size {
                    self.state.banks[info.bank as usize].write(row, info.offset, &words);
                }
            }
        }
        Ok(())
    }

    fn checksum_unit(&mut self) -> u32 {
        self.state.checksums.push(checksum::Unit::default());
        self.state.checksums.len() as u32 - 1
    }

    fn algorithm(&self, instance: &ExternInstance) -> Result<Algorithm> {
        let algorithm = instance.args.iter().find_map(|(_, value)| match value {
            Const::Enum(id, i) => {
                Algorithm::named(self.program.enums[id.index()].members.get(*i as usize)?)
            }
            _ => None,
        });
        match algorithm {
            Some(algorithm) => Ok(algorithm),
            None => self.unsupported("this hash algorithm"),
        }
    }

    /// The program's values of green, yellow and red.
    fn colours(&self) -> [u64; 3] {
        let members = self
            .program
            .enums
            .iter()
            .find(|e| e.name == "PSA_MeterColor_t")
            .map(|e| &e.members);
        let value = |name: &str| {
            members
                .and_then(|m| m.iter().position(|x| x == name))
                .unwrap_or(0) as u64
        };
        [value("GREEN"), value("YELLOW"), value("RED")]
    }

    pub(super) fn call_method(
        &mut self,
        object: ExternId,
        method: &str,
        args: &[Arg],
        result: Option<&LValue>,
    ) -> Result<()> {
        let instance = &self.program.externs[object.index()];
        match (self.objects[object.index()], method, args) {
            (Object::Register(r), "read", [Arg::In(index)]) => {
                let index = self.index(index)?;
                self.write_result(result, |c, d| c.op(Op::RegisterRead { r, d, index }))
            }
            (Object::Register(r), "write", [Arg::In(index), Arg::In(value)]) => {
                let (index, s) = (self.index(index)?, self.expr(value)?);
                self.op(Op::RegisterWrite { r, index, s })
            }
            (Object::Counter(counter), "count", [Arg::In(index)]) => {
                let index = self.index(index)?;
                self.op(Op::Count { counter, index })
            }
            (Object::DirectCounter, "count", []) => match self.direct.get(&object).copied() {
                Some(table) => self.op(Op::CountDirect { table }),
                None => self.unsupported("a direct counter that no table names"),
            },
            (Object::Meter(meter), "execute", [Arg::In(index), rest @ ..]) => {
                let index = self.index(index)?;
                let colour = match rest {
                    [Arg::In(colour)] => self.expr(colour)?,
                    _ => {
                        let green = self.state.meters[meter as usize].colours[0];
                        self.constant(green)?
                    }
                };
                self.write_result(result, |c, d| {
                    c.op(Op::Meter {
                        meter,
                        index,
                        colour,
                        d,
                    })
                })
            }
            (Object::Hash(algorithm), "get_hash", [Arg::In(data)]) => {
                self.hash(algorithm, data, None, result)
            }
            (Object::Hash(algorithm), "get_hash", [Arg::In(base), Arg::In(data), Arg::In(max)]) => {
                let bounds = (self.index(base)?, self.index(max)?);
                self.hash(algorithm, data, Some(bounds), result)
            }
            (Object::Checksum(unit, _) | Object::InternetChecksum(unit), "clear", []) => {
                self.op(Op::ChecksumClear { unit })
            }
            (Object::InternetChecksum(unit), "add" | "subtract", [Arg::In(data)]) => {
                let (layout, s) = (self.layout(&data.ty)?, self.expr(data)?);
                self.op(Op::ChecksumAdd {
                    unit,
                    layout,
                    s,
                    subtract: method == "subtract",
                })
            }
            (Object::InternetChecksum(unit), "get", []) => {
                self.write_result(result, |c, d| c.op(Op::ChecksumGet { unit, d }))
            }
            (Object::InternetChecksum(unit), "get_state", []) => {
                self.write_result(result, |c, d| c.op(Op::ChecksumState { unit, d }))
            }
            (Object::InternetChecksum(unit), "set_state", [Arg::In(state)]) => {
                let s = self.expr(state)?;
                self.op(Op::ChecksumSetState { unit, s })
            }
            (Object::Checksum(unit, _), "update", [Arg::In(data)]) => {
                let (layout, s) = (self.layout(&data.ty)?, self.expr(data)?);
                if !self.code.layouts[layout as usize].bits.is_multiple_of(8) {
                    return self.unsupported("checksum data that is not a multiple of 8 bits");
                }
                self.op(Op::ChecksumUpdate { unit, layout, s })
            }
            (Object::Checksum(unit, algorithm), "get", []) => {
                let Some(w) = result.map(|r| width(&r.ty)) else {
                    return Ok(());
                };
                let w = self.hash_width(w)?;
                self.write_result(result, |c, d| {
                    c.code.hashes.push(HashPlan {
                        algorithm,
                        layout: 0,
                        data: 0,
                        d,
                        w,
                        bounds: None,
                    });
                    c.op(Op::ChecksumFinish {
                        unit,
                        hash: (c.code.hashes.len() - 1) as u32,
                    })
                })
            }
            (Object::Random(unit), "read", []) => {
                self.write_result(result, |c, d| c.op(Op::Random { unit, d }))
            }
            (Object::Digest(instance), "pack", [Arg::In(data)]) => {
                let (layout, s) = (self.layout(&data.ty)?, self.expr(data)?);
                self.code.digests.push((instance, layout));
                self.op(Op::Digest {
                    digest: (self.code.digests.len() - 1) as u32,
                    s,
                })
            }
            _ => self.unsupported(format!("method {method} of extern {}", instance.type_name)),
        }
    }

    /// PSA's functions on the metadata that decide what a deparser may write.
    pub(super) fn call_extern(
        &mut self,
        name: &str,
        args: &[Arg],
        result: Option<&LValue>,
    ) -> Result<()> {
        let mut flag = |i: usize, field: &str| -> Result<Slot> {
            let Some(Arg::In(e)) = args.get(i) else {
                return self.unsupported(format!("function {name}"));
            };
            let base = self.expr(e)?;
            match self.named_field(&e.ty, field)? {
                Some((offset, _)) => Ok(base + offset),
                None => self.unsupported(format!("function {name} on this type")),
            }
        };
        match name {
            "psa_clone_i2e" | "psa_clone_e2e" => {
                let clone = flag(0, "clone")?;
                self.write_result(result, |c, d| c.op(Op::Mov { d, s: clone }))
            }
            "psa_resubmit" | "psa_normal" => {
                let (drop, resubmit) = (flag(0, "drop")?, flag(0, "resubmit")?);
                self.write_result(result, |c, d| {
                    let keep = c.alloc(1)?;
                    c.op(Op::Not { d: keep, a: drop })?;
                    if name == "psa_resubmit" {
                        c.op(Op::And(T3 {
                            w: 1,
                            d,
                            a: keep,
                            b: resubmit,
                        }))
                    } else {
                        let once = c.alloc(1)?;
                        c.op(Op::Not {
                            d: once,
                            a: resubmit,
                        })?;
                        c.op(Op::And(T3 {
                            w: 1,
                            d,
                            a: keep,
                            b: once,
                        }))
                    }
                })
            }
            "psa_recirculate" => {
                let (drop, port) = (flag(0, "drop")?, flag(1, "egress_port")?);
                self.write_result(result, |c, d| {
                    let recirculate = c.constant(crate::arch::psa::RECIRCULATE_PORT.into())?;
                    let keep = c.alloc(1)?;
                    c.op(Op::Not { d: keep, a: drop })?;
                    c.op(Op::Eq(T3 {
                        w: 32,
                        d,
                        a: port,
                        b: recirculate,
                    }))?;
                    c.op(Op::And(T3 {
                        w: 1,
                        d,
                        a: d,
                        b: keep,
                    }))
                })
            }
            "assert" | "assume" => match args {
                [Arg::In(e)] => {
                    let c = self.expr(e)?;
                    self.op(Op::Assert { c })
                }
                _ => self.unsupported(format!("function {name}")),
            },
            _ => self.unsupported(format!("function {name}")),
        }
    }

    fn hash(
        &mut self,
        algorithm: Algorithm,
        data: &Expr,
        bounds: Option<(Slot, Slot)>,
        result: Option<&LValue>,
    ) -> Result<()> {
        let Some(w) = result.map(|r| width(&r.ty)) else {
            return Ok(());
        };
        let w = self.hash_width(w)?;
        let (layout, s) = (self.layout(&data.ty)?, self.expr(data)?);
        self.write_result(result, |c, d| {
            c.code.hashes.push(HashPlan {
                algorithm,
                layout,
                data: s,
                d,
                w,
                bounds,
            });
            c.op(Op::Hash((c.code.hashes.len() - 1) as u32))
        })
    }

    fn hash_width(&self, w: u32) -> Result<u8> {
        if w > 64 {
            self.unsupported("a hash beyond 64 bits")
        } else {
            Ok(w as u8)
        }
    }

    fn index(&mut self, e: &Expr) -> Result<Slot> {
        if let Some(value) = literal(e) {
            return self.constant(value);
        }
        let slot = self.expr(e)?;
        if width(&e.ty) > 64 {
            self.saturate(slot, width(&e.ty))
        } else {
            Ok(slot)
        }
    }

    /// Lets `write` put the result where it belongs, or nowhere.
    fn write_result(
        &mut self,
        result: Option<&LValue>,
        write: impl FnOnce(&mut Self, Slot) -> Result<()>,
    ) -> Result<()> {
        let Some(lvalue) = result else {
            // Whatever the result is, it fits there.
            let d = self.alloc(64)?;
            return write(self, d);
        };
        let place = self.locate(lvalue)?;
        if place.is_plain() && !matches!(lvalue.ty, Type::Void) {
            return write(self, place.slot);
        }
        let n = self.size(&lvalue.ty)?;
        let d = self.alloc(n)?;
        write(self, d)?;
        self.store(&place, d)
    }
}
