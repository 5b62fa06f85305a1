//! Packs and unpacks the controller header of a frame (P4Runtime 1.4, sections 6.4.6 and 16.1): its fields follow each
//! other without gaps, and zeros fill its last byte.

use p4lang::runtime::Value;

/// Packs the fields of a controller header, given as width in bits and value, most significant bit first.
pub(super) fn pack(fields: &[(u32, Value)]) -> Vec<u8> {
    let bits: u32 = fields.iter().map(|(width, _)| width).sum();
    let mut bytes = vec![0; (bits as usize).div_ceil(8)];
    let mut at = 0;
    for (width, value) in fields {
        for bit in (0..*width).rev() {
            let set = value.limb(bit as usize / 64) >> (bit % 64) & 1 == 1;
            bytes[at / 8] |= u8::from(set) << (7 - at % 8);
            at += 1;
        }
    }
    bytes
}

/// Unpacks fields of these widths (in bits) from the start of `frame`; returns the rest too, or `None` if it is too short.
pub(super) fn unpack<'a>(widths: &[u32], frame: &'a [u8]) -> Option<(Vec<Value>, &'a [u8])> {
    let bits: u32 = widths.iter().sum();
    let (head, payload) = frame.split_at_checked((bits as usize).div_ceil(8))?;
    let mut at = 0;
    let field = |width: &u32| {
        let mut limbs = vec![0; width.div_ceil(64) as usize];
        for bit in (0..*width as usize).rev() {
            limbs[bit / 64] |= u64::from(head[at / 8] >> (7 - at % 8) & 1) << (bit % 64);
            at += 1;
        }
        Value::from_limbs(&limbs)
    };
    Some((widths.iter().map(field).collect(), payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_packed_without_gaps() {
        let packed = pack(&[(9, 0x1ff.into()), (7, 1.into()), (16, 0xbeef.into())]);
        assert_eq!(packed, [0xff, 0x81, 0xbe, 0xef]);
        let frame = [packed.as_slice(), b"payload"].concat();
        let (fields, payload) = unpack(&[9, 7, 16], &frame).unwrap();
        assert_eq!(fields, [0x1ff, 1, 0xbeef]);
        assert_eq!(payload, b"payload");
        let wide = [
            (3, 5.into()),
            (256, Value::prefix(256, 2)),
            (129, Value::ones(129)),
        ];
        let packed = pack(&wide);
        let (fields, rest) = unpack(&[3, 256, 129], &packed).unwrap();
        assert_eq!(fields, wide.map(|f| f.1));
        assert_eq!(rest, b"");
    }

    #[test]
    fn an_odd_header_is_padded_and_a_short_frame_refused() {
        assert_eq!(pack(&[(9, 1.into())]), [0x00, 0x80]);
        assert_eq!(unpack(&[9], &[0xff]), None);
        assert_eq!(
            unpack(&[9], &[0x00, 0x80, 7]),
            Some((vec![1.into()], &[7][..]))
        );
    }
}
