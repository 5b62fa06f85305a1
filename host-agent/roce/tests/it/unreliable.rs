//! UC under loss: a message arrives completely or is discarded, and the next one is unaffected.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use roce::packet::{Mtu, Opcode, Packet, Service};
use roce::{Local, Work, WorkKind};

use crate::common::{Faults, Network, Rng, Setup, TapAction, local, remote};
use test_support::seeds;

/// Each message has its own position, which distinguishes written from unwritten messages.
fn run(seed: u64, faults: Faults) {
    let mut rng = Rng(seed);
    let mtu = Mtu::B256;
    let mut network = Network::new(rng.next(), 2);
    let one_in = 1 + rng.below(30);
    let messages = 20 + rng.below(20) as usize;
    let longest = 6 * mtu.bytes();
    let mut data = vec![0; messages * longest];
    rng.fill(&mut data);
    let source = network.register(0, data.clone());
    let target = network.register(1, vec![0xEE; messages * longest]);
    let inbox = network.register(1, vec![0xEE; messages * longest]);
    let [a, b] = network.connect(Setup {
        service: Service::Unreliable,
        mtu,
        ..Setup::default()
    });
    for index in 0..messages {
        network.receive(1, b, index as u64, local(inbox, index * longest, longest));
    }
    // The messages that lost a packet; counting packets is sufficient, since UC sends each once.
    let lens: Vec<usize> = (0..messages)
        .map(|_| rng.below(longest as u64 + 1) as usize)
        .collect();
    let message_of: Vec<usize> = lens
        .iter()
        .enumerate()
        .flat_map(|(index, len)| vec![index; len.div_ceil(mtu.bytes()).max(1)])
        .collect();
    let lost: Rc<RefCell<BTreeSet<usize>>> = Rc::default();
    network.tap = Box::new({
        let (lost, mut sent, mut rng) = (Rc::clone(&lost), 0, Rng(seed ^ 1));
        move |_, _, _: &Packet<'_>| {
            sent += 1;
            if one_in > 1 && rng.below(one_in) == 0 {
                lost.borrow_mut().insert(message_of[sent - 1]);
                return TapAction::Drop;
            }
            TapAction::Pass
        }
    });
    network.faults = faults;
    let kinds: Vec<bool> = (0..messages).map(|_| rng.below(2) == 0).collect();
    for index in 0..messages {
        let from = local(source, index * longest, lens[index]);
        let immediate = Some((index as u32).to_be_bytes());
        let remote = remote(target, index * longest);
        let work = match kinds[index] {
            true => Work::Send {
                local: from,
                immediate,
            },
            false => Work::Write {
                local: from,
                remote,
                immediate,
            },
        };
        network.send(0, a, index as u64, work);
    }
    network.run();
    assert_eq!(network.completions(0).len(), messages, "sent is done");

    let source_of = |index: usize| &data[index * longest..][..lens[index]];
    let mut arrived = BTreeSet::new();
    for completion in network.completions(1) {
        let index = u32::from_be_bytes(completion.immediate.unwrap()) as usize;
        assert!(arrived.insert(index), "seed {seed}: {index} came twice");
        assert_eq!(completion.byte_len as usize, lens[index], "seed {seed}");
        let (kind, bytes) = match kinds[index] {
            true => {
                let place = completion.wr_id as usize * longest;
                (WorkKind::Receive, &network.bytes(1, inbox)[place..])
            }
            false => (
                WorkKind::ReceiveWriteImmediate,
                &network.bytes(1, target)[index * longest..],
            ),
        };
        assert_eq!(completion.kind, kind, "seed {seed}");
        assert!(
            bytes[..lens[index]] == *source_of(index),
            "seed {seed}: {index}"
        );
    }
    if faults.late == 0 && faults.corrupt == 0 {
        let whole: BTreeSet<usize> = (0..messages)
            .filter(|index| !lost.borrow().contains(index))
            .collect();
        assert_eq!(
            arrived, whole,
            "seed {seed}: what is whole arrives, from the next beginning on"
        );
    }
    for (index, &len) in lens.iter().enumerate() {
        let target = &network.bytes(1, target)[index * longest..][..longest];
        let (inside, outside) = target.split_at(len);
        assert!(
            outside.iter().all(|&byte| byte == 0xEE),
            "seed {seed}: beyond {index}"
        );
        let parts = inside
            .chunks(mtu.bytes())
            .zip(source_of(index).chunks(mtu.bytes()));
        for (written, right) in parts {
            let untouched = written.iter().all(|&byte| byte == 0xEE);
            assert!(
                untouched || written == right,
                "seed {seed}: wrong bytes in {index}"
            );
        }
    }
}

#[test]
fn only_whole_messages_arrive() {
    for seed in seeds(0..300) {
        run(seed, Faults::default());
    }
}

#[test]
fn no_message_arrives_twice_or_wrong_under_faults() {
    let faults = Faults {
        loss: 0,
        copy: 100_000,
        late: 200_000,
        late_ns: 20_000,
        corrupt: 20_000,
    };
    for seed in seeds(1000..1300) {
        run(seed, faults);
    }
}

#[test]
fn without_a_receive_a_message_is_dropped_and_the_next_is_not() {
    let mut network = Network::new(1, 2);
    let source = network.register(0, vec![5; 3000]);
    let inbox = network.register(1, vec![0; 3000]);
    let [a, b] = network.connect(Setup {
        service: Service::Unreliable,
        ..Setup::default()
    });
    let send = |immediate| Work::Send {
        local: local(source, 0, 3000),
        immediate,
    };
    network.send(0, a, 0, send(Some([0; 4])));
    network.run();
    assert_eq!(network.nodes[1].endpoint.counters().uc_dropped_pkts, 3);
    network.receive(1, b, 0, local(inbox, 0, 3000));
    network.send(0, a, 1, send(Some([1; 4])));
    network.run();
    let completions = network.completions(1);
    assert_eq!(completions.len(), 1);
    assert_eq!(completions[0].immediate, Some([1; 4]));
    assert_eq!(network.bytes(1, inbox), [5; 3000]);
}

/// After a gap, the first packets of a message are dropped by their position; a distant new beginning is accepted.
#[test]
fn a_far_beginning_is_taken_and_a_late_copy_is_not() {
    let mut network = Network::new(1, 2);
    let source = network.register(0, vec![5; 256]);
    let target = network.register(1, vec![0; 256]);
    let setup = Setup {
        service: Service::Unreliable,
        mtu: Mtu::B256,
        ..Setup::default()
    };
    let [a, b] = network.connect(setup);
    let none = Local {
        len: 0,
        ..local(target, 0, 0)
    };
    for wr_id in 0..3 {
        network.receive(1, b, wr_id, none);
    }
    let work = Work::Write {
        local: local(source, 0, 256),
        remote: remote(target, 0),
        immediate: Some([0; 4]),
    };
    let copies = Faults {
        copy: 1_000_000,
        late: 1_000_000,
        late_ns: 5000,
        ..Faults::default()
    };
    network.faults = copies;
    network.send(0, a, 0, work);
    network.run();
    assert_eq!(network.completions(1).len(), 1);
    // 10,000 packets are lost at once.
    network.faults = Faults {
        loss: 1_000_000,
        ..Faults::default()
    };
    for _ in 0..100 {
        for wr_id in 0..100 {
            network.send(0, a, wr_id, work);
        }
        network.run();
        network.completions(0);
    }
    network.faults = Faults::default();
    network.tap = Box::new(|_, _, packet: &Packet<'_>| {
        assert!(matches!(packet.header().opcode, Opcode::Data { .. }));
        TapAction::Pass
    });
    network.send(0, a, 0, work);
    network.run();
    assert_eq!(network.completions(1).len(), 1);
}
