//! Tests the prototype `ngaa.p4` of another project: the packet that completes a slot carries the sum to the parameter server.
//!
//! The test includes the prototype's defects: a duplicate counts like another worker's packet, and only an ACK frees a slot.

use super::frames::{Ip, Mac, ethernet, ipv4, number};
use super::{ClockedSwitch, load, value};
use p4lang::runtime::Match;
use pipeline::Executor;
use std::path::Path;

const PROGRAM: &[&str] = &[
    "src/p4/p4src/ngaa.p4",
    "p4switch/p4src/ngaa.p4",
    "p4src/ngaa.p4",
    "ngaa.p4",
];
const WORKERS: u32 = 4;
const SERVER: Ip = [172, 16, 170, 9];
const SERVER_PORT: u32 = 20;
const PROTOCOL: u8 = 0x12;

/// Fields of the prototype's aggregation header that a test sets.
#[derive(Clone, Copy)]
struct Header {
    degree: u8,
    ack: bool,
    collision: bool,
    index: u32,
    switch: u8,
    fragment: u32,
}

impl Header {
    fn new(index: u32, fragment: u32) -> Header {
        Header {
            degree: WORKERS as u8,
            ack: false,
            collision: false,
            index,
            switch: 0,
            fragment,
        }
    }
}

fn ip(worker: u32) -> Ip {
    [172, 16, 170, 1 + worker as u8]
}

fn mac(worker: u32) -> Mac {
    [2, 0, 0, 0, 1, worker as u8]
}

fn packet(from: u32, to: Ip, header: Header, values: &[u32]) -> Vec<u8> {
    let mut body = (1u32 << from).to_be_bytes().to_vec();
    body.push(header.degree);
    body.push(u8::from(header.ack) << 6 | u8::from(header.collision) << 5);
    body.extend(header.index.to_be_bytes());
    body.push(header.switch);
    body.extend(header.fragment.to_be_bytes());
    body.extend(values.iter().flat_map(|v| v.to_be_bytes()));
    ethernet(
        [2, 0, 0, 0, 2, 0],
        mac(from),
        0x0800,
        &ipv4(ip(from), to, PROTOCOL, &body),
    )
}

fn values(worker: u32, chunk: u32) -> Vec<u32> {
    (0..32).map(|i| value(worker, chunk, i)).collect()
}

fn sum(of: &[Vec<u32>]) -> Vec<u32> {
    let at = |i: usize| of.iter().map(move |v| v[i]);
    (0..32).map(|i| at(i).fold(0, u32::wrapping_add)).collect()
}

pub fn test(dir: &Path, executor: Executor) -> Result<(), String> {
    let mut device = ClockedSwitch::new(load(dir, PROGRAM, executor)?);
    let exact = |bytes: &[u8]| Match::exact(number(bytes));
    device.entry(
        "Ingress.switch_check",
        &[("hdr.ngaa.switch_id", exact(&[0]))],
        0,
        "Ingress.set_agg",
        &[],
    )?;
    let workers = (0..WORKERS).map(|w| (ip(w), w));
    for (to, port) in workers.chain([(SERVER, SERVER_PORT)]) {
        device.entry(
            "Ingress.ipRoute",
            &[("hdr.ipv4.dst_addr", exact(&to))],
            0,
            "Ingress.ipv4_forward",
            &[("dst_addr", 0), ("port", port.into())],
        )?;
    }
    aggregation(&mut device)?;
    collision_and_ack(&mut device)?;
    duplicate(&mut device)?;
    others(&mut device)?;
    match device.switch.stats().register_conflicts {
        0 => Ok(()),
        n => Err(format!("{n} registers executed twice in one pass")),
    }
}

/// Checks that the last packet of each slot carries the sum, and that the other packets are dropped.
fn aggregation(device: &mut ClockedSwitch) -> Result<(), String> {
    for chunk in 0..64u32 {
        let header = Header::new(chunk * 255, chunk + 1);
        let sent: Vec<Vec<u32>> = (0..WORKERS).map(|w| values(w, chunk)).collect();
        for i in 0..WORKERS {
            let worker = (i + chunk) % WORKERS;
            let frame = packet(worker, SERVER, header, &sent[worker as usize]);
            let whole = packet(worker, SERVER, header, &sum(&sent));
            let expected: &[_] = if i + 1 == WORKERS {
                &[(SERVER_PORT, whole)]
            } else {
                &[]
            };
            let what = format!("chunk {chunk}, worker {worker}");
            device.expect(&what, worker, &frame, expected)?;
        }
    }
    Ok(())
}

/// Checks that a second fragment in an occupied slot is forwarded unsummed with a mark, and that a passing ACK frees the slot.
fn collision_and_ack(device: &mut ClockedSwitch) -> Result<(), String> {
    let (taken, other) = (Header::new(7, 1000), Header::new(7, 1001));
    device.expect(
        "takes a slot",
        0,
        &packet(0, SERVER, taken, &values(0, 1)),
        &[],
    )?;
    let frame = packet(1, SERVER, other, &values(1, 2));
    let marked = Header {
        collision: true,
        ..other
    };
    let on = packet(1, SERVER, marked, &values(1, 2));
    device.expect("collides", 1, &frame, &[(SERVER_PORT, on)])?;
    for worker in 1..WORKERS - 1 {
        let frame = packet(worker, SERVER, taken, &values(worker, 1));
        device.expect("goes on after a collision", worker, &frame, &[])?;
    }
    let last = WORKERS - 1;
    let sent: Vec<Vec<u32>> = (0..WORKERS).map(|w| values(w, 1)).collect();
    let frame = packet(last, SERVER, taken, &sent[last as usize]);
    let whole = packet(last, SERVER, taken, &sum(&sent));
    device.expect("the sum is unharmed", last, &frame, &[(SERVER_PORT, whole)])?;
    let ack = Header { ack: true, ..taken };
    let frame = packet(9, ip(2), ack, &values(9, 9));
    device.expect("the ACK passes", SERVER_PORT, &frame, &[(2, frame.clone())])?;
    let frame = packet(1, SERVER, other, &values(1, 2));
    device.expect("the slot is free again", 1, &frame, &[])
}

/// Checks that completion is a counter: a duplicate completes the slot like another worker's packet.
fn duplicate(device: &mut ClockedSwitch) -> Result<(), String> {
    let header = Header::new(100, 2000);
    let sent = [values(0, 5), values(1, 5), values(2, 5), values(2, 5)];
    for (i, (worker, values)) in [0, 1, 2].into_iter().zip(&sent).enumerate() {
        let frame = packet(worker, SERVER, header, values);
        device.expect(&format!("packet {i}"), worker, &frame, &[])?;
    }
    let frame = packet(2, SERVER, header, &sent[3]);
    let whole = packet(2, SERVER, header, &sum(&sent));
    device.expect("the duplicate", 2, &frame, &[(SERVER_PORT, whole)])
}

/// Checks that packets for other switches and of other protocols are routed, and packets without a route dropped.
fn others(device: &mut ClockedSwitch) -> Result<(), String> {
    let elsewhere = Header {
        switch: 3,
        ..Header::new(100, 2000)
    };
    let frame = packet(0, SERVER, elsewhere, &values(0, 6));
    device.expect(
        "another switch's",
        0,
        &frame,
        &[(SERVER_PORT, frame.clone())],
    )?;
    let plain = |to: Ip| ethernet([2; 6], mac(0), 0x0800, &ipv4(ip(0), to, 17, &[1, 2, 3, 4]));
    let frame = plain(ip(3));
    device.expect("plain IPv4", 0, &frame, &[(3, frame.clone())])?;
    device.expect("no route", 0, &plain([9, 9, 9, 9]), &[])?;
    device.expect(
        "no IPv4",
        0,
        &ethernet([2; 6], mac(0), 0x0806, &[0; 28]),
        &[],
    )
}
