//! `weir between` on virtual Ethernet in a network namespace of the test's own: nothing is harmed but what a scenario says, and
//! every ending puts the interfaces back.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{FAILED, Finished, PASSED, beside, run, weir};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use softswitch::ports::{self, Frames};
use test_support::namespace::{in_namespace, ip, veth};
use testbeds::host::Host;
use testbeds::net::{Interface, Netlink};

const SCENARIO: &str = "\
weir: 1
name: two-machines
topology: {wire: [left, right]}
flows:
  there: {from: left, filter: udp.dport == 7}
faults:
  - {id: third, flows: there, effect: drop, select: {nth: 3}}
expect:
  - fault.third.fired == 1
  - flow.there.sent == 5
  - flow.there.lost == 1
";

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// What `weir between` changes, as the kernel shows it.
fn state(interface: &str) -> String {
    let shown = Command::new("ip")
        .args(["-d", "link", "show", "dev", interface])
        .output()
        .unwrap();
    let netlink = Netlink::open().unwrap();
    format!(
        "{} {:?} {:?} {:?}",
        String::from_utf8_lossy(&shown.stdout),
        netlink.find(interface).unwrap(),
        netlink.merging(interface).unwrap(),
        netlink.ipv6_is_off(interface).unwrap(),
    )
}

/// Two pairs of interfaces: `left0`, `right0` are the machines', the others the ends of the wire, with IPv6 as it is by default.
fn pairs() -> [String; 2] {
    // The switch is spoken to there.
    ip("link set lo up");
    for side in ["left", "right"] {
        veth(&format!("{side}0"), &format!("{side}1"));
        fs::write(format!("/proc/sys/net/ipv6/conf/{side}1/disable_ipv6"), "0").unwrap();
    }
    states()
}

fn states() -> [String; 2] {
    ["left1", "right1"].map(state)
}

/// Starts a wire, and waits until it is one.
fn start(folder: &Path, args: &[&str]) -> Child {
    let all = [&["-v", "between", "left1", "right1", "--json"], args].concat();
    let mut child = weir(folder, &all)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !said.contains("workload begins") {
        let read = lines.read_line(&mut said).unwrap();
        assert!(read > 0, "{said}");
    }
    // It goes on writing.
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    child
}

/// Asks it to end, as Ctrl-C does.
fn end(child: Child) -> Finished {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    Finished::of(child.wait_with_output().unwrap())
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends frames by one port and takes as many as are expected from another.
fn across(
    from: &mut dyn Frames,
    to: &mut dyn Frames,
    frames: &[Vec<u8>],
    expected: usize,
) -> Vec<Vec<u8>> {
    for frame in frames {
        from.send(frame).unwrap();
        assert_eq!(from.flush().unwrap(), 0);
    }
    let mut come: Vec<Vec<u8>> = Vec::new();
    let begun = Instant::now();
    while come.len() < expected && begun.elapsed() < PATIENCE {
        to.receive(64, &mut |frame: &[u8]| come.push(frame.to_vec()))
            .unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    // What is too much comes later.
    std::thread::sleep(Duration::from_millis(100));
    to.receive(64, &mut |frame: &[u8]| come.push(frame.to_vec()))
        .unwrap();
    come
}

fn ethernet(dst: u8, rest: &[u8], length: usize) -> Vec<u8> {
    let mut frame = vec![dst, 2, 3, 4, 5, 6, 0x02, 0, 0, 0, 0, 9];
    frame.extend(rest);
    frame.resize(length, 0x5a);
    frame
}

/// Frames that a learning or routing switch would not forward as they are, or at all.
fn all_kinds() -> Vec<Vec<u8>> {
    let mut broadcast = ethernet(0xff, &[0x08, 0x06, 0, 1], 60);
    broadcast[..6].fill(0xff);
    vec![
        broadcast,
        // An address that nobody has told it.
        ethernet(0x02, &[0x12, 0x34], 100),
        // LLDP: what no bridge forwards.
        [
            &[0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 9, 0x88, 0xcc][..],
            &[0; 46],
        ]
        .concat(),
        // IPv6 to all nodes.
        ethernet(0x33, &[0x86, 0xdd, 0x60], 1514),
        // One tag, two tags.
        ethernet(0x02, &[0x81, 0x00, 0xa0, 0x05, 0x08, 0x00, 0x45], 64),
        ethernet(0x02, &[0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 5, 0x08, 0x00], 128),
        // IEEE 802.3 with LLC, jumbo, and the shortest that a packet socket sends.
        ethernet(0x02, &[0x00, 0x26, 0x42, 0x42, 3], 52),
        ethernet(0x02, &[0x08, 0x00, 0x45], 9216 + 14),
        ethernet(0x02, &[0x90, 0x00], 15),
    ]
}

/// UDP from 10.0.0.1 to 10.0.0.2, port 7; the payload tells one from another.
fn datagram(number: u8) -> Vec<u8> {
    let mut frame = ethernet(0x02, &[0x08, 0x00], 14);
    frame.extend([
        0x45, 0, 0, 30, 0, number, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame.extend([0x30, 0x39, 0, 7, 0, 10, 0, 0, number, number]);
    frame.resize(60, 0);
    frame
}

#[test]
fn a_wire_harms_nothing_but_what_its_scenario_names() {
    let _turn = beside();
    if !in_namespace("a_wire_harms_nothing_but_what_its_scenario_names") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("wire.yaml"), SCENARIO).unwrap();
    let before = pairs();
    let child = start(
        folder.path(),
        &[
            "--scenario",
            "wire.yaml",
            "--captures",
            "all",
            "--out",
            "run",
        ],
    );
    assert_ne!(states(), before);
    // Not before: until it is a wire, this machine joins IPv6 groups there.
    let open = |name| ports::open(name, ports::Options::default()).unwrap().frames;
    let (mut left, mut right) = (open("left0"), open("right0"));
    let frames = all_kinds();
    assert_eq!(
        across(&mut *left, &mut *right, &frames, frames.len()),
        frames
    );
    assert_eq!(
        across(&mut *right, &mut *left, &frames, frames.len()),
        frames
    );
    let sent: Vec<_> = (1..=5).map(datagram).collect();
    let come = across(&mut *left, &mut *right, &sent, 4);
    let spared: Vec<_> = [1, 2, 4, 5].into_iter().map(datagram).collect();
    assert_eq!(come, spared);
    // From the other side it is another flow.
    assert_eq!(across(&mut *right, &mut *left, &sent, 5), sent);
    let finished = end(child);
    finished.expect_code(PASSED);
    let report = finished.json();
    assert_eq!(report["faults"][0]["proved"], true, "{report}");
    assert_eq!(report["faults"][0]["observed"], 1, "{report}");
    assert_eq!(states(), before);
    let again = run(folder.path(), &["replay", "run", "--json"]);
    again.expect_code(PASSED);
    assert_eq!(again.json()["events"], 1);
}

#[test]
fn killed_it_leaves_interfaces_as_they_were() {
    let _turn = beside();
    if !in_namespace("killed_it_leaves_interfaces_as_they_were") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut before = pairs();
    // Also what was down.
    ip("link set right1 down");
    before[1] = state("right1");
    let mut child = start(folder.path(), &[]);
    assert!(Netlink::open().unwrap().find("right1").unwrap().up);
    assert_ne!(states(), before);
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    until("as before", || states() == before);
}

#[test]
fn machines_talk_through_it_and_see_each_others_cable() {
    let _turn = beside();
    if !in_namespace("machines_talk_through_it_and_see_each_others_cable") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    pairs();
    let ours = Netlink::open().unwrap();
    let machines = [("left", 1), ("right", 2)].map(|(side, number)| {
        let host = Host::new(side).unwrap();
        let name = format!("{side}0");
        ours.move_to(&name, host.namespace()).unwrap();
        let netlink = Netlink::open_in(host.namespace()).unwrap();
        netlink
            .configure(&Interface {
                name,
                mac: [2, 0, 0, 0, 0, number],
                mtu: 9000,
                address: Some((Ipv4Addr::new(10, 9, 0, number), 24)),
                arp: true,
                bundles: None,
            })
            .unwrap();
        (host, netlink)
    });
    let [(left, left_net), (right, right_net)] = &machines;
    let child = start(folder.path(), &[]);
    let listener = right
        .namespace()
        .run(|| TcpListener::bind("10.9.0.2:9"))
        .unwrap();
    let payload: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    let mut stream = left
        .namespace()
        .run(|| TcpStream::connect("10.9.0.2:9"))
        .unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    let reader = std::thread::spawn(move || {
        let mut come = Vec::new();
        accepted.read_to_end(&mut come).map(|_| come)
    });
    stream.write_all(&payload).unwrap();
    drop(stream);
    assert!(reader.join().unwrap().unwrap() == payload);
    // A cable is pulled, and put back.
    let sees = |up| move || left_net.find("left0").unwrap().carrier == up;
    right_net.set_up("right0", false).unwrap();
    until("no carrier on the other side", sees(false));
    right_net.set_up("right0", true).unwrap();
    until("carrier on the other side", sees(true));
    let finished = end(child);
    // Frames may have met a link that was down, which is told.
    assert!(
        [Some(PASSED), Some(FAILED)].contains(&finished.code),
        "{finished:?}"
    );
}

#[test]
fn interfaces_that_cannot_be_a_wire_are_refused() {
    let _turn = beside();
    if !in_namespace("interfaces_that_cannot_be_a_wire_are_refused") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    pairs();
    fs::write(
        folder.path().join("star.yaml"),
        "weir: 1\nname: s\ntopology: {star: {hosts: [a, b]}}\n",
    )
    .unwrap();
    fs::write(folder.path().join("wire.yaml"), SCENARIO).unwrap();
    ip("addr add 10.8.0.1/24 dev left0");
    ip("link add br0 type bridge");
    ip("link set right0 master br0");
    ip("link add long mtu 20000 type veth peer name long1 mtu 20000");
    ip("link set left1 mtu 1500");
    let refused = [
        (&["between", "lo", "right1"][..], "loopback"),
        (&["between", "left0", "right1"], "10.8.0.1"),
        (&["between", "left1", "right0"], "nomaster"),
        (&["between", "left1", "left1"], "both ends"),
        (&["between", "left1", "nowhere"], "cannot find nowhere"),
        (&["between", "long", "long1"], "MTU of 20000"),
        (&["between", "left1", "right1"], "different MTUs"),
        (
            &["between", "left1", "right1", "--for", "0s"],
            "longer than 0s",
        ),
        (&["between", "left1", "right1", "--for", "3"], "unit"),
        (
            &["between", "left1", "right1", "--scenario", "star.yaml"],
            "wire: [left, right]",
        ),
        (&["run", "wire.yaml"], "weir between IF1 IF2"),
    ];
    let before = states();
    for (args, reason) in refused {
        let finished = run(folder.path(), args);
        assert_eq!(finished.code, Some(2), "{args:?} {finished:?}");
        assert!(
            finished.stderr.contains(reason),
            "{args:?} {}",
            finished.stderr
        );
    }
    assert_eq!(states(), before);
    // Before anything is touched: by it the switch is spoken to.
    ip("link set right1 mtu 1500");
    ip("link set lo down");
    let before = states();
    let finished = run(folder.path(), &["between", "left1", "right1"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished.stderr.contains("ip link set lo up"),
        "{}",
        finished.stderr
    );
    assert_eq!(states(), before);
}

#[test]
fn an_interface_is_taken_by_one_at_a_time() {
    let _turn = beside();
    if !in_namespace("an_interface_is_taken_by_one_at_a_time") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let before = pairs();
    for ending in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut child = start(folder.path(), &[]);
        let taken = states();
        assert_ne!(taken, before);
        for (pair, named) in [
            (["left1", "right1"], "left1"),
            (["right1", "left1"], "right1"),
            (["left0", "right1"], "right1"),
        ] {
            let [one, other] = pair;
            let second = run(folder.path(), &["between", one, other, "--for", "100ms"]);
            assert_eq!(second.code, Some(2), "{second:?}");
            let said = format!("weir: interface {named} is taken by another weir\n");
            assert_eq!(second.stderr, said);
            assert_eq!(states(), taken);
        }
        kill(Pid::from_raw(child.id() as i32), ending).unwrap();
        child.wait().unwrap();
        // As soon as its keeper has put them back.
        until("free", || {
            let again = ["between", "left1", "right1", "--for", "100ms"];
            run(folder.path(), &again).code == Some(PASSED)
        });
        assert_eq!(states(), before);
    }
}

#[test]
fn an_interface_that_disappears_ends_the_run_and_the_run_is_told() {
    let _turn = beside();
    if !in_namespace("an_interface_that_disappears_ends_the_run_and_the_run_is_told") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("wire.yaml"), SCENARIO).unwrap();
    let [_, before] = pairs();
    let args = [
        "--scenario",
        "wire.yaml",
        "--for",
        "10m",
        "--out",
        "run",
        "--captures",
        "all",
    ];
    let child = start(folder.path(), &args);
    {
        let open = |name| ports::open(name, ports::Options::default()).unwrap().frames;
        let (mut left, mut right) = (open("left0"), open("right0"));
        let sent: Vec<_> = (1..=5).map(datagram).collect();
        across(&mut *left, &mut *right, &sent, 4);
    }
    let begun = Instant::now();
    ip("link del left1");
    // Another interface is not the same one, whatever its name.
    veth("left1", "left2");
    let new = state("left1");
    let finished = Finished::of(child.wait_with_output().unwrap());
    assert!(begun.elapsed() < PATIENCE);
    finished.expect_code(FAILED);
    let report = finished.json();
    assert_eq!(report["faults"][0]["proved"], true, "{report}");
    let told = report.to_string();
    assert_eq!(
        told.matches("interface left1 no longer existed").count(),
        1,
        "{told}"
    );
    assert!(folder.path().join("weir-between.html").exists());
    run(folder.path(), &["replay", "run"]).expect_code(PASSED);
    assert_eq!(state("right1"), before);
    assert_eq!(state("left1"), new);
}

#[test]
fn an_interface_that_is_renamed_is_put_back() {
    let _turn = beside();
    if !in_namespace("an_interface_that_is_renamed_is_put_back") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let before = pairs();
    let child = start(folder.path(), &[]);
    ip("link set left1 name uplink");
    end(child).expect_code(PASSED);
    ip("link set uplink name left1");
    assert_eq!(states(), before);
}

#[test]
fn what_the_kernel_does_not_make_again_is_refused_and_what_it_makes_comes_back() {
    let _turn = beside();
    const TEST: &str =
        "what_the_kernel_does_not_make_again_is_refused_and_what_it_makes_comes_back";
    if !in_namespace(TEST) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    pairs();
    let shown = || {
        let show = |what: &str| {
            let output = Command::new("ip").args(what.split(' ')).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        [
            show("-6 -o address show dev left1"),
            show("-6 route show table all dev left1"),
            show("route show table all dev left1"),
            show("neigh show dev left1 nud permanent"),
            show("neigh show proxy dev left1"),
        ]
    };
    let is_settled = || shown()[0].contains("fe80::") && !shown()[0].contains("tentative");
    until("an address of the kernel's own", is_settled);
    for (given, named) in [
        ("address {} fe80::77/64 dev left1", "address fe80::77/64"),
        ("-6 route {} 2001:db8::/32 dev left1", "route 2001:db8::/32"),
        (
            "-6 route {} 2001:db8::/32 dev left1 table 7",
            "route 2001:db8::/32",
        ),
        ("-6 route {} default via fe80::5 dev left1", "route ::/0"),
        ("route {} 10.8.0.0/16 dev left1", "route 10.8.0.0/16"),
        (
            "neigh {} fe80::5 lladdr 02:00:00:00:00:05 dev left1",
            "neighbour fe80::5",
        ),
        (
            "neigh {} 10.8.0.5 lladdr 02:00:00:00:00:05 dev left1",
            "neighbour 10.8.0.5",
        ),
        (
            "neigh {} proxy fe80::6 dev left1",
            "neighbour proxy fe80::6",
        ),
    ] {
        ip(&given.replace("{}", "add"));
        let (before, links) = (shown(), states());
        let finished = run(
            folder.path(),
            &["between", "left1", "right1", "--for", "100ms"],
        );
        assert_eq!(finished.code, Some(2), "{given} {finished:?}");
        let said = format!("weir: left1 has the {named}: ");
        assert!(finished.stderr.starts_with(&said), "{}", finished.stderr);
        assert_eq!((shown(), states()), (before, links), "{given}");
        ip(&given.replace("{}", "del"));
    }
    until("an address of the kernel's own", is_settled);
    let before = shown();
    run(
        folder.path(),
        &["between", "left1", "right1", "--for", "100ms"],
    )
    .expect_code(PASSED);
    until("as before", || shown() == before);
}
