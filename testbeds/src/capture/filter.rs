//! Selects the frames to record, by a classic BPF program that the kernel runs (linux/filter.h).

/// Which frames a recorder records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// All frames that pass the interface.
    Everything,
    /// IPv4 UDP packets to this destination port, without later fragments.
    UdpTo(u16),
    /// All IPv4 TCP packets.
    Tcp,
}

/// Number of bytes that a program returns to accept a whole packet, however long.
pub(super) const WHOLE_PACKET: u32 = 1 << 18;

/// BPF instruction `A := length of the packet`.
const LOAD_LENGTH: u16 = 0x80;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
/// BPF instruction `X := 4 · (byte & 15)`, which loads the length of an IPv4 header.
const LOAD_X_HEADER: u16 = 0xb1;
const LOAD_HALF_AT_X: u16 = 0x48;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

const ETHERTYPE: u32 = 12;
const IP: u32 = 14;
const IPV4: u32 = 0x0800;

impl Filter {
    /// The BPF program that accepts no frame.
    pub(super) fn nothing() -> Vec<libc::sock_filter> {
        vec![op(RETURN, 0)]
    }

    /// The BPF program of the filter. It accepts the first `keep` bytes of each selected frame, and the whole of each selected packet
    /// of more than `longest_frame` bytes, which is a bundle of frames.
    pub(super) fn program(self, keep: u32, longest_frame: u32) -> Vec<libc::sock_filter> {
        let accept = [
            op(LOAD_LENGTH, 0),
            jump(JUMP_GREATER, longest_frame, 0, 1),
            op(RETURN, WHOLE_PACKET),
            op(RETURN, keep),
        ];
        let accept = match keep < WHOLE_PACKET {
            true => &accept[..],
            false => &accept[3..],
        };
        // The instruction that accepts no byte follows.
        let past = accept.len() as u8;
        let select = match self {
            Filter::Everything => vec![],
            Filter::UdpTo(port) => vec![
                op(LOAD_HALF, ETHERTYPE),
                jump(JUMP_EQUAL, IPV4, 0, 7 + past),
                op(LOAD_BYTE, IP + 9),
                jump(JUMP_EQUAL, 17, 0, 5 + past),
                op(LOAD_HALF, IP + 6),
                jump(JUMP_SET, 0x1fff, 3 + past, 0),
                op(LOAD_X_HEADER, IP),
                op(LOAD_HALF_AT_X, IP + 2),
                jump(JUMP_EQUAL, port.into(), 0, past),
            ],
            Filter::Tcp => vec![
                op(LOAD_HALF, ETHERTYPE),
                jump(JUMP_EQUAL, IPV4, 0, 2 + past),
                op(LOAD_BYTE, IP + 9),
                jump(JUMP_EQUAL, 6, 0, past),
            ],
        };
        let reject = &[op(RETURN, 0)];
        [&select[..], accept, reject].concat()
    }
}

fn op(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The instructions above, and no others.
    fn accepts(filter: Filter, frame: &[u8]) -> u32 {
        accepts_of(&filter.program(100, 200), frame)
    }

    fn accepts_of(program: &[libc::sock_filter], frame: &[u8]) -> u32 {
        let half = |at: usize| {
            frame
                .get(at..at + 2)
                .map(|b| u32::from(b[0]) << 8 | u32::from(b[1]))
        };
        let (mut at, mut a, mut x) = (0, 0, 0);
        loop {
            let step = &program[at];
            at += 1;
            let k = step.k as usize;
            let loaded = match step.code {
                RETURN => return step.k,
                LOAD_LENGTH => Some(frame.len() as u32),
                LOAD_HALF => half(k),
                LOAD_HALF_AT_X => half(x + k),
                LOAD_BYTE => frame.get(k).map(|&b| b.into()),
                LOAD_X_HEADER => {
                    x = frame.get(k).map_or(0, |b| 4 * usize::from(b & 15));
                    Some(a)
                }
                JUMP_EQUAL => {
                    at += usize::from(if a == step.k { step.jt } else { step.jf });
                    Some(a)
                }
                JUMP_GREATER => {
                    at += usize::from(if a > step.k { step.jt } else { step.jf });
                    Some(a)
                }
                JUMP_SET => {
                    at += usize::from(if a & step.k != 0 { step.jt } else { step.jf });
                    Some(a)
                }
                other => panic!("{other:#x}"),
            };
            match loaded {
                Some(value) => a = value,
                None => return 0,
            }
        }
    }

    fn frame(protocol: u8, port: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x46; // one word of options
        frame[23] = protocol;
        frame[14 + 24 + 2..][..2].copy_from_slice(&port.to_be_bytes());
        frame
    }

    #[test]
    fn packets_that_are_no_frames_are_accepted_whole() {
        let long = |protocol| {
            let mut frame = frame(protocol, 22341);
            frame.resize(201, 0);
            frame
        };
        for (filter, frame) in [
            (Filter::Everything, long(1)),
            (Filter::UdpTo(22341), long(17)),
            (Filter::Tcp, long(6)),
        ] {
            assert_eq!(accepts(filter, &frame), WHOLE_PACKET, "{filter:?}");
            assert_eq!(accepts(filter, &frame[..200]), 100, "{filter:?}");
            let whole = filter.program(WHOLE_PACKET, 200);
            assert_eq!(accepts_of(&whole, &frame[..60]), WHOLE_PACKET, "{filter:?}");
        }
        assert_eq!(accepts(Filter::UdpTo(22341), &long(6)), 0);
        assert_eq!(accepts(Filter::Tcp, &long(17)), 0);
        assert_eq!(accepts_of(&Filter::nothing(), &long(6)), 0);
    }

    #[test]
    fn filters_accept_only_their_frames() {
        assert_eq!(accepts(Filter::Everything, &[]), 100);
        assert_eq!(accepts(Filter::UdpTo(22341), &frame(17, 22341)), 100);
        assert_eq!(accepts(Filter::UdpTo(22341), &frame(17, 22342)), 0);
        assert_eq!(accepts(Filter::UdpTo(22341), &frame(6, 22341)), 0);
        assert_eq!(accepts(Filter::Tcp, &frame(6, 1)), 100);
        assert_eq!(accepts(Filter::Tcp, &frame(17, 1)), 0);
        let mut fragment = frame(17, 22341);
        fragment[21] = 1;
        assert_eq!(accepts(Filter::UdpTo(22341), &fragment), 0);
        let mut arp = frame(17, 22341);
        arp[13] = 6;
        assert_eq!(accepts(Filter::UdpTo(22341), &arp), 0);
        assert_eq!(accepts(Filter::UdpTo(22341), &[0; 10]), 0);
    }
}
