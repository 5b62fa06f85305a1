//! VLAN tags, which the kernel takes out of received frames and describes beside them.

/// Status flag: the kernel has removed a VLAN tag from the frame, and its TPID is known. (`linux/if_packet.h`; not in `libc`.)
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const TPID_8021Q: u16 = 0x8100;
/// Length of the two Ethernet addresses of a frame, after which a VLAN tag stands, in bytes.
const ADDRESSES: usize = 12;

/// A VLAN tag: its TPID (EtherType) and its TCI.
pub type Tag = [u8; 4];

/// The VLAN tag that the kernel has removed from a frame; `None`: it has removed none. The arguments describe the frame, as in
/// `struct tpacket_auxdata`.
pub fn stripped_tag(status: u32, tpid: u16, tci: u16) -> Option<Tag> {
    if status & TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let tpid = match status & TP_STATUS_VLAN_TPID_VALID {
        0 => TPID_8021Q,
        _ => tpid,
    };
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    Some([a, b, c, d])
}

/// Puts a VLAN tag back into the packet that begins at `start`, over the bytes before it; returns the packet's new start. A packet
/// that is too short for a tag stays as it is.
///
/// # Panics
/// There are fewer than four bytes before the packet.
pub fn put_back(tag: Option<Tag>, bytes: &mut [u8], start: usize) -> usize {
    match tag {
        Some(tag) if bytes.len() >= start + ADDRESSES => {
            let place = start - tag.len();
            bytes.copy_within(start..start + ADDRESSES, place);
            bytes[place + ADDRESSES..start + ADDRESSES].copy_from_slice(&tag);
            place
        }
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_comes_from_the_status() {
        assert_eq!(stripped_tag(1, 0x8100, 5), None);
        assert_eq!(stripped_tag(1 << 4, 0, 5), Some([0x81, 0, 0, 5]));
        assert_eq!(
            stripped_tag(1 << 4 | 1 << 6, 0x88a8, 0xa02a),
            Some([0x88, 0xa8, 0xa0, 42])
        );
    }

    #[test]
    fn a_tag_is_put_back_over_the_bytes_before() {
        let tagged: Vec<u8> = (0..100).collect();
        let stripped = [&[0; 10][..], &tagged[..12], &tagged[16..]].concat();
        let mut place = stripped.clone();
        let start = put_back(Some([12, 13, 14, 15]), &mut place, 10);
        assert_eq!((start, &place[start..]), (6, &tagged[..]));
        let mut place = stripped.clone();
        assert_eq!(put_back(None, &mut place, 10), 10);
        assert_eq!(place, stripped);
        let mut short = stripped[..21].to_vec();
        assert_eq!(put_back(Some([12, 13, 14, 15]), &mut short, 10), 10);
        assert_eq!(short, stripped[..21]);
    }
}
