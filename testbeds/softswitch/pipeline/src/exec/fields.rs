//! Moves values between slots of the frame and packet bytes according to a [`Layout`].

use super::room;
use crate::bits;
use crate::externs::hash;
use crate::op::{ErrorCodes, HashPlan, Layout};

/// Extracts a header with a varbit field of `len` bits, and the fields before and after it. Returns the parser error, or 0.
pub(super) fn extract_varbit(
    frame: &mut [u64],
    packet: &[u8],
    cursor: &mut usize,
    errors: &ErrorCodes,
    layout: &Layout,
    d: u32,
    len: u64,
) -> u64 {
    let Some(varbit) = layout.varbit.and_then(|i| layout.fields.get(i)) else {
        return errors.invalid_argument;
    };
    // The checks are in the order of P4_16 13.8.2.
    let all = len.saturating_add(layout.bits.into());
    if !all.is_multiple_of(8) {
        return errors.invalid_argument;
    }
    if !room(packet, *cursor, all) {
        return errors.packet_too_short;
    }
    if len > varbit.width.into() {
        return errors.header_too_short;
    }
    let frame = &mut frame[d as usize..(d + layout.slots) as usize];
    frame.fill(0);
    let mut shift = 0;
    for (i, field) in layout.fields.iter().enumerate() {
        let at = *cursor + field.offset as usize + shift;
        let (first, width) = if Some(i) == layout.varbit {
            frame[field.slot as usize] = len;
            shift = len as usize;
            (field.slot as usize + 1, len as u32)
        } else {
            (field.slot as usize, field.width)
        };
        let n = width.div_ceil(64) as usize;
        bits::read_limbs(packet, at, width, &mut frame[first..first + n]);
    }
    frame[0] = 1;
    *cursor += all as usize;
    0
}

#[inline(always)]
pub(super) fn read_fields(
    frame: &mut [u64],
    packet: &[u8],
    cursor: usize,
    layout: &Layout,
    d: u32,
) {
    let frame = &mut frame[d as usize..(d + layout.slots) as usize];
    if layout.header {
        frame[0] = 1;
    }
    if layout.varbit.is_none() {
        return layout.codec.read(frame, packet, cursor);
    }
    for (i, field) in layout.fields.iter().enumerate() {
        let at = cursor + field.offset as usize;
        let slot = field.slot as usize;
        if Some(i) == layout.varbit {
            // A fixed-size extract leaves a varbit field empty (P4_16 12.8.1).
            frame[slot..slot + 1 + field.width.div_ceil(64) as usize].fill(0);
        } else if field.width <= 64 {
            frame[slot] = bits::read(packet, at, field.width);
        } else {
            let n = bits::limbs(field.width) as usize;
            bits::read_limbs(packet, at, field.width, &mut frame[slot..slot + n]);
        }
    }
}

/// Appends `lead` zero bits and the value at slot `s`, with the last byte padded with zeroes.
#[inline(always)]
pub(super) fn write_fields(frame: &[u64], out: &mut Vec<u8>, layout: &Layout, s: u32, lead: usize) {
    let frame = &frame[s as usize..(s + layout.slots) as usize];
    if layout.varbit.is_none() && lead == 0 {
        return layout.codec.write(frame, out);
    }
    let varbit = layout
        .varbit
        .map_or(0, |i| frame[layout.fields[i].slot as usize]) as usize;
    let start = out.len();
    out.resize(
        start + (lead + layout.bits as usize + varbit).div_ceil(8),
        0,
    );
    let bytes = &mut out[start..];
    let mut shift = lead;
    for (i, field) in layout.fields.iter().enumerate() {
        let at = field.offset as usize + shift;
        let slot = field.slot as usize;
        if Some(i) == layout.varbit {
            bits::write_limbs(
                bytes,
                at,
                varbit as u32,
                &frame[slot + 1..slot + 1 + varbit.div_ceil(64)],
            );
            shift += varbit;
        } else if field.width <= 64 {
            bits::write(bytes, at, field.width, frame[slot]);
        } else {
            let n = bits::limbs(field.width) as usize;
            bits::write_limbs(bytes, at, field.width, &frame[slot..slot + n]);
        }
    }
}

pub(super) fn serialise(frame: &[u64], scratch: &mut Vec<u8>, layout: &Layout, s: u32) {
    scratch.clear();
    write_fields(frame, scratch, layout, s, 0);
}

/// The one's complement sum of the 16-bit words of a value without a varbit, whose first slot is `s`.
#[inline(always)]
pub(super) fn ones_complement_sum(frame: &[u64], layout: &Layout, s: u32) -> u16 {
    let frame = &frame[s as usize..(s + layout.slots) as usize];
    layout.codec.ones_complement_sum(frame)
}

/// Computes the hash of a value, and of the packet's payload if the plan includes it.
pub(super) fn hash(
    frame: &[u64],
    scratch: &mut Vec<u8>,
    plan: &HashPlan,
    layout: &Layout,
    payload: &[u8],
) -> u64 {
    let whole = layout.bits.is_multiple_of(8);
    let mut bits = layout.bits;
    if plan.pad_left && !whole {
        scratch.clear();
        let lead = 8 - layout.bits as usize % 8;
        write_fields(frame, scratch, layout, plan.data, lead);
        bits = bits.next_multiple_of(8);
    } else {
        serialise(frame, scratch, layout, plan.data);
    }
    if plan.payload {
        scratch.extend_from_slice(payload);
    }
    hash::compute(plan.algorithm, scratch, plan.w.into(), bits)
}
