//! Registers, interleaved: cells with the same index in all registers of a bank are side by side.
//!
//! 256 separate arrays that are read at one index cost 2 µs per packet in cache misses alone; so registers of equal size
//! within one top-level control share a bank, and cell `i` of all of them is one row.

use crate::bits::limbs;
use crate::error::ExternError;
use p4lang::runtime::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Words {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

/// The cells of several registers of equal size. Row i contains cell i of each register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bank {
    rows: u64,
    stride: u32,
    words: Words,
}

impl Bank {
    /// Creates a bank with all cells 0. `stride`: number of words of a row; `narrow`: no word has more than 32 bits.
    pub fn new(rows: u64, stride: u32, narrow: bool) -> Bank {
        let n = rows as usize * stride as usize;
        let words = if narrow {
            Words::Narrow(vec![0; n])
        } else {
            Words::Wide(vec![0; n])
        };
        Bank {
            rows,
            stride,
            words,
        }
    }

    /// Reads words of a row from word `offset` on; a row beyond the last reads as zeroes.
    #[inline(always)]
    pub fn read(&self, row: u64, offset: u32, into: &mut [u64]) {
        if row >= self.rows {
            into.fill(0);
            return;
        }
        let at = row as usize * self.stride as usize + offset as usize;
        match &self.words {
            Words::Narrow(words) => {
                for (to, from) in into.iter_mut().zip(&words[at..]) {
                    *to = u64::from(*from);
                }
            }
            Words::Wide(words) => {
                for (to, from) in into.iter_mut().zip(&words[at..]) {
                    *to = *from;
                }
            }
        }
    }

    /// Number of rows, equal to the number of cells of each register in the bank.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes words of a row from word `offset` on; a write beyond the last row has no effect.
    #[inline(always)]
    pub fn write(&mut self, row: u64, offset: u32, from: &[u64]) {
        if row >= self.rows {
            return;
        }
        let at = row as usize * self.stride as usize + offset as usize;
        match &mut self.words {
            Words::Narrow(words) => {
                for (to, from) in words[at..].iter_mut().zip(from) {
                    *to = *from as u32;
                }
            }
            Words::Wide(words) => {
                for (to, from) in words[at..].iter_mut().zip(from) {
                    *to = *from;
                }
            }
        }
    }
}

impl Bank {
    /// Writes the same words to all rows from word `offset` on, which sets all cells of a register to one value.
    pub fn fill(&mut self, offset: u32, from: &[u64]) {
        let (offset, stride) = (offset as usize, self.stride.max(1) as usize);
        match &mut self.words {
            Words::Narrow(words) => {
                for row in words.chunks_exact_mut(stride) {
                    for (to, from) in row[offset..].iter_mut().zip(from) {
                        *to = *from as u32;
                    }
                }
            }
            Words::Wide(words) => {
                for row in words.chunks_exact_mut(stride) {
                    for (to, from) in row[offset..].iter_mut().zip(from) {
                        *to = *from;
                    }
                }
            }
        }
    }

    /// Sets each of adjacent words of a row to `f(value, word)`; with `keep`, sets `values` to the results too. A row beyond
    /// the last reads as 0, and writes to it have no effect.
    #[inline(always)]
    pub fn update(
        &mut self,
        row: u64,
        offset: u32,
        values: &mut [u64],
        keep: bool,
        f: impl Fn(u64, u64) -> u64,
    ) {
        if row >= self.rows {
            if keep {
                values.iter_mut().for_each(|v| *v = f(*v, 0));
            }
            return;
        }
        let at = row as usize * self.stride as usize + offset as usize;
        match (&mut self.words, keep) {
            (Words::Narrow(words), true) => {
                for (word, value) in words[at..].iter_mut().zip(values) {
                    *value = f(*value, u64::from(*word));
                    *word = *value as u32;
                }
            }
            (Words::Narrow(words), false) => {
                for (word, value) in words[at..].iter_mut().zip(values) {
                    *word = f(*value, u64::from(*word)) as u32;
                }
            }
            (Words::Wide(words), true) => {
                for (word, value) in words[at..].iter_mut().zip(values) {
                    *value = f(*value, *word);
                    *word = *value;
                }
            }
            (Words::Wide(words), false) => {
                for (word, value) in words[at..].iter_mut().zip(values) {
                    *word = f(*value, *word);
                }
            }
        }
    }
}

/// A register as the control plane sees it.
#[derive(Debug, Clone)]
pub struct Info {
    /// Fully qualified name of the register.
    pub name: String,
    /// Number of cells of the register.
    pub size: u64,
    /// Index of the register's bank (memory that registers of equal size share).
    pub bank: u32,
    /// Index of the first word of the register's cell in each row of the bank.
    pub offset: u32,
    /// Width of each field of a cell, in bits.
    pub widths: Vec<u32>,
}

impl Info {
    /// Number of 64-bit words of a cell.
    pub fn words(&self) -> u32 {
        self.widths.iter().map(|w| limbs(*w)).sum()
    }

    /// Reads the field values of the cell at an index.
    pub fn read(&self, bank: &Bank, index: u64) -> Result<Vec<Value>, ExternError> {
        if index >= self.size {
            return Err(ExternError::OutOfRange);
        }
        let mut words = vec![0; self.words() as usize];
        bank.read(index, self.offset, &mut words);
        Ok(self.fields(&words))
    }

    /// Converts the words of a cell to its field values.
    pub fn fields(&self, words: &[u64]) -> Vec<Value> {
        let mut rest = words;
        let field = |w: &u32| {
            let (field, after) = rest.split_at(limbs(*w) as usize);
            rest = after;
            Value::from_limbs(field)
        };
        self.widths.iter().map(field).collect()
    }

    /// Converts the field values of a cell to its words.
    pub fn cell(&self, fields: &[Value]) -> Result<Vec<u64>, ExternError> {
        if fields.len() != self.widths.len() {
            return Err(ExternError::WrongShape);
        }
        let mut words = Vec::with_capacity(self.words() as usize);
        for (value, w) in fields.iter().zip(&self.widths) {
            if !value.fits(*w) {
                return Err(ExternError::ValueTooWide);
            }
            words.extend((0..limbs(*w) as usize).map(|i| value.limb(i)));
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(info: &Info, bank: &mut Bank, row: u64, fields: &[Value]) -> Result<(), ExternError> {
        bank.write(row, info.offset, &info.cell(fields)?);
        Ok(())
    }

    #[test]
    fn cells_of_one_bank_do_not_touch_each_other() {
        let mut bank = Bank::new(4, 3, true);
        let info = |offset, widths: &[u32]| Info {
            name: "r".into(),
            size: 4,
            bank: 0,
            offset,
            widths: widths.to_vec(),
        };
        let (a, pair) = (info(0, &[32]), info(1, &[16, 32]));
        write(&a, &mut bank, 3, &[7.into()]).unwrap();
        write(&pair, &mut bank, 3, &[1.into(), 2.into()]).unwrap();
        write(&pair, &mut bank, 2, &[3.into(), 4.into()]).unwrap();
        assert_eq!(a.read(&bank, 3).unwrap(), [7]);
        assert_eq!(pair.read(&bank, 3).unwrap(), [1, 2]);
        assert_eq!(pair.read(&bank, 2).unwrap(), [3, 4]);
        assert_eq!(a.read(&bank, 2).unwrap(), [0]);
        assert_eq!(a.read(&bank, 4), Err(ExternError::OutOfRange));
        assert_eq!(
            write(&pair, &mut bank, 0, &[0x10000.into(), Value::ZERO]),
            Err(ExternError::ValueTooWide)
        );
        assert_eq!(
            write(&pair, &mut bank, 0, &[Value::ZERO]),
            Err(ExternError::WrongShape)
        );
    }

    #[test]
    fn a_bank_without_words_is_filled() {
        let mut bank = Bank::new(4, 0, false);
        bank.fill(0, &[]);
        assert_eq!(bank, Bank::new(4, 0, false));
    }

    #[test]
    fn a_field_takes_as_many_words_as_it_is_wide() {
        let mut bank = Bank::new(2, 8, false);
        let info = Info {
            name: "r".into(),
            size: 2,
            bank: 0,
            offset: 1,
            widths: vec![1, 256, 65],
        };
        let cell = [Value::from(1), Value::ones(256), Value::from(1 << 64)];
        write(&info, &mut bank, 1, &cell).unwrap();
        assert_eq!(info.read(&bank, 1).unwrap(), cell);
        assert_eq!(info.read(&bank, 0).unwrap(), [0, 0, 0]);
        let wide = [Value::ZERO, Value::ones(257), Value::ZERO];
        let refused = write(&info, &mut bank, 1, &wide);
        assert_eq!(refused, Err(ExternError::ValueTooWide));
    }

    #[test]
    fn the_data_plane_may_index_beyond_the_end() {
        let mut bank = Bank::new(2, 1, false);
        bank.write(1, 0, &[u64::MAX]);
        bank.write(2, 0, &[5]);
        let mut cell = [9];
        bank.read(2, 0, &mut cell);
        assert_eq!(cell, [0]);
        bank.read(1, 0, &mut cell);
        assert_eq!(cell, [u64::MAX]);
    }
}
