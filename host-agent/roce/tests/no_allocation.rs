//! An endpoint allocates nothing while messages are transferred, also with lost packets.
//!
//! A separate test binary, since its allocator counts the allocations of all threads.

use roce::packet::{Address, MAX_FRAME_LEN, Mtu, Service};
use roce::{
    Access, Endpoint, EndpointConfig, InitAttributes, Key, Local, Memory, Psn, QpConfig, Qpn,
    ReceiveRequest, Remote, RtrAttributes, RtsAttributes, SendRequest, Status, Work,
};
use test_support::allocations;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

const LEN: u32 = 20_000;
/// One of this many frames is lost.
const LOST: u64 = 61;

struct Side {
    endpoint: Endpoint,
    memory: Memory<Vec<u8>>,
    qpn: Qpn,
    key: Key,
}

fn address(last: u8) -> Address {
    Address {
        mac: [2, 0, 0, 0, 0, last],
        ip: [10, 0, 0, last].into(),
    }
}

fn connected() -> [Side; 2] {
    let mut sides = [1, 2].map(|last| {
        let mut endpoint = Endpoint::new(EndpointConfig::new(address(last), u64::from(last)));
        let mut memory = Memory::new(1, u64::from(last));
        let bytes = vec![last; LEN as usize];
        Side {
            qpn: endpoint.create(QpConfig::new(Service::Reliable)).unwrap(),
            key: memory.register(bytes, 0, Access::ALL).unwrap(),
            endpoint,
            memory,
        }
    });
    for index in 0..2 {
        let rtr = RtrAttributes {
            peer: address(2 - index as u8),
            peer_qpn: sides[1 - index].qpn,
            psn: Psn::new(0),
            mtu: Mtu::B1024,
            max_reads: 16,
            rnr_timer: 1,
            dscp: 0,
        };
        let (init, rts) = (InitAttributes::default(), RtsAttributes::new(Psn::new(0)));
        let side = &mut sides[index];
        side.endpoint.connect(side.qpn, init, rtr, rts).unwrap();
    }
    sides
}

/// Posts a SEND, a WRITE and a READ, and runs until all have completed.
fn pass_messages(sides: &mut [Side; 2], now_ns: &mut u64, frames: &mut u64, buffer: &mut [u8]) {
    let remote = Remote {
        address: 0,
        rkey: sides[1].key.0,
    };
    let local = |side: &Side| Local {
        key: side.key,
        address: 0,
        len: LEN,
    };
    let receiver = &mut sides[1];
    let receive = ReceiveRequest {
        wr_id: 0,
        local: local(receiver),
    };
    let posted = receiver
        .endpoint
        .post_receive(receiver.qpn, receive, &receiver.memory);
    posted.unwrap();
    let sender = &mut sides[0];
    let local = local(sender);
    let immediate = None;
    let works = [
        Work::Send { local, immediate },
        Work::Write {
            local,
            remote,
            immediate,
        },
        Work::Read { local, remote },
    ];
    for work in works {
        let request = SendRequest {
            wr_id: 0,
            work,
            signaled: true,
            solicited: false,
        };
        let posted = sender
            .endpoint
            .post_send(sender.qpn, request, &sender.memory);
        posted.unwrap();
    }
    let mut done = 0;
    while done < works.len() {
        let mut idle = true;
        for from in 0..2 {
            let Side {
                endpoint, memory, ..
            } = &mut sides[from];
            let Some(len) = endpoint.poll_transmit(*now_ns, memory, buffer) else {
                continue;
            };
            idle = false;
            *frames += 1;
            if frames.is_multiple_of(LOST) {
                continue;
            }
            let to = &mut sides[1 - from];
            let handled = to
                .endpoint
                .handle_frame(*now_ns, &mut to.memory, &buffer[..len]);
            handled.unwrap();
        }
        *now_ns += 1000;
        if idle {
            let timeouts = sides.iter().filter_map(|side| side.endpoint.poll_timeout());
            *now_ns = timeouts.min().unwrap().max(*now_ns);
        }
        for side in sides.iter_mut() {
            side.endpoint.handle_timeout(*now_ns);
        }
        while let Some(completion) = sides[0].endpoint.poll_completion() {
            assert_eq!(completion.status, Status::Success);
            done += 1;
        }
        while sides[1].endpoint.poll_completion().is_some() {}
    }
}

#[test]
fn messages_allocate_nothing() {
    let mut sides = connected();
    let mut buffer = vec![0; MAX_FRAME_LEN];
    let (mut now_ns, mut frames) = (0, 0);
    let mut pass = || {
        for _ in 0..100 {
            pass_messages(&mut sides, &mut now_ns, &mut frames, &mut buffer);
        }
    };
    // The first pass lets queues grow to their final size.
    pass();
    let before = allocations::count();
    pass();
    assert_eq!(allocations::count() - before, 0);
    let retries = sides[0].endpoint.counters().completer_retry_err;
    assert!(retries > 100, "{retries}: packets were lost");
}
