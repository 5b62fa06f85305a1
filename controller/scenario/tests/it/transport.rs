//! What carries the values of a job: where RoCEv2 does, what switch and ranks are told, and which targets cannot.

use scenario::plan::names::group;
use scenario::{Scenario, TargetModel, load, plan};

/// Ranks a and b behind a switch that does not sum, c beside it.
fn two_switches(keys: &str) -> Scenario {
    let text = format!(
        "weir: 1\nname: carried\ntopology:\n  switches: [core, leaf]\n  hosts: [a, b, c, d]\n  \
         links: [[a, leaf], [b, leaf], [leaf, core], [c, core], [d, core]]\n\
         jobs: {{sums: {{ranks: [a, b, c], on: core, window: 64{keys}}}}}\nworkload: {{idle: {{for: 1s}}}}\n"
    );
    load("carried.yaml", &text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_switch_writes_to_each_rank_by_itself() {
    let replicas = |keys: &str, switch: &str| -> Vec<(u32, u16)> {
        let plan = plan(&two_switches(keys), &TargetModel::EMBEDDED).unwrap();
        let groups = &plan.switch(switch).unwrap().groups;
        let group = groups.iter().find(|group| group.id == group::of_job(1));
        let replicas = group.unwrap().replicas.iter();
        replicas.map(|to| (to.port, to.instance)).collect()
    };
    // The instance is the rank's number and 1.
    let [(shared, 1), (again, 2), (own, 3)] = replicas(", transport: rdma", "core")[..] else {
        panic!("a copy a rank");
    };
    assert!(shared == again && shared != own);
    // A UDP frame is one for both ranks until the switch before them, and so is there what has not become a WRITE.
    assert_eq!(replicas("", "core").len(), 2);
    assert_eq!(replicas(", transport: rdma", "leaf").len(), 2);
}

/// A sum carries the address of the rank whose update completed it. A switch below would receive it by another port than that rank's
/// packets and count both with the same ordinals.
#[test]
fn a_sum_is_no_packet_of_a_rank() {
    let jobs = ", transport: udp}}\nflows: {up: {from: a, filter: udp}, all: {from: b}, \
                sums: {from: b, filter: agg.kind == 2}, other: {from: d";
    let filters: Vec<String> = two_switches(jobs)
        .flows
        .iter()
        .map(|flow| flow.filter.text().to_owned())
        .collect();
    assert_eq!(
        filters,
        [
            "ip.src == 10.0.0.1 && !(agg.kind == 2) && (udp)",
            "ip.src == 10.0.0.2 && !(agg.kind == 2)",
            "ip.src == 10.0.0.2 && (agg.kind == 2)",
            "ip.src == 10.0.0.4",
        ]
    );
}

#[test]
fn programs_are_told_and_the_switch_that_sums_has_text_for_it() {
    for (keys, is_rdma) in [
        ("", false),
        (", transport: udp", false),
        (", transport: rdma", true),
    ] {
        let scenario = two_switches(keys);
        let told = scenario.jobs[0].environment("b");
        let told: Vec<_> = told
            .iter()
            .filter(|(name, _)| *name == "WEIR_TRANSPORT")
            .collect();
        assert_eq!(told.len(), usize::from(is_rdma), "{told:?}");
        assert!(told.iter().all(|(_, value)| value == "rdma"));
        let plan = plan(&scenario, &TargetModel::EMBEDDED).unwrap();
        let sums = plan
            .switches
            .iter()
            .map(|switch| (switch.name.as_str(), switch.sums_roce));
        assert_eq!(
            sums.collect::<Vec<_>>(),
            [("core", is_rdma), ("leaf", false)]
        );
    }
}

#[test]
fn targets_without_a_crc_over_a_packet_refuse_it_by_name() {
    let text = "weir: 1\nname: star\ntopology: {star: {hosts: [a, b]}}\n\
                jobs: {sums: {ranks: [a, b], transport: rdma}}\nworkload: {idle: {for: 1s}}\n";
    let scenario = load("star.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    for target in [
        TargetModel::TOFINO,
        TargetModel::TOFINO2,
        TargetModel::PSA_SWITCH,
    ] {
        let refused = plan(&scenario, &target).unwrap_err().to_string();
        assert!(
            refused.contains("the ICRC, a CRC-32 over all of a packet, cannot be computed"),
            "{refused}"
        );
        assert!(refused.contains("star.yaml:4:41"), "{refused}");
    }
    for target in [TargetModel::EMBEDDED, TargetModel::SIMPLE_SWITCH_GRPC] {
        assert!(plan(&scenario, &target).is_ok());
    }
}

#[test]
fn the_queue_pairs_of_all_jobs_have_numbers_of_their_own() {
    let file = |ranks: usize| {
        let jobs = ranks.div_ceil(64);
        let hosts: Vec<String> = (0..ranks).map(|n| format!("h{n}")).collect();
        let jobs = (0..jobs).map(|job| {
            let ranks = hosts
                .iter()
                .skip(64 * job)
                .take(64)
                .cloned()
                .collect::<Vec<_>>();
            format!(
                "  j{job}: {{ranks: [{}], window: 4, transport: rdma}}\n",
                ranks.join(", ")
            )
        });
        let jobs: String = jobs.collect();
        format!(
            "weir: 1\nname: many\ntopology: {{star: {{hosts: [{}]}}}}\njobs:\n{jobs}workload: {{idle: {{for: 1s}}}}\n",
            hosts.join(", ")
        )
    };
    // As many hosts as there can be.
    let scenario = load("many.yaml", &file(511)).unwrap_or_else(|error| panic!("{error}"));
    let contacts: Vec<u32> = scenario.jobs.iter().map(|job| job.contact).collect();
    assert_eq!(contacts, (0..511).step_by(64).collect::<Vec<_>>());
}
