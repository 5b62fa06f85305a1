//! Two machines, Debian's programs on both, a plain bridge between them: what our own RoCE is held against.

use crate::network::{A, inside, two_on_a_bridge};
use machines::Machine;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// Runs a program in both machines, the server in the first: what the client wrote.
pub fn between(machines: &[Machine; 2], program: &str, port: u16) -> String {
    let [server, client] = machines;
    let serving = server.spawn(program).expect("a server");
    server.await_listening(port).expect("a server that listens");
    let output = client.succeed(&format!("{program} {A}"));
    let output = output.unwrap_or_else(|error| panic!("{error}"));
    serving
        .succeed(LIMIT)
        .unwrap_or_else(|error| panic!("{error}"));
    output
}

#[test]
fn pingpong_and_perftest_pass_between_two_machines() {
    let since = Instant::now();
    let test = "interoperation::pingpong_and_perftest_pass_between_two_machines";
    let Some(image) = inside(test) else { return };
    let machines = two_on_a_bridge(&image);
    let device = machines[0].succeed("ibv_devinfo -v").expect("a device");
    println!("{device}");
    println!("{}", machines[0].console());

    let pingpong = between(&machines, "ibv_rc_pingpong -g 1 -m 4096", 18515);
    assert!(pingpong.contains("1000 iters"), "{pingpong}");
    print!("{pingpong}");
    for program in ["ib_write_bw", "ib_send_bw", "ib_read_bw"] {
        let report = between(&machines, &format!("{program} -s 65536 -n 200"), 18515);
        println!("{report}");
    }
    println!("all: {:.1?}", since.elapsed());
}
