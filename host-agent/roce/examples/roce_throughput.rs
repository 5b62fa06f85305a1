//! Cost of a gigabyte of WRITEs between two endpoints in one thread, and of its parts.
//!
//! `cargo run --release -p roce --example roce_throughput [rounds]`
//!
//! Batches of frames are copied from the sender's region to frame buffers, and from there to the receiver's region, as a
//! driver over rings does. "Copies and framing" does the same with bare copies and headers instead of the two state machines.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use roce::packet::{
    self, Address, BTH_LEN, Ecn, Header, MAX_FRAME_LEN, Mtu, NETWORK_LEN, Opcode, Packet, Route,
    Service,
};
use roce::{
    Access, Endpoint, EndpointConfig, InitAttributes, Local, Memory, Psn, QpConfig, Qpn, Remote,
    RtrAttributes, RtsAttributes, SendRequest, Work,
};

const MESSAGE: usize = 1 << 20;
/// Messages per round: a gigabyte.
const MESSAGES: u64 = 954;
const BATCH: usize = 32;

/// Name of a part, and a function that runs it for a number of messages.
type Part = (&'static str, fn(u64));

const MTU: usize = 4096;

fn main() {
    let rounds: u32 = std::env::args()
        .nth(1)
        .map_or(9, |word| word.parse().expect("a number of rounds"));
    let parts: [Part; 3] = [
        ("copies and framing", copies_and_framing),
        ("two ICRCs", two_crcs),
        ("WRITEs of 1 MiB", write),
    ];
    // Alternate the parts and take the best of each, since other processes share the machine.
    let mut best = [f64::MAX; 3];
    for _ in 0..rounds {
        for ((_, run), best) in parts.iter().zip(&mut best) {
            let begin = Instant::now();
            run(MESSAGES);
            let bytes = (MESSAGES * MESSAGE as u64) as f64;
            *best = best.min(begin.elapsed().as_secs_f64() * 1e9 / bytes);
        }
    }
    for ((name, _), seconds) in parts.iter().zip(best) {
        println!(
            "{name:<20} {seconds:.4} s per GB, {:.2} of copies and framing",
            seconds / best[0]
        );
    }
}

fn address(last: u8) -> Address {
    Address {
        mac: [2, 0, 0, 0, 0, last],
        ip: [10, 0, 0, last].into(),
    }
}

struct Side {
    endpoint: Endpoint,
    memory: Memory<Vec<u8>>,
    local: Local,
    qpn: Qpn,
}

fn write(messages: u64) {
    let mut sides = [1, 2].map(|last| {
        let mut endpoint = Endpoint::new(EndpointConfig::new(address(last), u64::from(last)));
        let mut memory = Memory::new(1, u64::from(last));
        let key = memory.register(vec![last; MESSAGE], 0, Access::ALL);
        Side {
            qpn: endpoint
                .create(QpConfig::new(Service::Reliable))
                .expect("one"),
            local: Local {
                key: key.expect("one"),
                address: 0,
                len: MESSAGE as u32,
            },
            endpoint,
            memory,
        }
    });
    for index in 0..2 {
        let rtr = RtrAttributes {
            peer: address(2 - index as u8),
            peer_qpn: sides[1 - index].qpn,
            psn: Psn::new(0),
            mtu: Mtu::B4096,
            max_reads: 16,
            rnr_timer: 12,
            dscp: 0,
        };
        let (init, rts) = (InitAttributes::default(), RtsAttributes::new(Psn::new(0)));
        let side = &mut sides[index];
        side.endpoint
            .connect(side.qpn, init, rtr, rts)
            .expect("in its states");
    }
    let remote = Remote {
        address: 0,
        rkey: sides[1].local.key.0,
    };
    let [sender, receiver] = &mut sides;
    let work = Work::Write {
        local: sender.local,
        remote,
        immediate: None,
    };
    let mut buffers = vec![vec![0; MAX_FRAME_LEN]; BATCH];
    let (mut posted, mut done) = (0, 0);
    let mut now_ns = 0;
    while done < messages {
        now_ns += 1000;
        while posted < messages && posted - done < 4 {
            let request = SendRequest {
                wr_id: posted,
                work,
                signaled: true,
                solicited: false,
            };
            let posting = sender
                .endpoint
                .post_send(sender.qpn, request, &sender.memory);
            posting.expect("a queue of 128");
            posted += 1;
        }
        pass(now_ns, sender, receiver, &mut buffers);
        pass(now_ns, receiver, sender, &mut buffers);
        while sender.endpoint.poll_completion().is_some() {
            done += 1;
        }
    }
    assert_eq!(sender.endpoint.counters().completer_retry_err, 0);
    black_box(receiver.memory.buffer(receiver.local.key));
}

fn pass(now_ns: u64, from: &mut Side, to: &mut Side, buffers: &mut [Vec<u8>]) {
    let mut lens = [0; BATCH];
    let mut count = 0;
    while count < buffers.len() {
        let len = from
            .endpoint
            .poll_transmit(now_ns, &from.memory, &mut buffers[count]);
        let Some(len) = len else { break };
        lens[count] = len;
        count += 1;
    }
    for (buffer, len) in buffers.iter().zip(&lens[..count]) {
        let handled = to
            .endpoint
            .handle_frame(now_ns, &mut to.memory, &buffer[..*len]);
        handled.expect("a frame for this side");
    }
}

const PAYLOAD_AT: usize = NETWORK_LEN + BTH_LEN;

fn route() -> Route {
    Route {
        from: address(1),
        to: address(2),
        source_port: 0xC000,
        dscp: 0,
        ecn: Ecn::Capable,
    }
}

fn copies_and_framing(messages: u64) {
    let source = vec![1_u8; MESSAGE];
    let mut target = vec![0_u8; MESSAGE];
    let mut buffers = vec![vec![0_u8; MAX_FRAME_LEN]; BATCH];
    for _ in 0..messages {
        for at in (0..MESSAGE).step_by(BATCH * MTU) {
            for (index, buffer) in buffers.iter_mut().enumerate() {
                let from = &source[at + index * MTU..][..MTU];
                packet::rebuild_network_headers(&mut buffer[..PAYLOAD_AT + MTU + 4], &route());
                buffer[PAYLOAD_AT..PAYLOAD_AT + MTU].copy_from_slice(black_box(from));
            }
            for (index, buffer) in buffers.iter().enumerate() {
                let to = &mut target[at + index * MTU..][..MTU];
                to.copy_from_slice(black_box(&buffer[PAYLOAD_AT..PAYLOAD_AT + MTU]));
            }
        }
        black_box(&target);
    }
}

/// Cost of `emit` and `parse` beyond headers, over frames in the cache.
fn two_crcs(messages: u64) {
    let middle = Opcode::from_bits(7).expect("WRITE MIDDLE");
    let header = Header::new(middle, 0xFFFF, Qpn::new(2), Psn::new(0));
    let mut buffer = vec![0; MAX_FRAME_LEN];
    let Ok(len) = packet::emit(&mut buffer, &route(), &header, MTU, |_| {
        Ok::<(), Infallible>(())
    });
    for _ in 0..messages * (MESSAGE / MTU) as u64 {
        let packet = Packet::parse(black_box(&buffer[..len]));
        black_box(packet.is_ok());
        let covered = &black_box(&buffer)[packet::ETHERNET_LEN..len - 4];
        black_box(packet::icrc(covered));
    }
}
