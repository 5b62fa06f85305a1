//! The shipped scenarios of programs that are not weir's: each passes, and each of its faults is proved.
//!
//! Kafka is in the folder that `$KAFKA_HOME` names, Horovod in the Python of the folder `$WEIR_HOROVOD`, PyTorch in that of
//! `$WEIR_TORCH`: `cargo xtask test` makes them. Without them their tests are skipped by name, as with all programs.

use std::path::PathBuf;

use serde_json::Value;
use test_support::runs_all;

use super::bundled_replay::assert_equal_in_bundles;
use crate::support::leftovers::{Watched, files};
use crate::support::*;

macro_rules! scenarios {
    ($($test:ident: $file:literal, $programs:expr;)+) => {
        /// What the tests below run.
        pub const TESTED: &[&str] = &[$($file),+];

        $(#[test]
        fn $test() {
            passes($file, &$programs);
        })+
    };
}

scenarios! {
    dnsmasq_whose_answers_are_lost_for_a_while: "dns-outage.yaml", ["dnsmasq", "dig"];
    dig_asks_again: "dns-retries.yaml", ["dnsmasq", "dig"];
    a_switch_sums_the_gradients_of_ddp: "ddp-all-reduce.yaml", ["torch"];
    ddp_learns_under_burst_loss: "ddp-lossy.yaml", ["torch"];
    ddp_goes_on_while_the_switch_is_lost: "ddp-switch-lost.yaml", ["torch"];
    gradients_of_ddp_in_jumbo_frames: "ddp-jumbo.yaml", ["torch"];
    switches_of_two_racks_restart_under_ddp: "ddp-racks.yaml", ["torch"];
    torchrun_starts_again_what_a_dead_rank_has_ended: "torchrun-restart.yaml", ["torch", "pkill"];
    a_parameter_server_in_all_modes: "ps-modes.yaml", ["torch"];
    two_horovod_workers_wait_for_each_other: "horovod-straggler.yaml", ["horovod"];
    a_kafka_client_is_slow_by_its_name: "kafka-slow-producer.yaml", ["kafka", "java", "kcat"];
    haproxy_notices_a_lost_server: "haproxy-backend.yaml", ["haproxy", "nginx", "curl"];
    datagrams_out_of_order: "iperf3-reorder.yaml", ["iperf3"];
    bulk_tcp_under_loss: "iperf3-loss.yaml", ["iperf3"];
    a_lost_client_hello_costs_a_timeout: "tls-hello.yaml", ["openssl", "curl"];
    memcached_is_not_told_of_copies: "memcached-duplicates.yaml", ["memcached", "memcslap"];
    a_download_over_a_switch_that_restarts: "curl-switch-restart.yaml", ["nginx", "curl", "ping"];
    a_megabyte_through_a_narrow_place: "curl-bandwidth.yaml", ["nginx", "curl"];
    nginx_whose_answers_become_resets: "nginx-resets.yaml", ["nginx", "curl"];
    nginx_and_curl_under_loss: "nginx-curl.yaml", ["nginx", "curl"];
    lost_syns_are_sent_again: "nginx-lost-handshakes.yaml", ["nginx", "curl"];
    a_link_that_flaps: "nginx-flap.yaml", ["nginx"];
    one_connection_in_ten_is_slow: "nginx-gray.yaml", ["nginx", "ab"];
    the_third_packet_of_each_connection: "nginx-third-packets.yaml", ["nginx", "ab"];
    nginx_is_killed_behind_a_proxy: "nginx-killed.yaml", ["haproxy", "nginx", "curl"];
    the_answer_to_the_third_request_of_each_connection: "nginx-third-answers.yaml", ["nginx", "curl"];
    nginx_under_load: "nginx-load.yaml", ["nginx", "ab"];
    nginx_through_an_outage: "nginx-outage.yaml", ["nginx"];
    pings_that_wait_by_chance: "ping-jitter.yaml", ["ping"];
    pings_that_arrive_cut_short: "ping-truncated.yaml", ["ping"];
    pings_to_the_packet: "ping-loss.yaml", ["ping"];
    pings_by_their_numbers: "ping-ordinals.yaml", ["ping"];
    postgres_loses_nothing_in_a_crash: "postgres-crash.yaml", ["psql", "initdb"];
    postgres_pays_by_the_round_trip: "postgres-pgbench.yaml", ["pgbench", "initdb"];
    fields_of_a_protocol_of_the_users: "memo-authors.yaml", ["python3"];
    redis_benchmark_in_bursts_of_loss: "redis-benchmark-bursts.yaml", ["redis-server", "redis-benchmark"];
    connections_with_slow_spells_of_their_own: "redis-slow-spells.yaml", ["redis-server", "redis-benchmark"];
    a_primary_that_stands_still: "redis-frozen-primary.yaml", ["redis-server", "redis-sentinel", "redis-cli"];
    sentinel_promotes_a_replica: "redis-failover.yaml", ["redis-server", "redis-sentinel", "redis-cli"];
}

/// Scenarios that expect a number of packets or answers within a short time.
const ALONE: [&str; 3] = [
    "dns-outage.yaml",
    "nginx-flap.yaml",
    "redis-slow-spells.yaml",
];

/// A folder that a variable names, in which there is this file.
fn folder_with(variable: &str, file: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(variable)?);
    folder.join(file).exists().then_some(folder)
}

fn kafka() -> Option<PathBuf> {
    folder_with("KAFKA_HOME", "libs/kafka_2.11-0.9.0.1.jar")
}

fn horovod() -> Option<PathBuf> {
    folder_with("WEIR_HOROVOD", "horovodrun")
}

/// Where the Python is that has PyTorch, for which the package `weir` was built.
pub fn torch() -> Option<PathBuf> {
    folder_with("WEIR_TORCH", "python3")
}

/// Whether a program is there; Debian keeps PostgreSQL's beside the PATH, a folder a version.
fn is_installed(test: &str, program: &str) -> bool {
    let named = match program {
        "kafka" => Some(kafka()),
        "horovod" => Some(horovod()),
        "torch" => Some(torch()),
        _ => None,
    };
    if let Some(named) = named {
        if named.is_none() {
            skip(test, program);
        }
        return named.is_some();
    }
    let beside = program == "initdb"
        && std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|mut versions| {
            versions.any(|of| of.is_ok_and(|of| of.path().join("bin/initdb").exists()))
        });
    beside || has_program(test, program)
}

fn passes(file: &str, programs: &[&str]) {
    if !has_namespaces(file) || !programs.iter().all(|program| is_installed(file, program)) {
        return;
    }
    let _turn = match ALONE.contains(&file) {
        true => alone(),
        false => beside(),
    };
    let folder = tempfile::tempdir().unwrap();
    let scenario = repository("testbeds/scenarios").join(file);
    let scenario = scenario.to_str().unwrap();
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let own = horovod().filter(|_| programs.contains(&"horovod"));
    let own = own.or_else(|| torch().filter(|_| programs.contains(&"torch")));
    let path = own.into_iter().chain(std::env::split_paths(&inherited));
    let captured: &[&str] = match runs_all() {
        true => &["--captures", "all", "--out", "run"],
        false => &[],
    };
    let arguments = [&["run", scenario, "--json"], captured].concat();
    let finished = Watched::weir(folder.path(), &arguments)
        .env("PATH", std::env::join_paths(path).unwrap())
        .run();
    finished.expect_code(PASSED);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
    let page = match runs_all() {
        true => {
            assert_equal_in_bundles(&folder.path().join("run"));
            "run/report.html"
        }
        false => {
            assert_eq!(files(folder.path()), ["weir-run.html"]);
            "weir-run.html"
        }
    };
    let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
    let run = finished.json();
    assert_eq!(run["ok"], true);
    let all = |section: &str| run[section].as_array().unwrap().clone();
    for fault in all("faults") {
        assert_eq!(fault["proved"], true, "{fault}");
        assert_eq!(fault["fired"], fault["observed"], "{fault}");
        assert_ne!(fault["fired"], 0, "{fault}");
    }
    for fault in all("disruptions") {
        assert_eq!(fault["proved"], true, "{fault}");
        assert_eq!(fault["fired"], fault["observed"], "{fault}");
        assert_ne!(fault["fired"], 0, "{fault}");
    }
    for trigger in run["triggers"].as_array().into_iter().flatten() {
        assert_eq!(trigger["proved"], true, "{trigger}");
        // The switch counts those that have keys.
        if !trigger["on"].is_null() {
            assert_eq!(trigger["on"], trigger["observed"], "{trigger}");
        }
    }
    for expectation in all("expectations") {
        assert_eq!(expectation["passed"], true, "{expectation}");
    }
    assert!(!all("commands").is_empty());
    for probe in all("probes") {
        assert_ne!(probe["samples"], Value::Array(Vec::new()), "{probe}");
        let name = probe["name"].as_str().unwrap();
        // What it saw, drawn over time.
        assert!(
            page.contains(&format!(">probe {name}, latency, ")),
            "{name}"
        );
    }
    for fault in all("faults") {
        let id = fault["id"].as_str().unwrap();
        assert!(page.contains(&format!(">fault {id}: ")), "{id}");
    }
}
