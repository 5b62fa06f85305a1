//! Experiments with one wire between two hosts: frames, counters, captures and rates.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use testbeds::capture::{Capture, CaptureError, Direction, Filter, Limits, match_frames};
use testbeds::host::Host;
use testbeds::net::{Netlink, Rate};

use super::hosts::{Outcome, socket, two_hosts, two_hosts_with};

/// Tests that frames cross the wire, that counters and captures on both ends agree, and that no other frames pass.
pub fn exchange() -> Outcome {
    let [(a, a_net), (b, b_net)] = two_hosts(false)?;
    let capture = |host: &Host, name| {
        Capture::start(
            host.namespace(),
            name,
            Filter::Everything,
            Limits::WHOLE_FRAMES,
        )
    };
    let (at_a, at_b) = (capture(&a, "va")?, capture(&b, "vb")?);
    let (from, to) = (socket(a.namespace(), 1)?, socket(b.namespace(), 2)?);
    let mut buffer = [0; 2000];
    for number in 0..100_u8 {
        from.send_to(&[number; 1000], (Ipv4Addr::new(10, 0, 0, 2), 9))?;
        let (length, _) = to.recv_from(&mut buffer)?;
        if buffer[..length] != [number; 1000] {
            return Err("not what was sent".into());
        }
    }
    let (at_a, at_b) = (at_a.stop()?, at_b.stop()?);
    let (sent, received) = (a_net.counters("va")?, b_net.counters("vb")?);
    println!(
        "sent {} {} received {} {}",
        sent.tx_frames, sent.tx_bytes, received.rx_frames, received.rx_bytes
    );
    let whole = |bytes: &[u8]| Some(bytes.to_vec());
    let difference = match_frames(
        &at_a.captured(Direction::Out, whole),
        &at_b.captured(Direction::In, whole),
        1_000_000_000,
    );
    println!(
        "complete {} matched {} missing {} extra {} late {} others {}",
        at_a.is_complete() && at_b.is_complete(),
        difference.matched,
        difference.missing.len(),
        difference.extra.len(),
        difference.late.len(),
        at_a.going(Direction::In).count(),
    );
    println!("interfaces {}", a_net.interfaces()?.join(","));
    Ok(())
}

/// Tests that frames which several processors send at once reach two captures of the other end in the same order.
/// Prints the number of frames, and whether both captures agree.
pub fn order() -> Outcome {
    let hosts = two_hosts(false)?;
    hosts[1].1.one_order("vb")?;
    in_one_order(hosts)
}

/// Like [`order`], for hosts that send bundles.
pub fn order_of_bundles() -> Outcome {
    let root = Netlink::open()?;
    if !root.deliver_on_one_processor(Some(0))? {
        println!("the kernel cannot");
        return Ok(());
    }
    let hosts = two_hosts_with(false, Some(65_536))?;
    root.deliver_on_one_processor(None)?;
    in_one_order(hosts)
}

fn in_one_order([(a, _a_net), (b, _b_net)]: [(Host, Netlink); 2]) -> Outcome {
    const SENDERS: usize = 4;
    const EACH: u32 = 3000;
    let capture = || {
        Capture::start(
            b.namespace(),
            "vb",
            Filter::Everything,
            Limits::WHOLE_FRAMES,
        )
    };
    let captures = [capture()?, capture()?];
    let _to = socket(b.namespace(), 2)?;
    let sockets: Vec<UdpSocket> = (0..SENDERS)
        .map(|_| {
            a.namespace()
                .run(|| UdpSocket::bind((Ipv4Addr::new(10, 0, 0, 1), 0)))
        })
        .collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        for (sender, socket) in (0_u32..).zip(&sockets) {
            scope.spawn(move || {
                for number in 0..EACH {
                    let text = [sender.to_be_bytes(), number.to_be_bytes()].concat();
                    // A datagram that the socket refuses is not sent.
                    let _ = socket.send_to(&text, (Ipv4Addr::new(10, 0, 0, 2), 9));
                }
            });
        }
    });
    std::thread::sleep(Duration::from_millis(300));
    let [first, second] = captures.map(|capture| -> Result<Vec<Box<[u8]>>, CaptureError> {
        let recording = capture.stop()?;
        let frames = recording.going(Direction::In);
        Ok(frames.map(|frame| frame.bytes.clone()).collect())
    });
    let (first, second) = (first?, second?);
    println!(
        "frames {} in one order {}",
        first.len() > SENDERS * 1000,
        first == second
    );
    Ok(())
}

/// Prints the throughput of a rate-limited link as a fraction of the limit, and the longest time in milliseconds for
/// which the sender did not run. The sender keeps the socket's buffer full, some 90 frames, which last for 90 ms.
pub fn rate() -> Outcome {
    const RATE_BPS: u64 = 8_000_000;
    const WARM_UP: Duration = Duration::from_millis(200);
    const MEASURED: Duration = Duration::from_secs(2);
    let [(a, a_net), (b, b_net)] = two_hosts(true)?;
    a_net.limit_rate(
        "va",
        Rate {
            rate_bps: RATE_BPS,
            // The data of 50 ms: a kernel that is late by less loses nothing.
            burst_bytes: 50_000,
            limit_bytes: 1 << 20,
        },
    )?;
    let (from, _to) = (socket(a.namespace(), 1)?, socket(b.namespace(), 2)?);
    from.set_nonblocking(true)?;
    let mut last = Instant::now();
    let mut longest_pause = Duration::ZERO;
    // Fills the socket, which takes more than the bucket sends meanwhile.
    let mut offer = |length: Duration| {
        let start = Instant::now();
        while start.elapsed() < length {
            while from
                .send_to(&[0; 1000], (Ipv4Addr::new(10, 0, 0, 2), 9))
                .is_ok()
            {}
            longest_pause = longest_pause.max(last.elapsed());
            last = Instant::now();
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    // The bucket's own tokens leave first.
    offer(WARM_UP);
    let (before, start) = (b_net.counters("vb")?.rx_bytes, Instant::now());
    offer(MEASURED);
    let (received, took) = (b_net.counters("vb")?.rx_bytes - before, start.elapsed());
    let ratio = received as f64 * 8.0 / took.as_secs_f64() / RATE_BPS as f64;
    println!(
        "received {received} ratio {ratio:.3} pause_ms {}",
        longest_pause.as_millis()
    );
    Ok(())
}
