//! `write_cpu`: what a gigabyte of WRITEs of 1 MiB costs the processors of both ends, over veth, beside rings that only copy, and
//! the kernel's TCP.
//!
//! "Copies" sends as many bytes in frames of the same size: each payload is copied into the ring on one side and out of it on the
//! other, and the receiver answers every 32nd frame, so that none is lost. All threads' time counts, and the kernel's for them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use frames::{Frames, RingFrames};
use nix::time::{ClockId, clock_gettime};
use rdma::rendezvous::{self, Destination, Server};
use rdma::{Connection, Way};
use roce::completion::Status;
use roce::packet::{Mtu, Service};
use roce::{Access, Local, Psn, QpConfig, Remote, SendRequest, Work};

use crate::bed::{Cable, FAR, NEAR, ip};

const MESSAGE: usize = 1 << 20;
const MESSAGES: u64 = 512;
const ROUNDS: usize = 5;
/// Messages that are posted at once.
const POSTED: u64 = 4;
const PATIENCE: Duration = Duration::from_secs(20);
const PAYLOAD: usize = 4096;
/// RoCEv2's headers and ICRC.
const AROUND: usize = 58;
const PORT: u16 = 4791;
/// Frames under way, and how many an answer is for.
const WINDOW: u64 = 128;
const ANSWERED: u64 = 32;

type Subject = (&'static str, fn() -> Result<()>);

/// Prints seconds of the processors for a gigabyte, a line for each subject: the median, the least, the most.
pub fn measure() -> Result<()> {
    let subjects: [Subject; 4] = [
        ("copies", copies),
        ("roce", write),
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

/// Of this process and all its threads so far, in seconds.
fn processors() -> Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

fn connection(own: &Destination, peer: &Destination) -> Connection {
    Connection::new(peer.gid, peer.qpn, peer.psn, own.psn, Mtu::B4096)
}

fn write() -> Result<()> {
    let cable = Cable::lay()?;
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    // Its region is the first of a provider with this seed: no other rendezvous is needed than for queue pairs.
    let far = cable.beyond(move || {
        let mut provider = rdma::open(Some("far"), Way::Rings, 1)?;
        let region = provider.register(MESSAGE, Access::ALL)?;
        let qpn = provider.create(QpConfig::new(Service::Reliable), Access::ALL)?;
        // The PSN tells the peer the key, too: both are drawn from the seed.
        let own = Destination {
            lid: 0,
            qpn,
            psn: Psn::new(0),
            gid: provider.gid(),
        };
        let server = Server::listen(rendezvous::PORT)?;
        server.accept(&own, PATIENCE, |peer| {
            Ok::<(), anyhow::Error>(provider.connect(qpn, &connection(&own, peer))?)
        })?;
        while !is_done.load(Ordering::Relaxed) {
            if provider.poll()?.is_none() {
                provider.wait(Duration::from_millis(10))?;
            }
        }
        let mut last = [0];
        provider.copy_out(&region, MESSAGE - 1, &mut last);
        ensure!(last == [7], "not written to the end");
        Ok(())
    })?;
    let near = (|| {
        let mut provider = rdma::open(Some("near"), Way::Rings, 2)?;
        let (address, rkey) = first_region(1)?;
        let region = provider.register(MESSAGE, Access::ALL)?;
        provider.put(&region, 0, &vec![7; MESSAGE]);
        let qpn = provider.create(QpConfig::new(Service::Reliable), Access::ALL)?;
        let own = Destination {
            lid: 0,
            qpn,
            psn: Psn::new(0),
            gid: provider.gid(),
        };
        let peer = rendezvous::connect(FAR, rendezvous::PORT, &own, PATIENCE)?;
        provider.connect(qpn, &connection(&own, &peer))?;
        let local = Local {
            key: region.lkey,
            address: region.address,
            len: MESSAGE as u32,
        };
        let work = Work::Write {
            local,
            remote: Remote { address, rkey },
            immediate: None,
        };
        let (mut posted, mut completed) = (0, 0);
        let deadline = Instant::now() + PATIENCE;
        while completed < MESSAGES {
            while posted < MESSAGES && posted - completed < POSTED {
                let request = SendRequest {
                    wr_id: posted,
                    work,
                    signaled: true,
                    solicited: false,
                };
                provider.post_send(qpn, request)?;
                posted += 1;
            }
            match provider.poll()? {
                Some(completion) => {
                    ensure!(
                        completion.status == Status::Success,
                        "{}",
                        completion.status
                    );
                    completed += 1;
                }
                None => provider.wait(Duration::from_millis(10))?,
            }
            ensure!(
                Instant::now() < deadline,
                "{completed} messages in {PATIENCE:?}"
            );
        }
        Ok(())
    })();
    done.store(true, Ordering::Relaxed);
    far.join().map_err(|_| anyhow::anyhow!("the far end"))??;
    near
}

/// The first region of a provider that was opened with this seed.
fn first_region(seed: u64) -> Result<(u64, u32)> {
    let mut same = rdma::open(Some("near"), Way::Pnet, seed)?;
    let region = same.register(MESSAGE, Access::ALL)?;
    Ok((region.address, region.rkey))
}

fn copies() -> Result<()> {
    let cable = Cable::lay()?;
    let frames = MESSAGES * (MESSAGE / PAYLOAD) as u64;
    let far = cable.beyond(move || {
        let mut ring = RingFrames::open("far", PORT)?;
        let (mut memory, mut taken, mut answered) = (vec![0; MESSAGE], 0_u64, 0);
        let deadline = Instant::now() + PATIENCE;
        while taken < frames {
            ring.receive_batch(64, &mut |frame| {
                let at = taken as usize * PAYLOAD % MESSAGE;
                memory[at..at + PAYLOAD].copy_from_slice(&frame[54..54 + PAYLOAD]);
                taken += 1;
            })?;
            while answered + ANSWERED <= taken {
                ring.send(&headers(64))?;
                answered += ANSWERED;
            }
            ring.flush()?;
            wait(&mut ring)?;
            ensure!(Instant::now() < deadline, "{taken} of {frames} frames");
        }
        std::hint::black_box(memory);
        Ok(())
    })?;
    let near = (|| {
        let mut ring = RingFrames::open("near", PORT)?;
        let memory = vec![7; MESSAGE];
        let (mut sent, mut answered) = (0, 0);
        let head = headers(PAYLOAD + AROUND);
        // The far end has opened its ring when it answers.
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
                ring.written(PAYLOAD + AROUND);
                sent += 1;
            }
            ring.flush()?;
            let came = ring.receive_batch(64, &mut |_| answered += ANSWERED)?;
            if came == 0 {
                wait(&mut ring)?;
            }
            ensure!(Instant::now() < deadline, "{answered} frames answered");
        }
        Ok(())
    })();
    far.join().map_err(|_| anyhow::anyhow!("the far end"))??;
    near
}

/// Until a frame is there.
fn wait(ring: &mut RingFrames) -> Result<()> {
    use nix::poll::{PollFd, PollFlags, poll};
    use std::os::fd::AsFd;
    let mut sources = [PollFd::new(ring.as_fd(), PollFlags::POLLIN)];
    poll(&mut sources, 10_u8)?;
    Ok(())
}

/// Ethernet, IPv4 and UDP to RoCEv2's port, without checksums that anybody looks at.
fn headers(len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..6].fill(0xFF);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[36..38].copy_from_slice(&PORT.to_be_bytes());
    frame[38..40].copy_from_slice(&((len - 34) as u16).to_be_bytes());
    frame
}

/// `plain`: this interface does not take more than a packet at a time.
fn tcp(plain: Option<&str>) -> Result<()> {
    let cable = Cable::lay()?;
    if let Some(interface) = plain {
        ip(&format!("link set {interface} gso_max_segs 1"))?;
    }
    let far = cable.beyond(|| {
        let listener = TcpListener::bind((FAR, rendezvous::PORT))?;
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
    })?;
    let near = (|| {
        let deadline = Instant::now() + PATIENCE;
        let mut stream = loop {
            match TcpStream::connect((FAR, rendezvous::PORT)) {
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
