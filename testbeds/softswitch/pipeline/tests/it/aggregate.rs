//! Runs p4src's Aggregate: eight workers, 256 values per packet, or 2,048.

use crate::support::aggregate::*;
use parser_gen::{Arch, FrameValues};
use pipeline::{Config, DropReason, Switch};

fn send(switch: &mut Switch, worker: u32, frame: &[u8]) -> Option<Vec<u8>> {
    switch.handle_packet(0, worker, frame);
    let sent = switch.poll_transmit();
    assert!(switch.poll_transmit().is_none());
    sent.map(|t| {
        assert_eq!(t.port, SERVER_PORT);
        t.bytes
    })
}

fn sum(chunk: u32) -> Vec<u32> {
    sum_of(VALUES, chunk)
}

fn sum_of(count: usize, chunk: u32) -> Vec<u32> {
    (0..WORKERS)
        .map(|w| values_of(count, w, chunk))
        .reduce(|a, b| a.iter().zip(b).map(|(a, b)| a.wrapping_add(b)).collect())
        .unwrap()
}

#[test]
fn eight_workers_are_summed() {
    let mut switch = switch(Config::default());
    // Three passes over the window: both versions of every slot, and one that is replaced.
    for chunk in 0..3 * WINDOW {
        for i in 0..WORKERS {
            let worker = (i + chunk) % WORKERS;
            let out = send(
                &mut switch,
                worker,
                &update(worker, chunk, &values(worker, chunk)),
            );
            assert_eq!(out.is_some(), i == WORKERS - 1, "chunk {chunk}, {i}");
            let Some(out) = out else { continue };
            let answer = read(&out);
            assert_eq!(
                (answer.kind, answer.chunk, answer.contributors),
                (SUM, chunk, 0xff)
            );
            assert_eq!(answer.flags & !VERSION_FLAG, 0);
            assert_eq!(answer.next_scale, 127, "the largest");
            assert_eq!(answer.values, sum(chunk), "chunk {chunk}");
            assert_eq!(out[40..42], [0, 0], "no UDP checksum");
        }
    }
    assert_eq!(
        switch.stats().dropped(DropReason::Ingress),
        u64::from(3 * WINDOW * (WORKERS - 1))
    );
    let cell = 2 * 5 + 1;
    let stored = switch
        .register_read("SwitchIngress.aggregate.sum3.s4.sums", cell)
        .unwrap();
    assert_eq!(stored, [u128::from(sum(WINDOW + 5)[3 * 32 + 4])]);
}

/// Each value must come out at its position, and must be summed in its own register.
#[test]
fn frames_of_2048_values_are_summed() {
    for arch in [Arch::Psa, Arch::V1model] {
        let mut switch = switch_of(arch, FrameValues::V2048, Config::default());
        for chunk in [0, 1, WINDOW, 2 * WINDOW] {
            for worker in 0..WORKERS {
                let mut frame = update(worker, chunk, &values_of(2048, worker, chunk));
                assert_eq!(frame.len(), 14 + 8244, "an IP packet of no more than 9,000");
                // Some frames lack a byte, or have a count that this program does not sum.
                frame.pop();
                assert!(send(&mut switch, worker, &frame).is_none());
                let few = update(worker, chunk, &values(worker, chunk));
                assert!(send(&mut switch, worker, &few).is_none());
                let whole = update(worker, chunk, &values_of(2048, worker, chunk));
                let out = send(&mut switch, worker, &whole);
                assert_eq!(out.is_some(), worker == WORKERS - 1, "chunk {chunk}");
                let Some(out) = out else { continue };
                let answer = read(&out);
                assert_eq!((answer.kind, answer.contributors), (SUM, 0xff));
                assert_eq!(answer.values, sum_of(2048, chunk), "chunk {chunk}");
            }
        }
        let stored = switch
            .register_read("SwitchIngress.aggregate.sum63.s31.sums", 2)
            .unwrap();
        assert_eq!(stored, [u128::from(sum_of(2048, 1)[2047])]);
    }
}

#[test]
fn a_duplicate_changes_nothing_and_repeats_a_complete_result() {
    let mut switch = switch(Config::default());
    for worker in 0..WORKERS - 1 {
        for _ in 0..2 {
            assert!(send(&mut switch, worker, &update(worker, 3, &values(worker, 3))).is_none());
        }
    }
    let last = WORKERS - 1;
    let done = send(&mut switch, last, &update(last, 3, &values(last, 3))).unwrap();
    let again = send(&mut switch, 2, &update(2, 3, &values(2, 3))).unwrap();
    assert_eq!(read(&done).values, sum(3));
    assert_eq!(read(&again).values, sum(3));
    assert_eq!(read(&again).flags & AGAIN, AGAIN);
    // A frame of an older chunk in the same cell, two windows late.
    for worker in 0..WORKERS {
        send(
            &mut switch,
            worker,
            &update(worker, 3 + 2 * WINDOW, &values(worker, 3)),
        );
    }
    assert!(
        send(&mut switch, 0, &update(0, 3, &values(0, 3))).is_none(),
        "stale"
    );
}

#[test]
fn frames_cut_anywhere_stop_nothing() {
    let mut switch = switch(Config::default());
    let frame = update(1, 0, &values(1, 0));
    for n in 0..frame.len() {
        switch.handle_packet(0, 1, &frame[..n]);
        while switch.poll_transmit().is_some() {}
    }
    assert_eq!(
        switch.register_read("SwitchIngress.aggregate.bitmap.bitmaps", 0),
        Ok(vec![0.into()])
    );
    let switch = std::cell::RefCell::new(switch);
    proptest::proptest!(|(port in 0u32..9, at in 0usize..62, byte: u8, packet in proptest::collection::vec(proptest::num::u8::ANY, 0..100))| {
        let mut switch = switch.borrow_mut();
        let mut broken = frame.clone();
        broken[at] = byte;
        broken.truncate(broken.len() - packet.len());
        switch.handle_packet(0, port, &broken);
        switch.handle_packet(0, port, &packet);
        while switch.poll_transmit().is_some() {}
    });
}

#[test]
fn the_same_packets_give_the_same_bytes() {
    let run = || {
        let mut switch = switch(Config::default());
        let mut all = Vec::new();
        for chunk in 0..4 {
            for worker in 0..WORKERS {
                all.extend(send(
                    &mut switch,
                    worker,
                    &update(worker, chunk, &values(worker, chunk)),
                ));
            }
        }
        all
    };
    assert_eq!(run(), run());
}
