//! Debian's programs in two machines with a plain bridge between them: the reference for our own RoCE.

use crate::network::{inside, two_on_a_bridge};
use machines::between;

#[test]
fn pingpong_and_perftest_pass_between_two_machines() {
    let test = "interoperation::pingpong_and_perftest_pass_between_two_machines";
    let Some(image) = inside(test) else { return };
    let machines = two_on_a_bridge(&image);
    let [server, client] = &machines;
    for machine in &machines {
        let device = machine.succeed("ibv_devinfo -v").expect("a device");
        let address = machine.address();
        for has in [
            "PORT_ACTIVE",
            "active_mtu:\t\t4096",
            &format!("::ffff:{address}, RoCE v2"),
        ] {
            assert!(device.contains(has), "{has}: {device}");
        }
    }
    let pingpong = between(server, client, "ibv_rc_pingpong -g 1 -m 4096");
    let pingpong = pingpong.unwrap_or_else(|error| panic!("{error}"));
    print!("{pingpong}");
    assert!(pingpong.contains("8192000 bytes in"));
    for program in ["ib_write_bw", "ib_send_bw", "ib_read_bw"] {
        let report = between(server, client, &format!("{program} -s 65536 -n 200"));
        let report = report.unwrap_or_else(|error| panic!("{error}"));
        // Size, iterations, peak and average in MiB/s, millions of messages a second.
        let figures = report.lines().find(|line| line.starts_with(" 65536 "));
        println!("{program} {}", figures.expect("figures"));
    }
}
