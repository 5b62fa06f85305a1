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

/// The kernel passes each bundle as one packet; with a VLAN tag, it takes the tag out on the way.
#[test]
fn a_bundle_is_recorded_as_its_frames() {
    let Some(output) = probe(&["recorder-bundles"]) else {
        return;
    };
    let expected = |what| {
        format!(
            "{what}: packets 1 left as sent true entered as sent true same identities true lost [0, 0]"
        )
    };
    let cut = "the first 64 bytes: frames 41 of the right length true as sent 40 lost 2";
    assert_eq!(
        lines(&output),
        [
            expected("untagged"),
            expected("tagged"),
            expected("with an unfinished checksum"),
            cut.to_owned()
        ]
    );
}

#[test]
fn a_tcp_stream_with_offloads_is_recorded_as_its_segments() {
    let Some(output) = probe(&["recorder-tcp"]) else {
        return;
    };
    assert_eq!(
        lines(&output),
        ["bundles true segments fit true checksums true stream true same at both true lost [0, 0]"]
    );
}

#[test]
fn the_kernel_splits_bundles_above_the_limit_of_a_link() {
    let Some(output) = probe(&["bundles-above-the-limit"]) else {
        return;
    };
    assert_eq!(
        lines(&output),
        [
            "with its queue: bundles true within the limit true frames as sent true",
            // Linux would drop the bundle.
            "past its queue: bundles false within the limit true frames as sent true"
        ]
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
