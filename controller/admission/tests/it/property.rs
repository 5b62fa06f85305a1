//! Whatever is asked in whatever order: nobody has what is another's.

use admission::{Book, Grant, QUARANTINE_NS, Refusal, Request, Tenant, Tenants};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;

#[derive(Debug, Clone)]
enum Step {
    Admit(Request),
    Renew(String, Option<u64>),
    Release(String),
    Wait(u64),
    Sweep,
    /// Another controller takes over, with what the switch has.
    Anew,
}

fn name() -> impl Strategy<Value = String> {
    (0..12_u8).prop_map(|n| format!("job{n}"))
}

fn lease() -> impl Strategy<Value = Option<u64>> {
    option::weighted(0.9, (1..90_u64).prop_map(|seconds| seconds * SECOND))
}

fn request() -> impl Strategy<Value = Request> {
    let number = option::weighted(0.3, prop_oneof![1..40_u16, 250..300_u16]);
    let tenant = prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))];
    let ports = vec(0..40_u32, 1..4);
    let rate = option::of(1000..90_000_u64);
    (name(), number, tenant, ports, 0..11_u32, rate, lease()).prop_map(
        |(name, number, tenant, ports, power, rate_bps, lease_ns)| Request {
            name,
            number,
            tenant: tenant.map(str::to_owned),
            ports,
            window: 1 << power,
            rate_bps,
            lease_ns,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => request().prop_map(Step::Admit),
        2 => (name(), lease()).prop_map(|(name, lease)| Step::Renew(name, lease)),
        2 => name().prop_map(Step::Release),
        3 => (1..40_u64).prop_map(|seconds| Step::Wait(seconds * SECOND)),
        1 => Just(Step::Sweep),
        1 => Just(Step::Anew),
    ]
}

fn tenants() -> Tenants {
    let tenant = |name: &str, slots, rate_bps, jobs| Tenant {
        name: name.to_owned(),
        slots,
        rate_bps,
        jobs,
    };
    // One that is no power of two.
    let all = vec![
        tenant("a", 300, Some(200_000), None),
        tenant("b", 128, None, Some(3)),
    ];
    Tenants::new(all).expect("tenants")
}

/// Whether some aligned window among these slots is free, found by looking at each slot.
fn has_room(book: &Book, request: &Request, now_ns: u64) -> bool {
    let partition = book.tenants().partition(request.tenant.as_deref());
    let Some(partition) = partition else {
        return false;
    };
    let free = |slot: u32| {
        !book
            .running(now_ns)
            .any(|grant| grant.slots().contains(&slot))
    };
    let places = partition.clone().step_by(request.window as usize);
    places
        .filter(|base| base + request.window <= partition.end)
        .any(|base| (base..base + request.window).all(free))
}

fn check(book: &Book, now_ns: u64) {
    let running: Vec<&Grant> = book.running(now_ns).collect();
    for (index, grant) in running.iter().enumerate() {
        let partition = book.tenants().partition(grant.tenant.as_deref());
        let partition = partition.expect("a tenant that there is");
        assert!(partition.start <= grant.base && grant.slots().end <= partition.end);
        for other in &running[..index] {
            assert!(grant.base >= other.slots().end || other.base >= grant.slots().end);
            assert_ne!(grant.name, other.name);
            assert!(!grant.ports.iter().any(|port| other.ports.contains(port)));
        }
    }
    let resting = |grant: &&Grant| !matches!(grant.state(now_ns), admission::State::Gone);
    let held = book
        .grants()
        .filter(resting)
        .map(|grant| grant.number % 256);
    let mut held: Vec<u16> = held.collect();
    held.sort_unstable();
    let all = held.len();
    held.dedup();
    assert_eq!(held.len(), all, "numbers share addresses");
    for tenant in book.tenants().as_slice() {
        let of = running
            .iter()
            .filter(|g| g.tenant.as_ref() == Some(&tenant.name));
        let rate: u64 = of.clone().filter_map(|grant| grant.rate_bps).sum();
        assert!(tenant.rate_bps.is_none_or(|quota| rate <= quota));
        assert!(tenant.jobs.is_none_or(|most| of.count() <= most));
    }
}

proptest! {
    #[test]
    fn nobody_has_what_is_anothers(steps in vec(step(), 1..120)) {
        let (mut book, mut now_ns) = (Book::new(tenants(), []), 0_u64);
        // By number: when its last use ended.
        let mut ended: BTreeMap<u16, u64> = BTreeMap::new();
        for step in steps {
            let before = book.clone();
            match step {
                Step::Admit(request) => {
                    let decided = book.admit(&request, now_ns);
                    // The same, for whoever has read the switch's tables.
                    let mut other = Book::new(tenants(), before.grants().cloned());
                    prop_assert_eq!(&other.admit(&request, now_ns), &decided);
                    match decided {
                        Ok(grant) => {
                            for (number, end) in &ended {
                                let rests = *end + QUARANTINE_NS > now_ns;
                                prop_assert!(!(rests && number % 256 == grant.number % 256));
                            }
                            prop_assert_eq!(grant.window, request.window);
                        }
                        Err(refusal) => {
                            prop_assert_eq!(&book, &before);
                            let room = has_room(&book, &request, now_ns);
                            if let Refusal::NoRoom { wait_ns, largest, window, .. } = refusal {
                                prop_assert!(!room);
                                prop_assert!(largest < window);
                                let smaller = Request { window: largest.max(1), ..request.clone() };
                                let fits = largest > 0 && has_room(&book, &smaller, now_ns);
                                prop_assert_eq!(fits, largest > 0);
                                if let Some(wait) = wait_ns {
                                    prop_assert!(has_room(&book, &request, now_ns + wait));
                                    prop_assert!(!has_room(&book, &request, now_ns + wait - 1));
                                }
                            }
                        }
                    }
                }
                Step::Renew(name, lease) => {
                    let runs = book.named(&name, now_ns).is_some();
                    prop_assert_eq!(book.renew(&name, lease, now_ns).is_ok(), runs);
                }
                Step::Release(name) => {
                    let runs = book.named(&name, now_ns).is_some();
                    prop_assert_eq!(book.release(&name, now_ns).is_ok(), runs);
                    prop_assert!(book.named(&name, now_ns).is_none());
                }
                Step::Wait(ns) => now_ns += ns,
                Step::Sweep => {
                    for number in book.sweep(now_ns) {
                        let end = before.grants().find(|g| g.number == number).and_then(|g| g.until_ns);
                        prop_assert!(end.is_some_and(|end| end + QUARANTINE_NS <= now_ns));
                    }
                }
                Step::Anew => book = Book::new(tenants(), book.grants().cloned()),
            }
            for grant in book.grants() {
                if let Some(until) = grant.until_ns.filter(|until| *until <= now_ns) {
                    ended.insert(grant.number, until);
                }
            }
            check(&book, now_ns);
        }
    }
}
