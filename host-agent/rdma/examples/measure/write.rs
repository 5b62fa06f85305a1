//! `write_cpu`: processor time of both ends per gigabyte of WRITEs of 1 MiB over veth, compared with rings that only copy, and
//! with the kernel's TCP. The packets of a WRITE leave as bundles of frames, or without bundles, singly.
//!
//! "copies" sends as many bytes in single frames of the same size: one side copies each payload into the ring, the other side copies it
//! out, and the receiver answers every 32nd frame, so that none is lost. The time of all threads counts, in user and kernel mode.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use frames::{Frames, Io, Options, wait_readable};
use nix::time::{ClockId, clock_gettime};
use rdma::Way;
use rdma::perftest::{BandwidthOptions, Verb, bandwidth};
use roce::packet::UDP_PORT;
use test_support::namespace::ip;

use crate::bed::{Cable, FAR, NEAR};

const MESSAGE: usize = 1 << 20;
const MESSAGES: u64 = 512;
const ROUNDS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(20);
const PAYLOAD: usize = 4096;
/// Length of RoCEv2's headers and ICRC in bytes.
const AROUND: usize = 58;
/// TCP port.
const PORT: u16 = 18_515;
/// Maximum frames in flight, and number of frames per answer.
const WINDOW: u64 = 128;
const ANSWERED: u64 = 32;

type Subject = (&'static str, fn() -> Result<()>);

/// Prints the processor seconds per gigabyte, one line per subject: median, minimum, maximum.
pub fn measure() -> Result<()> {
    let subjects: [Subject; 5] = [
        ("copies", copies),
        ("roce", || write(Way::Bundles)),
        ("roce without bundles", || write(Way::Rings)),
        ("tcp", || tcp(None)),
        ("tcp without GSO", || tcp(Some("near"))),
    ];
    let mut all = vec![Vec::new(); subjects.len()];
    for _ in 0..ROUNDS {
        for ((_, run), seconds) in subjects.iter().zip(&mut all) {
            let before = processors()?;
            run()?;
            let bytes = (MESSAGES * MESSAGE as u64) as f64;
            seconds.push((processors()? - before) * 1e9 / bytes);
        }
    }
    for ((name, _), mut seconds) in subjects.iter().zip(all) {
        seconds.sort_by(f64::total_cmp);
        let (least, most) = (seconds[0], seconds[ROUNDS - 1]);
        println!("{name}: {} {least} {most}", seconds[ROUNDS / 2]);
    }
    Ok(())
}

/// Processor time of this process and all its threads so far, in seconds.
fn processors() -> Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

fn write(way: Way) -> Result<()> {
    let options = BandwidthOptions {
        size: MESSAGE as u32,
        iterations: MESSAGES,
        posted: 4,
        ..BandwidthOptions::new(Verb::Write)
    };
    let (_cable, far) = Cable::lay(move || {
        let mut provider = rdma::open(Some("far"), way, 1)?;
        bandwidth(&mut *provider, Verb::Write, None, &options)?;
        Ok(())
    });
    let mut provider = rdma::open(Some("near"), way, 2)?;
    let near = bandwidth(&mut *provider, Verb::Write, Some(FAR), &options);
    far.join().map_err(|_| anyhow::anyhow!("the far end"))??;
    near?;
    Ok(())
}

fn copies() -> Result<()> {
    let frames = MESSAGES * (MESSAGE / PAYLOAD) as u64;
    let (_cable, far) = Cable::lay(move || {
        let mut ring = rings("far")?;
        let (mut memory, mut taken, mut answered) = (vec![0; MESSAGE], 0_u64, 0);
        let deadline = Instant::now() + PATIENCE;
        while taken < frames {
            ring.receive(64, &mut |frame: &[u8]| {
                let at = taken as usize * PAYLOAD % MESSAGE;
                memory[at..at + PAYLOAD].copy_from_slice(&frame[54..54 + PAYLOAD]);
                taken += 1;
            })?;
            while answered + ANSWERED <= taken {
                ring.send(&headers(64))?;
                answered += ANSWERED;
            }
            ring.flush()?;
            wait(&*ring)?;
            ensure!(Instant::now() < deadline, "{taken} of {frames} frames");
        }
        std::hint::black_box(memory);
        Ok(())
    });
    let near = (|| {
        let mut ring = rings("near")?;
        let memory = vec![7; MESSAGE];
        let (mut sent, mut answered) = (0, 0);
        let head = headers(PAYLOAD + AROUND);
        // The far end has opened its ring when this time has passed.
        std::thread::sleep(Duration::from_millis(300));
        let deadline = Instant::now() + PATIENCE;
        while answered + ANSWERED <= frames {
            while sent < frames && sent < answered + WINDOW {
                let at = sent as usize * PAYLOAD % MESSAGE;
                let room = ring.room(PAYLOAD + AROUND)?;
                let room = room.context("no slot is free")?;
                room[..54].copy_from_slice(&head[..54]);
                room[54..54 + PAYLOAD].copy_from_slice(&memory[at..at + PAYLOAD]);
                room[54 + PAYLOAD..PAYLOAD + AROUND].fill(0);
                ring.written(PAYLOAD + AROUND)?;
                sent += 1;
            }
            ring.flush()?;
            let came = ring.receive(64, &mut |_: &[u8]| answered += ANSWERED)?;
            if came.frames == 0 {
                wait(&*ring)?;
            }
            ensure!(Instant::now() < deadline, "{answered} frames answered");
        }
        Ok(())
    })();
    far.join().map_err(|_| anyhow::anyhow!("the far end"))??;
    near
}

fn rings(interface: &str) -> Result<Box<dyn Frames>> {
    Ok(frames::open(interface, Options::udp(Io::Rings, UDP_PORT))?.frames)
}

/// Waits for a frame, for at most 10 ms.
fn wait(ring: &dyn Frames) -> Result<()> {
    wait_readable(ring.readable(), Duration::from_millis(10))?;
    Ok(())
}

/// Ethernet, IPv4 and UDP headers to RoCEv2's port, without checksums, which no receiver checks here.
fn headers(len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..6].fill(0xFF);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[36..38].copy_from_slice(&UDP_PORT.to_be_bytes());
    frame[38..40].copy_from_slice(&((len - 34) as u16).to_be_bytes());
    frame
}

/// `plain`: an interface without segmentation offload, which takes one packet at a time.
fn tcp(plain: Option<&str>) -> Result<()> {
    let (_cable, far) = Cable::lay(|| {
        let listener = TcpListener::bind((FAR, PORT))?;
        let (mut stream, _) = listener.accept()?;
        let (mut memory, mut taken) = (vec![0; MESSAGE], 0);
        loop {
            match stream.read(&mut memory)? {
                0 => break,
                more => taken += more as u64,
            }
        }
        ensure!(taken == MESSAGES * MESSAGE as u64, "{taken} bytes");
        Ok(())
    });
    if let Some(interface) = plain {
        ip(&format!("link set {interface} gso_max_segs 1"));
    }
    let near = (|| {
        let deadline = Instant::now() + PATIENCE;
        let mut stream = loop {
            match TcpStream::connect((FAR, PORT)) {
                Ok(stream) => break stream,
                Err(error) => ensure!(Instant::now() < deadline, "{NEAR} to {FAR}: {error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let memory = vec![7; MESSAGE];
        for _ in 0..MESSAGES {
            stream.write_all(&memory)?;
        }
        Ok(())
    })();
    far.join().map_err(|_| anyhow::anyhow!("the far end"))??;
    near
}
