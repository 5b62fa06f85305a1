//! Compiles TNA's extern objects: creates their state, and records where it is.

use super::parser_counter;
use crate::compile::layout::width;
use crate::compile::objects::initial_words;
use crate::compile::{Compiler, Result, const_u64};
use crate::externs::filter::{self, Filter, FilterKind};
use crate::externs::hash::{Algorithm, Crc};
use crate::externs::math::MathUnit;
use crate::externs::random;
use crate::op::bindings::{Object, TofinoObject};
use crate::table::profile;
use p4lang::ir::{Const, ExternId, ExternInstance, ExternKind, Type};

/// The numbers of green, yellow and red in `MeterColor_t`.
pub const COLOURS: [u64; 3] = [0, 1, 3];

/// The numbers that a meter's constructor gives for green, yellow and red; `None`: the number in `MeterColor_t`.
pub fn own_colours(meter: &ExternInstance) -> [Option<u64>; 3] {
    ["green", "yellow", "red"].map(|name| {
        let found = meter.args.iter().find(|(n, _)| n == name);
        found.and_then(|(_, v)| const_u64(v))
    })
}

impl Compiler<'_> {
    pub(super) fn tofino_object(
        &mut self,
        id: ExternId,
        instance: &ExternInstance,
        registers: &mut u32,
    ) -> Result<Object> {
        let mut register = || {
            *registers += 1;
            *registers - 1
        };
        Ok(match &instance.kind {
            ExternKind::Register => Object::Register(register()),
            ExternKind::RegisterParam => Object::Tofino(TofinoObject::RegisterParam(register())),
            ExternKind::Counter => self.new_counter(instance, size(instance))?,
            ExternKind::DirectCounter => Object::DirectCounter,
            ExternKind::Meter => self.new_meter(instance, size(instance))?,
            ExternKind::DirectMeter => Object::DirectMeter,
            ExternKind::Lpf | ExternKind::DirectLpf | ExternKind::Wred | ExternKind::DirectWred => {
                Object::Tofino(self.new_filter(id, instance)?)
            }
            ExternKind::Hash => Object::Hash(self.tofino_algorithm(instance)?),
            ExternKind::CrcPolynomial
            | ExternKind::ParserPriority
            | ExternKind::Atcam
            | ExternKind::Alpm
            | ExternKind::IdleTimeout => Object::Passive,
            ExternKind::Checksum => Object::Tofino(TofinoObject::Checksum(self.checksum_unit())),
            ExternKind::ParserCounter => {
                let slots = parser_counter::SLOTS;
                let slot = self.alloc(slots)?;
                self.tofino.cleared.extend(slot..slot + slots);
                Object::Tofino(TofinoObject::ParserCounter(slot))
            }
            ExternKind::Random => {
                let width = match instance.type_args.first() {
                    Some(Type::Bit(w) | Type::Int(w)) if *w <= 64 => *w,
                    _ => return self.unsupported("a Random of this type"),
                };
                let high = crate::bits::mask(width);
                self.new_random(id, 0, high)
            }
            ExternKind::Digest => self.new_digest(instance),
            ExternKind::Mirror => Object::Tofino(TofinoObject::Mirror),
            ExternKind::Resubmit => Object::Tofino(TofinoObject::Resubmit),
            ExternKind::Pktgen => Object::Tofino(TofinoObject::Pktgen),
            ExternKind::MathUnit => {
                let unit = self.math_unit(instance)?;
                self.code.maths.push(unit);
                Object::Tofino(TofinoObject::MathUnit(self.code.maths.len() as u32 - 1))
            }
            ExternKind::ActionProfile => {
                let size = instance.args.first().and_then(|(_, v)| const_u64(v));
                let size = self.members(size)?;
                self.new_profile(id, size, None);
                Object::Passive
            }
            ExternKind::ActionSelector => {
                self.tofino_selector(id, instance)?;
                Object::Passive
            }
            ExternKind::DirectRegister => Object::Tofino(TofinoObject::DirectRegister),
            ExternKind::RegisterAction
            | ExternKind::DirectRegisterAction
            | ExternKind::MinMaxAction
            | ExternKind::SelectorAction => Object::Tofino(TofinoObject::RegisterAction),
            _ => return self.unsupported(format!("extern {}", instance.type_name)),
        })
    }

    fn new_filter(&mut self, id: ExternId, instance: &ExternInstance) -> Result<TofinoObject> {
        let name = instance.name.clone();
        let direct = instance.kind.is_direct();
        let n = if direct { Some(0) } else { size(instance) };
        let n = self.cells(&name, n, Filter::CELL_BYTES)?;
        let argument = |name: &str| {
            let found = instance.args.iter().find(|(n, _)| n == name);
            found.and_then(|(_, v)| const_u64(v)).unwrap_or(0)
        };
        let kind = if matches!(instance.kind, ExternKind::Lpf | ExternKind::DirectLpf) {
            FilterKind::LowPass
        } else {
            FilterKind::EarlyDetection {
                drop: argument("drop_value"),
                keep: argument("no_drop_value"),
            }
        };
        let random = random::Random::new(self.wanted.seed, id.0.into(), 0, 0);
        let filters = &mut self.state.cells.filters;
        filters.push(Filter::new(name, kind, n, random));
        let filter = filters.len() as u32 - 1;
        Ok(if direct {
            TofinoObject::DirectFilter(filter)
        } else {
            TofinoObject::Filter(filter)
        })
    }

    /// Reads a math unit's arguments: `(op, factor)`, `(op, A, B)` or `(invert, shift, scale, data)`, with `data` in reverse
    /// order.
    fn math_unit(&self, instance: &ExternInstance) -> Result<MathUnit> {
        let values: Vec<&Const> = instance.args.iter().map(|(_, v)| v).collect();
        let unit = match values.as_slice() {
            [Const::Enum(id, op), factors @ ..] => {
                let op = self.program.enums[id.index()].members.get(*op as usize);
                let (invert, shift) = match op.map_or("", String::as_str) {
                    "MUL" => (false, 0),
                    "SQR" => (false, 1),
                    "SQRT" => (false, -1),
                    "DIV" => (true, 0),
                    "RSQR" => (true, 1),
                    "RSQRT" => (true, -1),
                    _ => return self.unsupported("this function of a math unit"),
                };
                let factors: Option<Vec<u64>> = factors.iter().map(|f| const_u64(f)).collect();
                match factors.as_deref() {
                    Some([factor]) => Some(MathUnit::new(invert, shift, *factor, 1)),
                    Some([_, 0]) => None,
                    Some([a, b]) => Some(MathUnit::new(invert, shift, *a, *b)),
                    _ => None,
                }
            }
            [Const::Bool(invert), shift, scale, Const::Tuple(data)] => {
                let mut bytes = [0; 16];
                for (to, from) in bytes.iter_mut().rev().zip(data) {
                    *to = const_u64(from).unwrap_or(0) as u8;
                }
                match (signed(shift), signed(scale)) {
                    (Some(shift @ -1..=1), Some(scale @ -32..=31)) => Some(MathUnit {
                        invert: *invert,
                        shift,
                        scale,
                        data: bytes,
                    }),
                    _ => None,
                }
            }
            _ => None,
        };
        match unit {
            Some(unit) => Ok(unit),
            None => self.unsupported("a math unit of these arguments"),
        }
    }

    /// Compiles a selector together with its profile, whose members form the selector's groups.
    fn tofino_selector(&mut self, id: ExternId, instance: &ExternInstance) -> Result<()> {
        let mut objects = instance.args.iter().filter_map(|(_, v)| match v {
            Const::Extern(object) => Some(*object),
            _ => None,
        });
        let hash = objects
            .clone()
            .find_map(|o| match self.bindings.objects.get(o.index()) {
                Some(Object::Hash(algorithm)) => {
                    let ty = self.program.externs[o.index()].type_args.first();
                    Some((*algorithm, ty.map_or(32, width)))
                }
                _ => None,
            });
        let Some((algorithm, width)) = hash else {
            return self.unsupported("a selector without a hash");
        };
        let number = |name: &str| {
            let found = instance.args.iter().find(|(n, _)| n == name);
            found.and_then(|(_, v)| const_u64(v))
        };
        let selector = profile::Selector {
            algorithm,
            width: width.min(64),
            max_group_size: number("max_group_size").unwrap_or(0) as u32,
        };
        let of = objects.find_map(|o| self.bindings.profiles.get(&o).copied());
        match of {
            Some(profile) => {
                self.bindings.profiles.insert(id, profile);
                let profile = &mut self.state.profiles[profile as usize];
                profile.spec.selector = true;
                profile.selector = Some(selector);
                profile.alias = Some(instance.name.clone());
            }
            None => {
                let size = self.members(Some(number("size").unwrap_or(0)))?;
                self.new_profile(id, size, Some(selector));
            }
        }
        Ok(())
    }

    fn tofino_algorithm(&self, instance: &ExternInstance) -> Result<Algorithm> {
        let polynomial = instance.args.iter().find_map(|(_, v)| match v {
            Const::Extern(id) => Some(&self.program.externs[id.index()]),
            _ => None,
        });
        if let Some(polynomial) = polynomial {
            return self.polynomial(polynomial);
        }
        let algorithm = instance.args.iter().find_map(|(_, v)| match v {
            Const::Enum(id, i) => {
                let members = &self.program.enums[id.index()].members;
                Algorithm::from_tofino(members.get(*i as usize)?)
            }
            _ => None,
        });
        match algorithm {
            // A wider table only if needed: tables of the usual widths are faster.
            Some(algorithm) => Ok(
                match (algorithm.table_width(), instance.type_args.first()) {
                    (Some(width), Some(Type::Bit(wanted))) if *wanted > width => {
                        algorithm.extended()
                    }
                    _ => algorithm,
                },
            ),
            None => self.unsupported("this hash algorithm"),
        }
    }

    fn polynomial(&self, instance: &ExternInstance) -> Result<Algorithm> {
        let width = match instance.type_args.first() {
            Some(Type::Bit(w)) if *w <= 64 => *w as u8,
            _ => return self.unsupported("a polynomial of more than 64 bits"),
        };
        let number = |name: &str| {
            let found = instance.args.iter().find(|(n, _)| n == name);
            found.and_then(|(_, v)| const_u64(v)).unwrap_or(0)
        };
        Ok(Algorithm::Crc(Crc {
            width,
            polynomial: number("coeff"),
            init: number("init"),
            xor: number("xor"),
            reflected: number("reversed") != 0,
            top: number("msb") != 0,
            extended: number("extended") != 0,
        }))
    }

    /// Reserves words in the data of each entry of a table, for the cell of a direct register or direct filter.
    pub(crate) fn direct_cell(&mut self, id: ExternId, table: u32) -> Result<()> {
        if let Object::Tofino(TofinoObject::DirectFilter(filter)) =
            self.bindings.objects[id.index()]
        {
            let cells = &mut self.state.tables[table as usize].cells;
            let offset = cells.initial.len() as u32;
            cells.initial.extend([0; filter::CELL_WORDS]);
            let direct = filter::DirectCells { table, offset };
            if self.state.cells.filters[filter as usize]
                .direct
                .replace(direct)
                .is_some()
            {
                return self.unsupported("a direct filter that two tables use");
            }
            return Ok(());
        }
        let program = self.program;
        let instance = &program.externs[id.index()];
        if instance.kind != ExternKind::DirectRegister {
            return Ok(());
        }
        let Some(ty) = instance.type_args.first() else {
            return self.unsupported("a direct register without a type");
        };
        let layout = self.layout(ty)?;
        let layout = &self.code.layouts[layout as usize];
        let widths: Vec<u32> = layout.fields.iter().map(|f| f.width).collect();
        let words = layout.slots;
        let initial = instance.args.first();
        let initial = initial
            .and_then(|(_, v)| initial_words(v, &widths))
            .unwrap_or_else(|| vec![0; words as usize]);
        let cells = &mut self.state.tables[table as usize].cells;
        let offset = cells.initial.len() as u32;
        cells.initial.extend(initial);
        let place = (table, offset, words);
        self.bindings.direct_registers.insert(id, place);
        Ok(())
    }
}

/// A constant as a signed 8-bit number; `None` if it does not fit.
fn signed(value: &Const) -> Option<i8> {
    match value {
        Const::Integer(n) => i8::try_from(n).ok(),
        Const::Bits { value, ty } => {
            let width = width(ty).min(8);
            let bits = i16::try_from(value).ok()?;
            let negative = matches!(ty, Type::Int(_)) && bits >> (width - 1) & 1 != 0;
            i8::try_from(if negative { bits - (1 << width) } else { bits }).ok()
        }
        _ => None,
    }
}

fn size(instance: &ExternInstance) -> Option<u64> {
    let size = instance.args.iter().find(|(n, _)| n == "size");
    size.and_then(|(_, v)| const_u64(v))
}
