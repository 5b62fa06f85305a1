//! A recorder of several ports, seen from outside, with real namespaces.

use super::sandbox::{lines, probe};

#[test]
fn a_frame_has_one_identity_at_two_ports() {
    let Some(output) = probe(&["recorder-two-ports"]) else {
        return;
    };
    assert_eq!(
        lines(&output),
        [
            "left 100 entered 100 equal true distinct 100 cut 100 whole 100 of all bytes 100 lost [0, 0] late 0",
            "until rises true"
        ]
    );
}

#[test]
fn a_recorder_ends_at_one_time() {
    let Some(output) = probe(&["recorder-ends"]) else {
        return;
    };
    assert_eq!(
        lines(&output),
        ["complete true sent later true none after the end true end in time true lost 0"]
    );
}

#[test]
fn a_slow_sink_learns_the_number_of_lost_frames() {
    let Some(output) = probe(&["recorder-loses"]) else {
        return;
    };
    assert_eq!(
        lines(&output),
        ["lost true told before the end true same true all true"]
    );
}

#[test]
fn one_thread_reads_64_rings() {
    let Some(output) = probe(&["recorder-many"]) else {
        return;
    };
    assert_eq!(lines(&output), ["threads 1 frames 100 same 64 lost 0"]);
}

#[test]
fn an_interface_that_goes_away_does_not_end_the_recording_of_others() {
    let Some(output) = probe(&["recorder-goes-away"]) else {
        return;
    };
    // A frame on the loopback interface leaves and enters.
    assert_eq!(lines(&output), ["spins false frames 2"]);
}

#[test]
fn a_bed_records_the_requested_ports() {
    let Some(output) = probe(&["recorder-bed"]) else {
        return;
    };
    assert_eq!(
        lines(&output),
        ["came 10 to port (\"s1\", 1) others 0 lost [0, 0]"]
    );
}

#[test]
#[ignore = "it measures: run it in release"]
fn cost_of_a_frame() {
    let Some(output) = probe(&["recorder-cost"]) else {
        return;
    };
    println!("{}", lines(&output).join("\n"));
}
