//! Values of the element types that ranks sum.

use half::{bf16, f16};

/// Values to be summed, and later their sums, by element type.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Binary32, with one exponent per chunk.
    Floats(Vec<f32>),
    /// Binary16, scaled like binary32.
    Float16s(Vec<f16>),
    /// Bfloat16, the high half of binary32, scaled like binary32.
    Bfloat16s(Vec<bf16>),
    /// 32-bit integers, summed modulo 2³².
    Integers(Vec<i32>),
    /// 8-bit integers, summed in 32 bits and then taken modulo 2⁸, as torch does.
    Int8s(Vec<i8>),
}

/// Runs the expression `$do` on the vector in a [`Values`], whatever its element type.
macro_rules! each {
    ($values:expr, $own:ident => $do:expr) => {
        match $values {
            Values::Floats($own) => $do,
            Values::Float16s($own) => $do,
            Values::Bfloat16s($own) => $do,
            Values::Integers($own) => $do,
            Values::Int8s($own) => $do,
        }
    };
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        each!(self, values => values.len())
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the values of `others`, integers modulo their range. Returns `false`, and adds nothing, if types or lengths differ.
    pub fn add(&mut self, others: &Self) -> bool {
        if self.len() != others.len() {
            return false;
        }
        match (self, others) {
            (Values::Floats(own), Values::Floats(others)) => {
                own.iter_mut()
                    .zip(others)
                    .for_each(|(own, other)| *own += other);
            }
            (Values::Float16s(own), Values::Float16s(others)) => {
                own.iter_mut()
                    .zip(others)
                    .for_each(|(own, other)| *own += *other);
            }
            (Values::Bfloat16s(own), Values::Bfloat16s(others)) => {
                own.iter_mut()
                    .zip(others)
                    .for_each(|(own, other)| *own += *other);
            }
            (Values::Integers(own), Values::Integers(others)) => {
                let pairs = own.iter_mut().zip(others);
                pairs.for_each(|(own, other)| *own = own.wrapping_add(*other));
            }
            (Values::Int8s(own), Values::Int8s(others)) => {
                let pairs = own.iter_mut().zip(others);
                pairs.for_each(|(own, other)| *own = own.wrapping_add(*other));
            }
            _ => return false,
        }
        true
    }

    /// As many zeros of the same element type.
    pub(super) fn zeros(&self) -> Self {
        let len = self.len();
        match self {
            Values::Floats(_) => Values::Floats(vec![0.0; len]),
            Values::Float16s(_) => Values::Float16s(vec![f16::ZERO; len]),
            Values::Bfloat16s(_) => Values::Bfloat16s(vec![bf16::ZERO; len]),
            Values::Integers(_) => Values::Integers(vec![0; len]),
            Values::Int8s(_) => Values::Int8s(vec![0; len]),
        }
    }

    /// Whether the values are integers, which are summed without an exponent.
    pub fn is_integer(&self) -> bool {
        matches!(self, Values::Integers(_) | Values::Int8s(_))
    }
}
