//! Runs p4src's TNA program with the tests of aggregate.rs for the PSA program.

use crate::support::aggregate::*;
use parser_gen::Arch;
use pipeline::{Config, DropReason, Switch};

fn tna() -> Switch {
    switch_for(Arch::Tna, Config::default())
}

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
    let of = |i: usize| (0..WORKERS).map(move |w| values(w, chunk)[i]);
    (0..VALUES)
        .map(|i| of(i).fold(0, u32::wrapping_add))
        .collect()
}

#[test]
fn eight_workers_are_summed() {
    let mut switch = tna();
    for chunk in 0..3 * WINDOW {
        for i in 0..WORKERS {
            let worker = (i + chunk) % WORKERS;
            let frame = update(worker, chunk, &values(worker, chunk));
            let out = send(&mut switch, worker, &frame);
            assert_eq!(out.is_some(), i == WORKERS - 1, "chunk {chunk}, {i}");
            let Some(out) = out else { continue };
            let answer = read(&out);
            let shape = (answer.kind, answer.chunk, answer.contributors);
            assert_eq!(shape, (SUM, chunk, 0xff));
            assert_eq!(answer.next_scale, 127, "the largest");
            assert_eq!(answer.values, sum(chunk), "chunk {chunk}");
        }
    }
    let dropped = u64::from(3 * WINDOW * (WORKERS - 1));
    assert_eq!(switch.stats().dropped(DropReason::Ingress), dropped);
    assert_eq!(switch.stats().register_conflicts, 0);
    let stored = switch.register_read("SwitchIngress.aggregate.sum3.s4.sums", 2 * 5 + 1);
    assert_eq!(
        stored.unwrap(),
        [u128::from(sum(WINDOW + 5)[3 * 32 + 4])],
        "version 1 of slot 5"
    );
}

#[test]
fn duplicates_and_stale_frames_change_nothing() {
    let mut switch = tna();
    for worker in 0..WORKERS - 1 {
        for _ in 0..2 {
            let frame = update(worker, 3, &values(worker, 3));
            assert!(send(&mut switch, worker, &frame).is_none());
        }
    }
    let last = WORKERS - 1;
    let done = send(&mut switch, last, &update(last, 3, &values(last, 3))).unwrap();
    let again = send(&mut switch, 2, &update(2, 3, &values(2, 3))).unwrap();
    assert_eq!(read(&done).values, sum(3));
    assert_eq!(read(&again).values, sum(3));
    assert_eq!(read(&again).flags & AGAIN, AGAIN);
    for worker in 0..WORKERS {
        let late = update(worker, 3 + 2 * WINDOW, &values(worker, 3));
        send(&mut switch, worker, &late);
    }
    let stale = update(0, 3, &values(0, 3));
    assert!(send(&mut switch, 0, &stale).is_none());
}

#[test]
fn every_answer_equals_that_of_the_psa_program() {
    let run = |arch| {
        let mut switch = switch_for(arch, Config::default());
        let mut all = Vec::new();
        for step in 0..600u32 {
            // Losses, duplicates and old versions, in a fixed sequence.
            let n = step.wrapping_mul(0x9e37_79b9) >> 16;
            let (worker, chunk) = (n % WORKERS, step / 40 + n / 8 % 3);
            let frame = update(worker, chunk, &values(worker, chunk));
            switch.handle_packet(u64::from(step), worker, &frame);
            all.extend(std::iter::from_fn(|| switch.poll_transmit()).map(|t| (t.port, t.bytes)));
        }
        assert!(!all.is_empty());
        all
    };
    assert!(run(Arch::Psa) == run(Arch::Tna));
}

#[test]
fn frames_cut_anywhere_stop_nothing() {
    let mut switch = tna();
    let frame = update(1, 0, &values(1, 0));
    for n in 0..frame.len() {
        switch.handle_packet(0, 1, &frame[..n]);
        while switch.poll_transmit().is_some() {}
    }
    let name = "SwitchIngress.aggregate.bitmap.bitmaps";
    assert_eq!(switch.register_read(name, 0), Ok(vec![0.into(), 0.into()]));
}
