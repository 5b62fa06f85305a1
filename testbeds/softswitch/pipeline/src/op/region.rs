//! Groups of frame slots that an architecture accesses: parameters of its blocks, and fields of its metadata.

use super::Slot;

/// A scalar metadata field: its slot, and the mask of its bits in the slot. If the program's include file does not declare the
/// field, the mask is 0 and the slot is the first one, which holds the constant 0.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MetaField {
    pub(crate) slot: Slot,
    pub(crate) mask: u64,
}

impl MetaField {
    #[inline(always)]
    pub(crate) fn set(self, frame: &mut [u64], value: u64) {
        frame[self.slot as usize] = value & self.mask;
    }

    /// The field's slot; `None` if the include file does not declare the field.
    pub(crate) fn slot(self) -> Option<Slot> {
        (self.mask != 0).then_some(self.slot)
    }

    /// The mask of the field's bits within its slot.
    pub(crate) fn mask(self) -> u64 {
        self.mask
    }

    /// The field restricted to the bits of a mask.
    pub(crate) fn bits(self, mask: u64) -> MetaField {
        MetaField {
            mask: self.mask & mask,
            ..self
        }
    }

    /// The slot after this field, as a field: for some fields of TNA's metadata it holds their validity.
    pub(crate) fn following(self) -> MetaField {
        self.slot().map_or(self, |slot| MetaField {
            slot: slot + 1,
            mask: 1,
        })
    }

    #[inline(always)]
    pub(crate) fn get(self, frame: &[u64]) -> u64 {
        frame[self.slot as usize]
    }
}

/// The slots of a block's parameter: the first slot, and their number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    pub(crate) slot: Slot,
    pub(crate) size: u32,
}

impl Region {
    pub(crate) fn zero(self, frame: &mut [u64]) {
        let slots = &mut frame[self.slot as usize..(self.slot + self.size) as usize];
        // From 2 KiB on, `memset` uses an instruction whose startup takes longer than storing such a region.
        slots.chunks_mut(128).for_each(|part| part.fill(0));
    }

    pub(crate) fn slots(self, frame: &[u64]) -> &[u64] {
        &frame[self.slot as usize..(self.slot + self.size) as usize]
    }

    /// Copies the slots of the deparser's output to the next parser's parameter; the package makes their types equal.
    pub(crate) fn copy_from(self, frame: &mut [u64], from: Region) {
        let n = self.size.min(from.size) as usize;
        frame.copy_within(
            from.slot as usize..from.slot as usize + n,
            self.slot as usize,
        );
    }

    pub(crate) fn load(self, frame: &mut [u64], image: &[u64]) {
        let to = &mut frame[self.slot as usize..(self.slot + self.size) as usize];
        for (to, from) in to.iter_mut().zip(image) {
            *to = *from;
        }
    }
}
