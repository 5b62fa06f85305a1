//! Computes the memory size of each port's ring. Pure.
//!
//! The kernel allocates a ring at once and never swaps it out, so its memory is used even while no frame passes. In exchange,
//! the ring holds the frames that pass while the reader has no processor.

/// Size of a ring: it consists of `blocks` blocks of `block_bytes` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RingSize {
    /// Size of a block in bytes: a power of two, and at least a page.
    pub block_bytes: u32,
    /// Number of blocks of the ring.
    pub blocks: u32,
}

impl RingSize {
    /// Size of all blocks together, in bytes.
    pub fn bytes(self) -> usize {
        self.block_bytes as usize * self.blocks as usize
    }

    /// Length of the longest packet that fits in a block, in bytes. The kernel cuts longer ones.
    pub fn longest_packet(self) -> u32 {
        self.block_bytes - OVERHEAD
    }
}

/// Minimum size of the ring of a link whose rate is known, in bytes.
const LEAST_BYTES: u64 = 1 << 20;
const MOST_BYTES: u64 = 64 << 20;
/// Maximum size of all rings of a recorder together, in bytes; exceeded if each ring has only [`LEAST_BYTES`].
const ALL_BYTES: u64 = 80 << 20;
/// Maximum size of a block in bytes: it holds a bundle of frames, whose IP packet has up to 65,535 bytes.
const MOST_BLOCK: u64 = 1 << 17;
/// Number of blocks that hold a second of frames: the kernel hands over a block that is not full after
/// [`RETIRE_MS`](super::ring::RETIRE_MS), 4 ms, so a link that is too slow to fill blocks uses 250 of them in a second.
const BLOCKS_OF_A_SECOND: u64 = 256;
/// Minimum number of blocks of a ring, reached where frames are long and the ring is small: a quarter of a second.
const LEAST_BLOCKS: u64 = 64;
/// Size of the ring of a link whose rate is unknown, in bytes: 32 MiB.
const UNKNOWN_RATE_BYTES: u64 = BLOCKS_OF_A_SECOND * MOST_BLOCK;
/// Bytes of a block that are not available to its only frame: the header of the block (48 bytes), the header and the
/// address of the frame with alignments (96), its virtio header (10), and a VLAN tag; rounded up.
const OVERHEAD: u32 = 160;

/// Properties of a link that determine the size of its ring.
#[derive(Debug, Clone, Copy)]
pub struct LinkSize {
    /// Rate of the link in bit/s; `None`: unknown.
    pub rate_bps: Option<u64>,
    /// MTU of the interface in bytes.
    pub mtu: u32,
}

/// Memory of each ring of one recorder in bytes, which the kernel allocates at its start, for pages of `page_bytes`.
#[must_use]
pub fn ring_bytes(links: &[LinkSize], page_bytes: u32) -> Vec<u64> {
    let sizes = ring_sizes(links, page_bytes).into_iter();
    sizes.map(|size| size.bytes() as u64).collect()
}

/// Maximum length of a bundle of frames in bytes: above it, Linux needs other IP headers.
const MOST_BUNDLE: u64 = 65_536;
/// Minimum of a limit on bundles, in bytes: Linux subtracts the space that it reserves for TCP's headers, some 320 bytes.
const LEAST_BUNDLE: u64 = 1_024;
/// Part of a second of the link's rate that a bundle lasts at most: one millisecond, like the packets of Linux's TCP.
const BUNDLES_OF_A_SECOND: u64 = 1_000;

/// Length of the longest bundle of frames that each link of a testbed is to carry, in bytes with the Ethernet header, for pages of
/// `page_bytes`; `None`: the link is to carry none, because two frames of the MTU are longer.
///
/// A bundle lasts no longer than a millisecond on its link, so that other frames do not wait longer for it. Two bundles fit in a block
/// of the link's ring, so that a capture is whole, and blocks are filled well: the kernel begins another block for a packet that does
/// not fit in the rest of one. A recorder of some of the links has no smaller blocks than one of all.
#[must_use]
pub fn longest_bundles(links: &[LinkSize], page_bytes: u32) -> Vec<Option<u32>> {
    let sizes = ring_sizes(links, page_bytes);
    let limits = links.iter().zip(sizes).map(|(link, size)| {
        let by_rate = link
            .rate_bps
            .map_or(u64::MAX, |rate_bps| rate_bps / 8 / BUNDLES_OF_A_SECOND);
        let by_block = size.longest_packet() / 2 - OVERHEAD;
        let longest = MOST_BUNDLE.min(by_rate).min(by_block.into());
        let two_frames = 2 * (u64::from(link.mtu) + 14);
        (longest >= two_frames.max(LEAST_BUNDLE)).then_some(longest as u32)
    });
    limits.collect()
}

/// Number and size of the blocks of each ring of one recorder.
///
/// A ring holds one second of its link's rate in both directions, rate / 8 · 2 bytes, from 1 MiB (at 4 Mbit/s) to 64 MiB (at
/// 268 Mbit/s; a link of 10 Gbit/s fills that in 27 ms). If all rings together exceed 80 MiB, all shrink by the same factor, but
/// none below 1 MiB: two links of 1 Gbit/s get 40 MiB each, which hold 0.3 seconds of one direction. 64 links of 100 Mbit/s ask for
/// 24 MiB each and get 1.25 MiB, which hold a tenth of a second of one direction.
///
/// Then the ring is cut into blocks. The largest power of two of which the ring holds 256 is the size of a block, as a slow link
/// uses up 250 blocks in a second whatever their size is: 8 KiB for a ring of 2.4 MiB, 4 KiB for one of 1 MiB. A block is never
/// smaller than a frame of the MTU or a page, and never larger than 128 KiB.
pub(super) fn ring_sizes(links: &[LinkSize], page_bytes: u32) -> Vec<RingSize> {
    let wanted = |link: &LinkSize| match link.rate_bps {
        Some(rate_bps) => (rate_bps / 4).clamp(LEAST_BYTES, MOST_BYTES),
        None => UNKNOWN_RATE_BYTES,
    };
    let all: u64 = links.iter().map(wanted).sum();
    let sizes = links.iter().map(|link| {
        let share = wanted(link) * ALL_BYTES.min(all) / all.max(1);
        ring_size(share.max(LEAST_BYTES), link.mtu, page_bytes)
    });
    sizes.collect()
}

/// Cuts a ring of `bytes` bytes into blocks.
fn ring_size(bytes: u64, mtu: u32, page_bytes: u32) -> RingSize {
    // Ethernet header and two VLAN tags.
    let frame = u64::from(mtu) + 14 + 8 + u64::from(OVERHEAD);
    let least = frame.max(page_bytes.into()).next_power_of_two();
    let fitting = 1 << (bytes / BLOCKS_OF_A_SECOND).max(1).ilog2();
    let block_bytes = u64::max(fitting, least).min(MOST_BLOCK);
    RingSize {
        block_bytes: block_bytes as u32,
        blocks: (bytes / block_bytes).max(LEAST_BLOCKS) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u32 = 1 << 10;

    fn alone(rate_bps: impl Into<Option<u64>>, mtu: u32) -> (u32, u32) {
        let link = LinkSize {
            rate_bps: rate_bps.into(),
            mtu,
        };
        let size = ring_sizes(&[link], 4096)[0];
        (size.block_bytes, size.blocks)
    }

    #[test]
    fn a_ring_holds_one_second_in_both_directions() {
        // 2.5 MB.
        assert_eq!(alone(10_000_000, 1500), (8 * KIB, 305));
        // 25 MB.
        assert_eq!(alone(100_000_000, 1500), (64 * KIB, 381));
    }

    #[test]
    fn a_slow_link_has_a_second_of_blocks_and_a_fast_one_64_mib() {
        for rate in [0, 1, 1_000_000] {
            assert_eq!(alone(rate, 1500), (4 * KIB, 256), "{rate}");
        }
        for rate in [1_000_000_000, 400_000_000_000, u64::MAX] {
            assert_eq!(alone(rate, 1500), (128 * KIB, 512), "{rate}");
        }
        assert_eq!(alone(None, 1500), (128 * KIB, 256));
    }

    #[test]
    fn a_block_holds_a_frame_of_the_mtu() {
        assert_eq!(alone(10_000_000, 9000), (16 * KIB, 152));
        assert_eq!(alone(1_000_000, 9000), (16 * KIB, 64));
        for mtu in (0..65_535 - 22).step_by(100) {
            let link = LinkSize {
                rate_bps: Some(1),
                mtu,
            };
            let size = ring_sizes(&[link], 4096)[0];
            assert!(size.longest_packet() >= mtu + 22, "{mtu}");
        }
    }

    #[test]
    fn rings_of_many_links_share_80_mib() {
        let link = LinkSize {
            rate_bps: Some(100_000_000),
            mtu: 1500,
        };
        let sizes = ring_sizes(&[link; 64], 4096);
        assert_eq!((sizes[0].block_bytes, sizes[0].blocks), (4 * KIB, 320));
        assert_eq!(ring_bytes(&[link; 64], 4096), [5 << 18; 64]);
        // Each has 1 MiB at least.
        assert_eq!(ring_bytes(&[link; 512], 4096), [1 << 20; 512]);
    }

    #[test]
    fn a_bundle_lasts_a_millisecond_and_fits_in_a_block() {
        let longest = |rate_bps, mtu, links| {
            let link = LinkSize { rate_bps, mtu };
            let all = longest_bundles(&vec![link; links], 4096);
            assert!(all.iter().all(|longest| *longest == all[0]));
            all[0]
        };
        // One millisecond.
        assert_eq!(longest(Some(100_000_000), 1500, 1), Some(12_500));
        assert_eq!(longest(Some(24_224_000), 1500, 1), Some(3_028));
        assert_eq!(longest(Some(24_216_000), 1500, 1), None);
        assert_eq!(longest(Some(100_000_000), 9000, 1), None);
        assert_eq!(longest(Some(0), 1500, 1), None);
        // About as long as Linux sends them.
        for rate_bps in [Some(1_000_000_000), Some(u64::MAX), None] {
            assert_eq!(longest(rate_bps, 1500, 1), Some(65_296), "{rate_bps:?}");
        }
        // Blocks of 64 KiB, 8 KiB, and 4 KiB.
        assert_eq!(longest(Some(1_000_000_000), 1500, 4), Some(32_528));
        assert_eq!(longest(Some(1_000_000_000), 1500, 40), Some(3_856));
        assert_eq!(longest(Some(1_000_000_000), 1500, 64), None);
        assert_eq!(longest(Some(1_000_000_000), 9000, 4), Some(32_528));
        assert_eq!(longest(Some(1_000_000_000), 9000, 40), None);
        // TCP's headers would take it all.
        assert_eq!(longest(Some(8_000_000), 100, 1), None);
        assert_eq!(longest(Some(8_192_000), 100, 1), Some(1_024));
    }

    #[test]
    fn a_page_of_64_kib_makes_a_block() {
        let link = LinkSize {
            rate_bps: Some(1),
            mtu: 1500,
        };
        let size = ring_sizes(&[link], 64 * KIB)[0];
        assert_eq!((size.block_bytes, size.blocks), (64 * KIB, 64));
    }
}
