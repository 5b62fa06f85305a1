//! Element types under nccl-tests' names, their reductions, and the initial values of ranks.
//!
//! The values make every result exact, in any order of combination, so a single wrong bit is an error.

use clap::ValueEnum;
use collectives::ReduceOp;
use half::{bf16, f16};

/// Element type of a collective, by nccl-tests' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum DataType {
    Int8,
    Uint8,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Half,
    Float,
    Double,
    Bfloat16,
}

impl DataType {
    /// The operations on elements of this type.
    pub fn work(self) -> Work {
        match self {
            Self::Int8 => Work::new::<i8>(),
            Self::Uint8 => Work::new::<u8>(),
            Self::Int32 => Work::new::<i32>(),
            Self::Uint32 => Work::new::<u32>(),
            Self::Int64 => Work::new::<i64>(),
            Self::Uint64 => Work::new::<u64>(),
            Self::Half => Work::new::<f16>(),
            Self::Float => Work::new::<f32>(),
            Self::Double => Work::new::<f64>(),
            Self::Bfloat16 => Work::new::<bf16>(),
        }
    }
}

/// Reduction of a collective, by nccl-tests' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Op {
    Sum,
    Prod,
    Min,
    Max,
}

impl From<Op> for ReduceOp {
    fn from(op: Op) -> Self {
        match op {
            Op::Sum => Self::Sum,
            Op::Prod => Self::Product,
            Op::Min => Self::Min,
            Op::Max => Self::Max,
        }
    }
}

/// Operations on elements of one type, which buffers hold as little-endian bytes.
#[derive(Clone, Copy)]
pub struct Work {
    /// Length of an element in bytes.
    pub width: usize,
    /// Combines each element of the second buffer into the first.
    pub combine: fn(ReduceOp, &mut [u8], &[u8]),
    /// Appends an expected element to a buffer: the combined values that these ranks have for the element with this index.
    pub push: fn(&mut Vec<u8>, &Values, &[usize], usize),
}

impl Work {
    fn new<T: Element>() -> Self {
        Self {
            width: size_of::<T>(),
            combine: combine::<T>,
            push: push::<T>,
        }
    }

    /// Number of elements in which the buffers differ.
    pub fn differ(&self, expected: &[u8], output: &[u8]) -> u64 {
        let pairs = expected.chunks(self.width).zip(output.chunks(self.width));
        pairs
            .filter(|(expected, output)| expected != output)
            .count() as u64
    }
}

/// Rule that generates the initial values of all ranks.
#[derive(Debug, Clone, Copy)]
pub struct Values {
    /// Number of ranks in the collective.
    pub ranks: usize,
    /// Reduction that combines the ranks' values.
    pub op: ReduceOp,
}

/// A generated value, before each element type converts it.
enum Value {
    /// A non-negative integer.
    Whole(u32),
    /// −1, 0 or 1, for products: a float is 2 to this power, an integer is this number plus 2.
    Power(i8),
}

/// Maximum number of ranks whose factor in a product is not 1, so that no product overflows binary16.
const FACTORS: usize = 8;

impl Values {
    fn value(&self, rank: usize, element: usize, exact: u32) -> Value {
        let drawn = mixed(((rank as u64) << 44) ^ element as u64);
        if self.op != ReduceOp::Product {
            let span = (exact / self.ranks as u32).clamp(2, 256);
            return Value::Whole((drawn % u64::from(span)) as u32);
        }
        let turn = (rank + element) % self.ranks;
        match turn < FACTORS {
            true => Value::Power((drawn % 3) as i8 - 1),
            false => Value::Power(0),
        }
    }
}

/// Mixes a 64-bit word: the finalizer of splitmix64.
fn mixed(number: u64) -> u64 {
    let x = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// An element type with its conversions and reductions.
trait Element: Copy {
    /// Integer up to which the type represents all integers exactly.
    const EXACT: u32;
    fn from_value(value: Value) -> Self;
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
    fn combined(self, op: ReduceOp, other: Self) -> Self;
}

fn combine<T: Element>(op: ReduceOp, target: &mut [u8], source: &[u8]) {
    let width = size_of::<T>();
    let targets = target.chunks_exact_mut(width);
    for (target, source) in targets.zip(source.chunks_exact(width)) {
        T::read(target).combined(op, T::read(source)).write(target);
    }
}

fn push<T: Element>(bytes: &mut Vec<u8>, values: &Values, ranks: &[usize], element: usize) {
    let mut elements = ranks
        .iter()
        .map(|rank| T::from_value(values.value(*rank, element, T::EXACT)));
    let first = elements.next().unwrap_or(T::from_value(Value::Whole(0)));
    let all = elements.fold(first, |all, other| all.combined(values.op, other));
    let at = bytes.len();
    bytes.resize(at + size_of::<T>(), 0);
    all.write(&mut bytes[at..]);
}

macro_rules! bytes {
    () => {
        fn read(bytes: &[u8]) -> Self {
            let mut own = [0; size_of::<Self>()];
            own.copy_from_slice(bytes);
            Self::from_le_bytes(own)
        }

        fn write(self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.to_le_bytes());
        }
    };
}

/// Implements [`Element`] for integer types: they wrap, so the order of combination does not matter.
macro_rules! integers {
    ($($of:ty),*) => {$(
        impl Element for $of {
            const EXACT: u32 = u32::MAX;

            fn from_value(value: Value) -> Self {
                match value {
                    Value::Whole(number) => number as $of,
                    Value::Power(power) => (power + 2) as $of,
                }
            }

            bytes!();

            fn combined(self, op: ReduceOp, other: Self) -> Self {
                match op {
                    ReduceOp::Sum => self.wrapping_add(other),
                    ReduceOp::Product => self.wrapping_mul(other),
                    ReduceOp::Min => self.min(other),
                    ReduceOp::Max => self.max(other),
                }
            }
        }
    )*};
}

integers!(i8, u8, i32, u32, i64, u64);

macro_rules! floats {
    ($($of:ty, $exact:expr, $from:expr;)*) => {$(
        impl Element for $of {
            const EXACT: u32 = $exact;

            fn from_value(value: Value) -> Self {
                let wide = match value {
                    Value::Whole(number) => number as f32,
                    Value::Power(power) => 2.0_f32.powi(power.into()),
                };
                $from(wide)
            }

            bytes!();

            fn combined(self, op: ReduceOp, other: Self) -> Self {
                match op {
                    ReduceOp::Sum => self + other,
                    ReduceOp::Product => self * other,
                    ReduceOp::Min => self.min(other),
                    ReduceOp::Max => self.max(other),
                }
            }
        }
    )*};
}

floats! {
    f16, 1 << 11, f16::from_f32;
    bf16, 1 << 8, bf16::from_f32;
    f32, 1 << 24, |wide| wide;
    f64, u32::MAX, f64::from;
}

#[cfg(test)]
mod tests {
    use super::super::word;
    use super::*;

    /// Any order of ranks, and any tree, gives the same bits.
    #[test]
    fn no_order_matters() {
        for data_type in DataType::value_variants() {
            let work = data_type.work();
            for op in Op::value_variants() {
                let op = ReduceOp::from(*op);
                for ranks in [2, 3, 8, 40] {
                    let values = Values { ranks, op };
                    for element in 0..40 {
                        let one = |rank: usize| {
                            let mut bytes = Vec::new();
                            (work.push)(&mut bytes, &values, &[rank], element);
                            bytes
                        };
                        let combined = |order: &mut dyn Iterator<Item = usize>| {
                            let mut sum = one(order.next().unwrap());
                            order.for_each(|rank| (work.combine)(op, &mut sum, &one(rank)));
                            sum
                        };
                        let forward = combined(&mut (0..ranks));
                        let backward = combined(&mut (0..ranks).rev());
                        let mut low = combined(&mut (0..ranks / 2));
                        (work.combine)(op, &mut low, &combined(&mut (ranks / 2..ranks)));
                        let mut all = Vec::new();
                        let every: Vec<usize> = (0..ranks).collect();
                        (work.push)(&mut all, &values, &every, element);
                        for other in [backward, low, all] {
                            assert_eq!(forward, other, "{data_type:?} {op:?} of {ranks}");
                        }
                    }
                }
            }
        }
    }

    /// Results that are 0, or independent of the contributors, would hide errors.
    #[test]
    fn values_differ_and_so_do_their_sums() {
        let distinct = |rank_sets: &[&[usize]]| {
            let values = Values {
                ranks: 4,
                op: ReduceOp::Sum,
            };
            let mut seen = std::collections::BTreeSet::new();
            for ranks in rank_sets {
                let mut bytes = Vec::new();
                for element in 0..64 {
                    (DataType::Float.work().push)(&mut bytes, &values, ranks, element);
                }
                seen.insert(bytes);
            }
            seen.len()
        };
        let sets: [&[usize]; 6] = [&[0], &[1], &[2], &[0, 1, 2, 3], &[1, 2, 3], &[0, 1, 2]];
        assert_eq!(distinct(&sets), 6);
    }

    #[test]
    fn each_wrong_element_counts_once() {
        let work = DataType::Int32.work();
        let right: Vec<u8> = (0..40).collect();
        assert_eq!(work.differ(&right, &right), 0);
        let mut wrong = right.clone();
        for byte in [0, 1, 2, 7, 39] {
            wrong[byte] ^= 1;
        }
        assert_eq!(work.differ(&right, &wrong), 3);
    }

    #[test]
    fn widths_are_those_of_the_names() {
        let all = DataType::value_variants().iter();
        let widths: Vec<(String, usize)> = all.map(|of| (word(of), of.work().width)).collect();
        let expected = [
            ("int8", 1),
            ("uint8", 1),
            ("int32", 4),
            ("uint32", 4),
            ("int64", 8),
            ("uint64", 8),
            ("half", 2),
            ("float", 4),
            ("double", 8),
            ("bfloat16", 2),
        ];
        assert_eq!(
            widths,
            expected.map(|(name, width)| (name.to_owned(), width))
        );
    }
}
