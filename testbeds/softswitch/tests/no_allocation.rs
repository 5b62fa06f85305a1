//! In steady state the packet loop must not allocate anything for a frame, with or without sleeping in between.
//!
//! A separate program, because its allocator counts the allocations of all threads.

use nix::sys::eventfd::{EfdFlags, EventFd};
use p4lang::Options;
use softswitch::driver;
use softswitch::p4::P4Loader;
use softswitch::ports::{Frames, Received, Sink};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use test_support::allocations;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

const PROGRAM: &str = "
#include <core.p4>
#include <v1model.p4>
header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_h ethernet; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    action forward(bit<9> port) { s.egress_spec = port; }
    table macs {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; }
        const entries = { 0x020202020202: forward(2); }
    }
    apply { macs.apply(); }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) { apply {} }
control U(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
";

/// A port that delivers as many frames as permitted, and counts the frames that are sent.
struct Counter {
    wanted: Arc<AtomicU64>,
    given: u64,
    sent: Arc<AtomicU64>,
    more: Arc<EventFd>,
}

impl Frames for Counter {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let _ = self.more.read();
        let left = self.wanted.load(Ordering::Acquire) - self.given;
        let frames = budget.min(usize::try_from(left).unwrap_or(usize::MAX));
        for _ in 0..frames {
            sink.arrived();
            sink.frame(&[2; 60], 0);
        }
        self.given += frames as u64;
        if (frames as u64) < left {
            self.more.write(1)?;
        }
        Ok(Received { frames, errors: 0 })
    }

    fn send(&mut self, _: &[u8]) -> io::Result<()> {
        self.sent.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<usize> {
        Ok(0)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.more.as_fd())
    }

    fn name(&self) -> &str {
        "counter"
    }
}

#[test]
fn a_frame_costs_no_allocation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("l2.p4");
    std::fs::write(&file, PROGRAM).unwrap();
    let (program, _) = P4Loader::default()
        .load_file(&file, &Options::default())
        .unwrap_or_else(|error| panic!("{error}"));

    let (wanted, sent) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let event = || Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap());
    let port = |more: &Arc<EventFd>| -> Box<dyn Frames> {
        Box::new(Counter {
            wanted: Arc::clone(&wanted),
            given: 0,
            sent: Arc::clone(&sent),
            more: Arc::clone(more),
        })
    };
    let (more, silent) = (event(), event());
    let running = driver::start(vec![(1, port(&more)), (2, port(&silent))], 510).unwrap();
    running
        .handle
        .run_blocking(move |core| {
            core.save(program.dataplane);
            core.commit();
        })
        .unwrap();
    let mut total = 0;
    let mut send = |frames: u64| {
        total += frames;
        wanted.store(total, Ordering::Release);
        more.write(1).unwrap();
        while sent.load(Ordering::Acquire) < total {
            std::thread::yield_now();
        }
    };
    // Buffers and queues grow to their final size.
    send(1000);
    let before = allocations::count();
    // One large batch, then single frames, with sleep in between.
    send(10_000);
    for _ in 0..200 {
        send(1);
    }
    let allocations = allocations::count() - before;
    assert_eq!(allocations, 0, "for 10,200 frames");
    running.handle.run_blocking(|core| core.stop()).unwrap();
    running.thread.join().unwrap();
}
