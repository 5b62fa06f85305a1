//! Compiles extern objects of PSA and v1model: their state, and its initial contents.

use super::{Compiler, Result, const_u64};
use crate::bits::limbs;
use crate::externs::hash::Algorithm;
use crate::externs::register::{Bank, Info};
use crate::externs::{checksum, counter, meter, random};
use crate::limits::LIMITS;
use crate::op::bindings::Object;
use crate::op::bindings::RegisterPlan;
use crate::table::profile;
use hashbrown::HashMap;
use p4lang::ir::{Const, ExternId, ExternInstance, ExternKind};

impl Compiler<'_> {
    /// Compiles all extern instances of the program, and places registers in banks.
    pub(crate) fn declare_objects(&mut self) -> Result<()> {
        let program = self.program;
        self.registers_into_banks()?;
        let mut registers = 0;
        for (i, instance) in program.externs.iter().enumerate() {
            self.span = instance.span;
            let dialect = self.dialect;
            let object = dialect.object(self, ExternId(i as u32), &mut registers)?;
            self.bindings.objects.push(object);
        }
        Ok(())
    }

    /// Compiles an extern instance of PSA or v1model; counts up `registers` if it is a register.
    pub(crate) fn plain_object(&mut self, id: ExternId, registers: &mut u32) -> Result<Object> {
        let program = self.program;
        let instance = &program.externs[id.index()];
        let size = || {
            let named = instance
                .args
                .iter()
                .find(|(n, _)| n == "size" || n == "n_counters" || n == "n_meters");
            named
                .or(instance.args.first())
                .and_then(|(_, v)| const_u64(v))
        };
        Ok(match &instance.kind {
            ExternKind::Register => {
                *registers += 1;
                Object::Register(*registers - 1)
            }
            ExternKind::Counter => self.new_counter(instance, size())?,
            ExternKind::DirectCounter if self.rules.counts_hits => Object::AutomaticCounter,
            ExternKind::DirectCounter => Object::DirectCounter,
            ExternKind::DirectMeter if self.rules.counts_hits => Object::AutomaticMeter,
            ExternKind::DirectMeter => Object::DirectMeter,
            ExternKind::Meter => self.new_meter(instance, size())?,
            ExternKind::Hash => Object::Hash(self.algorithm(instance)?),
            ExternKind::Checksum16 => Object::Hash(Algorithm::OnesComplement16),
            ExternKind::Checksum => {
                Object::Checksum(self.checksum_unit(), self.algorithm(instance)?)
            }
            ExternKind::InternetChecksum => Object::InternetChecksum(self.checksum_unit()),
            ExternKind::Random => {
                let mut bounds = instance.args.iter().filter_map(|(_, v)| const_u64(v));
                let (Some(low), Some(high)) = (bounds.next(), bounds.next()) else {
                    return self.unsupported("a Random of more than 64 bits");
                };
                self.new_random(id, low, high)
            }
            ExternKind::Digest => self.new_digest(instance),
            ExternKind::PacketReplicationEngine | ExternKind::BufferingQueueingEngine => {
                Object::Passive
            }
            ExternKind::ActionProfile | ExternKind::ActionSelector => {
                let size = self.members(size_of_profile(instance))?;
                let selector = self.selector(instance)?;
                self.new_profile(id, size, selector);
                Object::Passive
            }
            _ => return self.unsupported(format!("extern {}", instance.type_name)),
        })
    }

    pub(crate) fn new_counter(
        &mut self,
        instance: &ExternInstance,
        size: Option<u64>,
    ) -> Result<Object> {
        let name = instance.name.clone();
        let kind = self.counter_kind(instance)?;
        let n = self.cells(&name, size, size_of::<counter::CounterValue>())?;
        let cells = vec![counter::CounterValue::default(); n];
        let counters = &mut self.state.cells.counters;
        counters.push(counter::Counter { name, kind, cells });
        Ok(Object::Counter(counters.len() as u32 - 1))
    }

    pub(crate) fn new_meter(
        &mut self,
        instance: &ExternInstance,
        size: Option<u64>,
    ) -> Result<Object> {
        let name = instance.name.clone();
        let bytes = self.counter_kind(instance)?.bytes;
        let colours = self.colours();
        let n = self.cells(&name, size, size_of::<meter::MeterCell>())?;
        let meters = &mut self.state.cells.meters;
        meters.push(meter::Meter::new(name, bytes, colours, n));
        Ok(Object::Meter(meters.len() as u32 - 1))
    }

    pub(crate) fn new_random(&mut self, id: ExternId, low: u64, high: u64) -> Object {
        let random = random::Random::new(self.wanted.seed, id.0.into(), low, high);
        self.state.randoms.push(random);
        Object::Random(self.state.randoms.len() as u32 - 1)
    }

    pub(crate) fn new_digest(&mut self, instance: &ExternInstance) -> Object {
        let names = &mut self.state.digests.names;
        names.push(instance.name.clone());
        Object::Digest(names.len() as u32 - 1)
    }

    /// Adds an action profile or selector to the program's state.
    pub(crate) fn new_profile(
        &mut self,
        id: ExternId,
        size: u64,
        selector: Option<profile::Selector>,
    ) {
        let name = self.program.externs[id.index()].name.clone();
        let profiles = &mut self.state.profiles;
        self.bindings.profiles.insert(id, profiles.len() as u32);
        profiles.push(profile::Profile::new(name, size, selector));
    }

    /// Places registers in banks: registers of equal size within one top-level control share a bank, see `externs::register`.
    fn registers_into_banks(&mut self) -> Result<()> {
        let program = self.program;
        let mut banks: Vec<(u64, u32, bool)> = Vec::new();
        let mut index: HashMap<(&str, u64, bool), usize> = HashMap::new();
        for instance in program.externs.iter().filter(|e| is_register(e)) {
            self.span = instance.span;
            let size = match &instance.kind {
                ExternKind::RegisterParam => Some(1),
                _ => {
                    let named = instance.args.iter().find(|(n, _)| n == "size");
                    let size = named.or(instance.args.first());
                    size.and_then(|(_, size)| const_u64(size))
                }
            };
            let Some(ty) = instance.type_args.first() else {
                return self.unsupported("a register without a type");
            };
            let layout = self.values(ty)?;
            let widths: Vec<u32> = layout.fields.iter().map(|f| f.width).collect();
            // A cell contains only scalars: no varbit length, no stack's `nextIndex`.
            let scalars: u32 = widths.iter().map(|w| limbs(*w)).sum();
            if layout.varbit.is_some() || scalars != layout.slots {
                return self.unsupported("a register of this type");
            }
            let words = layout.slots;
            let narrow = widths.iter().all(|w| *w <= 32);
            let bytes = words as usize * if narrow { 4 } else { 8 };
            let size = self.cells(&instance.name, size, bytes)? as u64;
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
        self.state.cells.banks = banks
            .iter()
            .map(|(rows, stride, narrow)| Bank::new(*rows, *stride, *narrow))
            .collect();
        // The initial value of the cells: the second argument, or the only one of a register parameter.
        for (info, instance) in self
            .registers
            .iter()
            .zip(program.externs.iter().filter(|e| is_register(e)))
        {
            let at = usize::from(instance.kind != ExternKind::RegisterParam);
            let Some((_, initial)) = instance.args.get(at) else {
                continue;
            };
            let Some(words) = initial_words(initial, &info.widths) else {
                continue;
            };
            if words.iter().any(|w| *w != 0) {
                for row in 0..info.size {
                    self.state.cells.banks[info.bank as usize].write(row, info.offset, &words);
                }
            }
        }
        Ok(())
    }

    /// Counts an object's cells, of `bytes` bytes each, toward the limit; returns their number. `None` exceeds any limit.
    pub(crate) fn cells(&mut self, name: &str, cells: Option<u64>, bytes: usize) -> Result<usize> {
        let copies = self.rules.cell_copies;
        let more = cells
            .unwrap_or(u64::MAX)
            .saturating_mul(bytes as u64 * copies);
        self.taken.cells_bytes = self.taken.cells_bytes.saturating_add(more);
        if self.taken.cells_bytes > LIMITS.cells_bytes {
            let of = if copies > 1 { " (in all pipes)" } else { "" };
            return self.too_large(format!(
                "up to {name}, registers, counters and meters have more than {} bytes{of}",
                LIMITS.cells_bytes
            ));
        }
        Ok(cells.unwrap_or(0) as usize)
    }

    /// Checks the size of an action profile or selector: the number of its members.
    pub(crate) fn members(&self, size: Option<u64>) -> Result<u64> {
        match size {
            Some(size) if size <= LIMITS.members => Ok(size),
            _ => self.too_large(format!("a profile of more than {} members", LIMITS.members)),
        }
    }

    /// Reads the constructor's arguments of a selector: `(algorithm, size, output width)`; `None` for other objects.
    fn selector(&self, instance: &ExternInstance) -> Result<Option<profile::Selector>> {
        if instance.kind != ExternKind::ActionSelector {
            return Ok(None);
        }
        let width = instance.args.last().and_then(|(_, v)| const_u64(v));
        match width.and_then(|w| u32::try_from(w).ok()) {
            Some(width) => Ok(Some(profile::Selector {
                algorithm: self.algorithm(instance)?,
                width: width.min(64),
                max_group_size: 0,
            })),
            None => self.unsupported("a selector of this width"),
        }
    }

    pub(crate) fn checksum_unit(&mut self) -> u32 {
        self.state.checksums.push(checksum::ChecksumUnit::default());
        self.state.checksums.len() as u32 - 1
    }

    fn algorithm(&self, instance: &ExternInstance) -> Result<Algorithm> {
        let algorithm = instance.args.iter().find_map(|(_, value)| match value {
            Const::Enum(id, i) => {
                let name = self.program.enums[id.index()].members.get(*i as usize)?;
                (self.rules.algorithm)(name)
            }
            _ => None,
        });
        match algorithm {
            Some(algorithm) => Ok(algorithm),
            None => self.unsupported("this hash algorithm"),
        }
    }

    /// The architecture's numbers of the colors green, yellow and red.
    pub(crate) fn colours(&self) -> [u64; 3] {
        let members = self
            .program
            .enums
            .iter()
            .find(|e| e.name == "PSA_MeterColor_t")
            .map(|e| &e.members);
        if members.is_none() {
            return self.rules.colours;
        }
        let value = |name: &str| {
            members
                .and_then(|m| m.iter().position(|x| x == name))
                .unwrap_or(0) as u64
        };
        [value("GREEN"), value("YELLOW"), value("RED")]
    }
}

/// The initial words of a register cell that is a scalar or a flat struct; `None` if the constant does not fit.
pub(crate) fn initial_words(initial: &Const, widths: &[u32]) -> Option<Vec<u64>> {
    match (initial, widths) {
        (Const::Tuple(fields), _) if fields.len() == widths.len() => {
            let words = fields.iter().zip(widths);
            let words: Option<Vec<_>> = words
                .map(|(f, w)| super::expr::const_limbs(f, *w))
                .collect();
            Some(words?.concat())
        }
        (scalar, [width]) => super::expr::const_limbs(scalar, *width),
        _ => None,
    }
}

fn is_register(instance: &ExternInstance) -> bool {
    matches!(
        instance.kind,
        ExternKind::Register | ExternKind::RegisterParam
    )
}

/// The size of an action profile or selector: the first number among its constructor's arguments.
fn size_of_profile(instance: &ExternInstance) -> Option<u64> {
    let numbers = instance.args.iter();
    numbers
        .filter(|(_, v)| !matches!(v, Const::Enum(..)))
        .find_map(|(_, v)| const_u64(v))
}
