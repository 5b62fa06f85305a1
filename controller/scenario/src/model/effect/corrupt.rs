//! `corrupt: {field: ip.ttl, xor: 0x01}`: flips bits of a field. With `bits: 2` or `bytes: 1`, a random word chooses the bits.
//! Checksums stay as they were, as in real corruption, unless the file asks for `mended`.

use parser_gen::engine::Action;
use parser_gen::rewrite::Rewrite;
use parser_gen::{Headers, Library};

use super::distribution::{QUANTILES, quantile_index};
use super::{Behaviour, Fate};
use crate::model::decision;

/// The effect that flips bits of a field of the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// The field, the bits to flip if they are fixed, and the treatment of checksums.
    pub rewrite: Rewrite,
    /// Description of the change as in the file: `ip.ttl by 0x1`.
    pub told: String,
    /// The masks of bits to flip, one for each value of the random word's upper bits. Empty if the bits are fixed.
    pub(crate) masks: Box<[u128]>,
}

/// For each possible draw, a mask of `count` different units (bits or bytes) of a field. The first unit goes through the field
/// in order. So with one unit all are equally likely, as far as their number divides the number of draws.
pub(crate) fn masks(width: usize, unit: usize, count: usize) -> Box<[u128]> {
    let units = width / unit;
    let mask = |lot: usize| {
        let number = |n: usize| decision::mix((lot << 16 | n) as u64);
        let mut places: Vec<usize> = (0..units).collect();
        places.swap(0, lot * units / QUANTILES);
        for place in 1..count {
            let other = place + number(place) as usize % (units - place);
            places.swap(place, other);
        }
        let chosen = places[..count].iter().enumerate();
        chosen.fold(0_u128, |mask, (n, place)| {
            // A corrupted byte becomes any other byte.
            let bits = match unit {
                8 => 1 + u128::from(number(0x100 + n) % 255),
                _ => 1,
            };
            mask | bits << (place * unit)
        })
    };
    (0..QUANTILES).map(mask).collect()
}

impl Corrupt {
    /// Flips the same bits of a field in every packet.
    #[must_use]
    pub fn by(rewrite: Rewrite, told: String) -> Corrupt {
        Corrupt {
            rewrite,
            told,
            masks: Box::default(),
        }
    }
}

impl Behaviour for Corrupt {
    fn action(&self) -> Action {
        Action::Rewrite(self.rewrite.clone())
    }

    fn compose(&self, _w: u32, _fate: &mut Fate) {}

    fn lots(&self) -> Vec<u128> {
        self.masks.to_vec()
    }

    fn draws(&self) -> bool {
        !self.masks.is_empty()
    }

    fn takes(&self) -> bool {
        true
    }

    fn changes(&self) -> bool {
        true
    }

    fn change(&self, library: &Library, headers: &Headers, w: u32, frame: &mut [u8]) {
        let mask = self.masks.get(quantile_index(w)).copied().unwrap_or(0);
        self.rewrite.apply(library, headers, frame, mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_as_many_units_as_asked_and_all_units_come() {
        for (width, unit, count) in [(8, 1, 1), (13, 1, 3), (128, 1, 128), (32, 8, 2), (16, 8, 1)] {
            let masks = masks(width, unit, count);
            let touched = |mask: u128| {
                let units = (0..width / unit).filter(|place| {
                    let bits = mask >> (place * unit);
                    bits & ((1 << unit) - 1) != 0
                });
                units.count()
            };
            assert!(masks.iter().all(|mask| touched(*mask) == count), "{width}");
            assert!(masks.iter().all(|mask| width == 128 || mask >> width == 0));
            let all = masks.iter().fold(0, |all, mask| all | mask);
            assert_eq!(all.count_ones() as usize, width, "{width} by {unit}");
        }
        // One bit of eight: each is drawn equally often.
        let even = masks(8, 1, 1);
        assert!((0..8).all(|bit| even.iter().filter(|mask| **mask == 1 << bit).count() == 128));
    }
}
