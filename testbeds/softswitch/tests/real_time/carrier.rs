//! Members of a selector's group follow the carrier of the ports that they watch.

use crate::support::veth::*;
use crate::support::*;
use p4lang::runtime::ActionCall;
use pipeline::{GroupMember, Indirect};
use softswitch::instance::{Config, start};
use softswitch::ports::{Frames, Io};
use std::sync::Arc;
use std::time::Instant;

/// Number of flows, distinguished by source: the selector distributes them over its members.
const FLOWS: u8 = 16;

fn flow(number: u8, round: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    (frame[11], frame[12], frame[14]) = (number, 8, round);
    frame
}

/// Sends a frame of each flow, in rounds, until those of one round arrive as `wanted`.
fn spread(
    from: &mut Box<dyn Frames>,
    to: &mut [Box<dyn Frames>],
    wanted: impl Fn(&[usize]) -> bool,
) {
    let start = Instant::now();
    for round in (0..=u8::MAX).cycle() {
        for number in 0..FLOWS {
            assert_eq!(send(from, &flow(number, round)), 0);
        }
        // If a member whose port is down is picked, its flows are lost, and the round is never complete.
        let (mut seen, began) = (vec![0; to.len()], Instant::now());
        while seen.iter().sum::<usize>() < usize::from(FLOWS) && began.elapsed() < TIMEOUT / 20 {
            for (port, seen) in to.iter_mut().zip(&mut seen) {
                let mut count = |frame: &[u8]| {
                    *seen += usize::from((frame[12], frame[14]) == (8, round));
                };
                port.receive(256, &mut count).unwrap();
            }
            std::thread::yield_now();
        }
        if wanted(&seen) {
            return;
        }
        assert!(start.elapsed() < TIMEOUT, "{seen:?}");
    }
}

#[test]
fn members_follow_the_carrier_of_the_port_they_watch() {
    if !in_namespace("members_follow_the_carrier_of_the_port_they_watch") {
        return;
    }
    ip("link set lo up");
    for (switch, host) in [("s1", "h1"), ("s2", "h2"), ("s3", "h3")] {
        veth(switch, host);
    }
    let config = Config {
        device_id: DEVICE,
        cpu_port: CPU_PORT,
        ports: [(1, "s1"), (2, "s2"), (3, "s3")]
            .map(|(port, name)| (port, open(name, Io::Auto)))
            .into(),
        loader: Arc::new(loader()),
        program: None,
        grpc: "127.0.0.1:0".parse().unwrap(),
    };
    // No carrier before the switch starts.
    ip("link set h2 down");
    let instance = start(config).unwrap();
    instance
        .handle()
        .run_blocking(|core| {
            core.save(program().dataplane);
            core.commit();
            let (_, switch) = core.control().unwrap();
            let profile = "MyIngress.balance";
            let members = [2, 3].map(|port| {
                let call = ActionCall {
                    name: "MyIngress.send".into(),
                    params: vec![("port".into(), u128::from(port).into())],
                };
                switch.insert_member(profile, port, &call).unwrap();
                GroupMember {
                    member: port,
                    weight: 1,
                    watch_port: Some(port),
                }
            });
            switch.insert_group(profile, 1, &members).unwrap();
            let here = p4lang::runtime::TableEntry {
                table: "MyIngress.balanced".into(),
                key: vec![p4lang::runtime::FieldMatch {
                    field: "type".into(),
                    value: p4lang::runtime::Match::exact(0x800),
                }],
                priority: 0,
                action: ActionCall {
                    name: String::new(),
                    params: Vec::new(),
                },
            };
            switch.insert_indirect(&here, Indirect::Group(1)).unwrap();
        })
        .unwrap();
    let mut from = open("h1", Io::Auto);
    let mut to = Vec::from(["h2", "h3"].map(|name| open(name, Io::Auto)));
    let all = usize::from(FLOWS);
    spread(&mut from, &mut to, |seen| seen == [0, all]);
    let both = |seen: &[usize]| seen[0] > 0 && seen[1] > 0 && seen[0] + seen[1] == all;
    ip("link set h2 up");
    spread(&mut from, &mut to, both);
    ip("link set h3 down");
    spread(&mut from, &mut to, |seen| seen == [all, 0]);
    // The switch's end of the link.
    ip("link set h3 up");
    spread(&mut from, &mut to, both);
    ip("link set s3 down");
    spread(&mut from, &mut to, |seen| seen == [all, 0]);
    ip("link del s3");
    to.truncate(1);
    spread(&mut from, &mut to, |seen| seen == [all]);
    instance.stop().unwrap();
}
