//! Converts block parameters between the interpreter's values and the 64-bit slots of the machine's frame.
//!
//! A scalar takes one slot per 64 bits, low limb first; a varbit its length in bits, then its limbs; a header its
//! validity, then its fields; a stack its `nextIndex`, then its elements; a field with its own validity is followed by
//! it. Fields of invalid headers (unless they can be written) and invalid fields are 0 in the frame.

use super::bits::Bits;
use super::poison::Fill;
use super::value::{Value, width};
use crate::bits::limbs;
use crate::op::Slot;
use crate::rules::Rules;
use num_bigint::BigUint;
use p4lang::ast::StructKind;
use p4lang::ir::{Program, Type};
use std::collections::BTreeMap;

/// Records which bits of the frame are undefined. A record counts while its slot still holds the word that was written then.
#[derive(Debug, Default)]
pub struct Shadow {
    slots: Marks,
    /// Undefined bits of a deparser's output, kept for the next parser until a deparser has another output.
    left: Marks,
}

/// For each slot number: the word in the slot, and the mask of its undefined bits.
type Marks = BTreeMap<usize, (u64, u64)>;

impl Shadow {
    /// Starts a pass. Forgets the undefined bits of earlier passes, because the architecture has rewritten the frame. Bits that
    /// the previous deparser left undefined in slots `carried` (from, to, count) are undefined at their new position.
    pub fn begin(&mut self, carried: &[(Slot, Slot, u32)]) {
        self.slots.clear();
        for (from, to, size) in carried {
            let (from, to) = (*from as usize, *to as usize);
            for (slot, (word, mask)) in self.left.range(from..from + *size as usize) {
                // Slots that were not carried contain zeroes.
                if *word != 0 {
                    self.slots.insert(slot - from + to, (*word, *mask));
                }
            }
        }
    }

    pub fn read(
        &self,
        program: &Program,
        frame: &[u64],
        slot: Slot,
        ty: &Type,
        fill: &mut Fill,
    ) -> Value {
        let mut reader = Reader {
            program,
            shadow: self,
            words: frame,
            at: slot as usize,
            fill,
        };
        reader.value(ty)
    }

    /// Mask of the undefined bits of a slot.
    pub fn undefined(&self, frame: &[u64], slot: Slot) -> u64 {
        let written = self.slots.get(&(slot as usize));
        let written = written.filter(|(word, _)| frame.get(slot as usize) == Some(word));
        written.map_or(0, |(_, mask)| *mask)
    }

    /// Writes a value to the frame, with the fields of invalid headers if `keeps_fields`. `leaves`: records its undefined bits
    /// as a deparser's output.
    pub fn write(
        &mut self,
        frame: &mut [u64],
        slot: Slot,
        value: &Value,
        (keeps_fields, leaves): (bool, bool),
    ) {
        let marks = if leaves {
            &mut self.left
        } else {
            &mut self.slots
        };
        let (mut words, mut undefined) = (Vec::new(), Vec::new());
        slots(value, keeps_fields, &mut words, &mut undefined);
        for (i, (word, undefined)) in words.into_iter().zip(undefined).enumerate() {
            let at = slot as usize + i;
            frame[at] = word;
            match undefined {
                0 => marks.remove(&at),
                mask => marks.insert(at, (word, mask)),
            };
        }
    }
}

/// Converts a value to 64-bit words, for registers, keys and action parameters.
pub fn to_words(value: &Value) -> Vec<u64> {
    let mut words = Vec::new();
    slots(value, false, &mut words, &mut Vec::new());
    words
}

/// Converts words from index `at` on to a value; missing words are 0. Also returns the index after the last word read.
pub fn from_words(program: &Program, ty: &Type, words: &[u64], at: usize) -> (Value, usize) {
    let shadow = Shadow::default();
    let mut reader = Reader {
        program,
        shadow: &shadow,
        words,
        at,
        fill: &mut Fill::default(),
    };
    let value = reader.value(ty);
    (value, reader.at)
}

struct Reader<'a> {
    program: &'a Program,
    shadow: &'a Shadow,
    words: &'a [u64],
    at: usize,
    fill: &'a mut Fill,
}

impl Reader<'_> {
    /// Reads the next slot: its word, and the mask of its undefined bits.
    fn word(&mut self) -> (u64, u64) {
        let word = self.words.get(self.at).copied().unwrap_or(0);
        let undefined = self.shadow.undefined(self.words, self.at as Slot);
        self.at += 1;
        (word, undefined)
    }

    fn bits(&mut self, width: u32, words: u32) -> Bits {
        if words == 1 {
            let (value, undefined) = self.word();
            return Bits {
                undefined: undefined.into(),
                ..Bits::new(width, value)
            };
        }
        let (mut value, mut undefined) = (BigUint::ZERO, BigUint::ZERO);
        for i in 0..words {
            let (word, mask) = self.word();
            value |= BigUint::from(word) << (64 * i);
            undefined |= BigUint::from(mask) << (64 * i);
        }
        Bits {
            undefined,
            ..Bits::new(width, value)
        }
    }

    /// Reads the validity that follows a metadata field, and returns the field with it.
    fn own(&mut self, bits: Bits) -> Value {
        match self.word().0 {
            0 => Value::Own(false, self.fill.bits(bits.width)),
            _ => Value::Own(true, bits),
        }
    }

    fn value(&mut self, ty: &Type) -> Value {
        match ty {
            Type::Bool | Type::Bit(_) | Type::Int(_) | Type::Error | Type::Enum(_) => {
                Value::Bits(self.bits(width(ty), limbs(width(ty))))
            }
            Type::Varbit(most) => {
                let length = self.word().0 as u32;
                let bits = self.bits(*most, most.div_ceil(64));
                Value::Varbit(*most, super::arith::cast(&bits, length, false))
            }
            Type::Struct(id) => {
                let program = self.program;
                let declared = &program.types[id.index()];
                let header = declared.kind == StructKind::Header;
                let valid = header && self.word().0 != 0;
                let mut fields = Vec::with_capacity(declared.fields.len());
                for field in &declared.fields {
                    let value = self.value(&field.ty);
                    fields.push(
                        if Rules::for_program(program).own_validity(declared, field) {
                            self.own(value.bits())
                        } else {
                            value
                        },
                    );
                }
                match declared.kind {
                    StructKind::Struct => Value::Struct(fields),
                    StructKind::Union => Value::Union(fields),
                    // The frame does not hold the fields of an invalid header.
                    StructKind::Header if !valid && !self.fill.invalid.are_written() => {
                        Value::undefined(program, ty, self.fill)
                    }
                    StructKind::Header => Value::Header { valid, fields },
                }
            }
            Type::Stack(id, n) => {
                let next = self.word().0 as u32;
                let elements = (0..*n).map(|_| self.value(&Type::Struct(*id)));
                Value::Stack {
                    elements: elements.collect(),
                    next,
                }
            }
            Type::Tuple(types) => Value::Struct(types.iter().map(|t| self.value(t)).collect()),
            Type::Void | Type::String | Type::Extern(_) => Value::Nothing,
        }
    }
}

/// Appends the 64-bit words of a value, and for each word the mask of its undefined bits.
fn slots(value: &Value, keeps_fields: bool, words: &mut Vec<u64>, undefined: &mut Vec<u64>) {
    let mut push = |bits: &Bits, n: u32| {
        for (to, from) in [
            (&mut *words, &bits.value),
            (&mut *undefined, &bits.undefined),
        ] {
            let digits = from.iter_u64_digits().chain(std::iter::repeat(0));
            to.extend(digits.take(n as usize));
        }
    };
    match value {
        Value::Bits(bits) => push(bits, limbs(bits.width)),
        Value::Own(valid, bits) => {
            let bits = if *valid {
                bits
            } else {
                &Bits::new(bits.width, 0u8)
            };
            push(bits, limbs(bits.width));
            push(&Bits::bool(*valid), 1);
        }
        Value::Varbit(most, bits) => {
            push(&Bits::new(64, bits.width), 1);
            push(bits, most.div_ceil(64));
        }
        Value::Header { valid, fields } => {
            push(&Bits::bool(*valid), 1);
            let start = words.len();
            for field in fields {
                slots(field, keeps_fields, words, undefined);
            }
            if !*valid && !keeps_fields {
                words[start..].fill(0);
                undefined[start..].fill(0);
            }
        }
        Value::Struct(fields) | Value::Union(fields) => {
            for field in fields {
                slots(field, keeps_fields, words, undefined);
            }
        }
        Value::Stack { next, elements } => {
            push(&Bits::new(64, *next), 1);
            for element in elements {
                slots(element, keeps_fields, words, undefined);
            }
        }
        Value::Nothing => {}
    }
}
