//! In the middle of an all-reduce a rank allocates nothing per packet, whether frames are lost or not.
//!
//! A separate test binary, since its allocator counts the allocations of all threads.

use aggregation::Mark;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Rank, RankEvent, RankFrame, Setup, Values};
use aggregation::rto::Retransmission;
use test_support::allocations;
use wire::{Flags, Kind, Packet};

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

const WINDOW: u32 = 64;
const CHUNKS: usize = 4000;
/// More than any exponent in this test.
const WANTED: u8 = 160;

/// Turns a frame into the switch's SUM after two ranks have contributed the same values.
fn sum(frame: &mut [u8]) {
    let mut packet = Packet::new_unchecked(frame);
    if let Some(word) = packet.payload_mut().first_chunk_mut() {
        *word = u32::from_be_bytes(*word).wrapping_mul(2).to_be_bytes();
    }
    packet.set_kind(Kind::Sum);
    packet.set_contributors(0b11);
    // A probe has no exponent; the switch has kept the requested one.
    if packet.flags().contains(Flags::PROBE) {
        packet.set_next_scale(WANTED);
    }
}

#[test]
fn a_packet_allocates_nothing() {
    let job = Job::new(JobConfig {
        job: JobId(1),
        workers: 2,
        window: WINDOW,
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    });
    let mut rank = Rank::new(Setup {
        dead_after_ns: Some(1_000_000_000),
        ..Setup::under_one_switch(job.unwrap(), WorkerId(0), Retransmission::default())
    });
    let values = (0..256 * CHUNKS).map(|value| value as f32).collect();
    rank.submit(Values::Floats(values)).unwrap();

    let (mut now_ns, mut frames, mut answers, mut before) = (0, 0, 0, None);
    let mut sent: Vec<Vec<u8>> = (0..=WINDOW).map(|_| Vec::with_capacity(2048)).collect();
    while answers < CHUNKS - WINDOW as usize {
        now_ns += 50_000;
        rank.handle_timeout(now_ns);
        let mut count = 0;
        while rank.poll_packet(now_ns, &mut sent[count]).is_some() {
            count += 1;
        }
        for frame in &mut sent[..count] {
            frames += 1;
            // Some frames are lost, on the way to the switch or back.
            if frames % 37 == 0 {
                continue;
            }
            sum(frame);
            let received = rank.handle_packet(now_ns, Mark::None, frame);
            let flags = Packet::new_checked(&frame[..]).unwrap().flags();
            let is_told = flags.contains(Flags::PROBE) && !flags.contains(Flags::SCALE_ONLY);
            let expected = match is_told {
                true => RankFrame::Told,
                false => RankFrame::Answer,
            };
            assert_eq!(received, expected);
            answers += usize::from(received == RankFrame::Answer);
        }
        // Buffers grow during the first windows only.
        if answers > CHUNKS / 4 && before.is_none() {
            before = Some(allocations::count());
        }
    }
    let allocated = allocations::count() - before.unwrap();
    assert_eq!(allocated, 0);
    assert!(rank.counters().probes > 20, "{:?}", rank.counters());
    assert!(!matches!(rank.poll_event(), Some(RankEvent::Failed(_))));
}
