//! The lease, in virtual time: faults hold until the deadline on the switch's own clock, and what comes later is counted.

use super::*;

const ARCHS: [Arch; 3] = [Arch::Psa, Arch::V1model, Arch::Tna];

/// How long a tick of the clock is by which an architecture's program judges leases.
fn tick_ns(arch: Arch) -> u64 {
    match arch {
        Arch::Psa => 1,
        Arch::V1model => 1_000,
        Arch::Tna => 65_536,
    }
}

fn hold_until(lab: &mut Lab, arch: Arch, at_ns: u64) {
    let deadline = at_ns / tick_ns(arch);
    for (table, call) in lab.plan.switch("sw").unwrap().hold_until(deadline) {
        lab.switch.set_default_action(&table, Some(&call)).unwrap();
    }
}

fn lapsed(lab: &Lab, direction: Direction) -> u64 {
    let counter = names::lease::lapsed(direction);
    lab.switch.counter_read(&counter, 0).unwrap().packets
}

#[test]
fn faults_end_at_the_deadline_and_begin_again_with_the_next() {
    const LEASE_NS: u64 = 50_000_000;
    let drops = "faults:\n  - {id: gone, flows: first, effect: drop";
    for (side, direction) in [
        ("ingress", Direction::Ingress),
        ("egress", Direction::Egress),
    ] {
        for arch in ARCHS {
            let rest = format!("{drops}, where: {{{side}: sw}}}}\n");
            let mut lab = Lab::new(arch, 1, &rest);
            let due = lab.now_ns + LEASE_NS;
            hold_until(&mut lab, arch, due);
            lab.set_epoch(1);
            let (mut hit, mut spared) = (0, 0);
            while lab.now_ns < due + LEASE_NS {
                let at_ns = lab.now_ns;
                let number = lab.send(FIRST);
                let is_hit = !lab.left.contains_key(&number);
                // A tick is cut off at most.
                let exact = at_ns + tick_ns(arch) < due || at_ns >= due + tick_ns(arch);
                if exact {
                    assert_eq!(is_hit, at_ns < due, "{arch:?} {side} at {at_ns} of {due}");
                }
                hit += u64::from(is_hit);
                spared += u64::from(!is_hit);
            }
            assert!(hit > 20 && spared > 20, "{arch:?}: {hit} and {spared}");
            assert_eq!(lapsed(&lab, direction), spared, "{arch:?} {side}");
            assert_eq!(lab.fired("gone"), hit, "{arch:?} {side}");

            // Refreshed: it goes on. Disarmed: nobody's lease runs out.
            let until = lab.now_ns + LEASE_NS;
            hold_until(&mut lab, arch, until);
            let number = lab.send(FIRST);
            assert!(!lab.left.contains_key(&number), "{arch:?} {side}");
            lab.set_epoch(0);
            lab.advance(2 * LEASE_NS);
            let number = lab.send(FIRST);
            assert!(lab.left.contains_key(&number), "{arch:?} {side}");
            assert_eq!(lapsed(&lab, direction), spared, "{arch:?} {side}");
        }
    }
}

#[test]
fn without_a_deadline_faults_hold() {
    for arch in ARCHS {
        let mut lab = Lab::armed(
            arch,
            1,
            "faults:\n  - {id: gone, flows: first, effect: drop}\n",
        );
        for _ in 0..3 {
            lab.advance(86_400_000_000_000);
            let number = lab.send(FIRST);
            assert!(!lab.left.contains_key(&number), "{arch:?}");
        }
        assert_eq!(lapsed(&lab, Direction::Ingress), 0);
    }
}
