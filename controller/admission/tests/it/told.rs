//! What is granted, and what is told of what is not.

use admission::{Book, Grant, QUARANTINE_NS, Refusal, Request, State, Tenant, Tenants};

const SECOND: u64 = 1_000_000_000;

fn request(name: &str, ports: &[u32]) -> Request {
    Request {
        name: name.to_owned(),
        number: None,
        tenant: None,
        ports: ports.to_vec(),
        window: 64,
        rate_bps: None,
        lease_ns: Some(60 * SECOND),
    }
}

fn tenant(name: &str, slots: u32) -> Tenant {
    Tenant {
        name: name.to_owned(),
        slots,
        rate_bps: None,
        jobs: None,
    }
}

fn book_of(tenants: Vec<Tenant>) -> Book {
    Book::new(Tenants::new(tenants).expect("tenants"), [])
}

fn refused(book: &mut Book, request: &Request, now_ns: u64) -> String {
    let before = book.clone();
    let refusal = book.admit(request, now_ns).expect_err("refused");
    assert_eq!(*book, before, "what is refused changes nothing");
    refusal.to_string()
}

#[test]
fn the_first_job_has_the_first_slots_and_number_1() {
    let mut book = Book::default();
    let grant = book.admit(&request("a", &[3, 5]), 7).expect("admitted");
    assert_eq!((grant.number, grant.slots()), (1, 0..64));
    assert_eq!(grant.until_ns, Some(7 + 60 * SECOND));
    let told = grant.environment(1);
    let told: Vec<String> = told.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(
        told.join(" "),
        "WEIR_JOB=1 WEIR_RANK=1 WEIR_RANKS=2 WEIR_WINDOW=64 WEIR_PLACE=1/2/2"
    );
    assert_eq!(grant.environment(2), []);
}

#[test]
fn a_second_job_of_the_same_name_is_told_who_the_first_is() {
    let mut book = Book::default();
    book.admit(&request("a", &[1]), 0).expect("admitted");
    assert_eq!(
        refused(&mut book, &request("a", &[2]), 20 * SECOND),
        "job `a` (number 1, slots 0 to 63, for 40s more) runs already: release it, or take another name"
    );
    // Its end makes the name free, not the number.
    book.release("a", 20 * SECOND).expect("released");
    let again = book.admit(&request("a", &[2]), 20 * SECOND);
    assert_eq!(again.expect("admitted").number, 2);
}

#[test]
fn a_number_rests_until_frames_of_it_are_gone() {
    let mut book = Book::default();
    let one = Request {
        number: Some(300),
        ..request("a", &[1])
    };
    book.admit(&one, 0).expect("admitted");
    let equal = Request {
        number: Some(44),
        ..request("b", &[2])
    };
    assert_eq!(
        refused(&mut book, &equal, 0),
        "number 44 is not free: job `a` (number 300, slots 0 to 63, for 60s more) has 300, which is the same modulo 256 and \
         shares its addresses"
    );
    book.release("a", 10 * SECOND).expect("released");
    assert_eq!(
        refused(&mut book, &equal, 15 * SECOND),
        "number 44 was that of job `a`, which has ended; its frames may be in flight for 25s more"
    );
    let at = 10 * SECOND + QUARANTINE_NS;
    assert_eq!(book.sweep(at - 1), Vec::<u16>::new());
    assert_eq!(book.clone().sweep(at), vec![300_u16]);
    assert_eq!(book.admit(&equal, at).expect("admitted").number, 44);
    for number in [0, 256, 512] {
        let none = Request {
            number: Some(number),
            ..request("c", &[9])
        };
        let refusal = book.admit(&none, at);
        assert_eq!(refusal, Err(Refusal::Number { number }));
    }
}

#[test]
fn no_room_names_the_holders_and_when_there_is_room() {
    let mut book = book_of(vec![tenant("lab", 256)]);
    let of_lab = |name: &str, port, window, seconds| Request {
        tenant: Some("lab".to_owned()),
        window,
        lease_ns: Some(seconds * SECOND),
        ..request(name, &[port])
    };
    for (name, port, window, seconds) in [("a", 1, 64, 100), ("b", 2, 128, 50)] {
        book.admit(&of_lab(name, port, window, seconds), 0)
            .expect("admitted");
    }
    assert_eq!(
        refused(&mut book, &of_lab("c", 3, 128, 9), 0),
        "no window of 128 slots fits in the slots of tenant `lab` (0 to 255): a window of 64 fits; free in 50s, if no lease is \
         renewed. Held by `a` (number 1, slots 0 to 63, for 100s more), `b` (number 2, slots 128 to 255, for 50s more)"
    );
    // `b` lies where windows of its size begin, and leaves a place for another of its size.
    book.release("b", SECOND).expect("released");
    let c = book.admit(&of_lab("c", 3, 128, 9), SECOND);
    assert_eq!(c.expect("admitted").slots(), 128..256);
    // What no tenant has begins behind.
    let d = book.admit(&request("d", &[4]), SECOND).expect("admitted");
    assert_eq!(d.slots(), 256..320);
}

#[test]
fn a_lease_runs_out_and_is_not_renewed_behind_its_end() {
    let mut book = Book::default();
    book.admit(&request("a", &[1]), 0).expect("admitted");
    let renewed = book.renew("a", Some(60 * SECOND), 50 * SECOND);
    assert_eq!(renewed.expect("renewed").until_ns, Some(110 * SECOND));
    assert_eq!(
        book.renew("a", None, 113 * SECOND)
            .expect_err("lapsed")
            .to_string(),
        "the lease of job `a` ran out 3s ago, and its slots may belong to another job: admit it again"
    );
    let other = book.admit(&request("b", &[1]), 113 * SECOND);
    assert_eq!(
        other.expect("admitted").slots(),
        0..64,
        "slots are free at once"
    );
    let unknown = book.release("c", 0).expect_err("unknown").to_string();
    assert_eq!(unknown, "no job `c` runs here");
    // Without a lease: until it is released.
    let grant = book.renew("b", None, 114 * SECOND).expect("renewed");
    assert_eq!(grant.state(u64::MAX), State::Running);
}

#[test]
fn quotas_of_a_tenant() {
    let mut book = book_of(vec![
        Tenant {
            rate_bps: Some(100_000_000),
            jobs: Some(2),
            ..tenant("lab", 512)
        },
        tenant("home", 64),
    ]);
    let of_lab = |name: &str, port, rate_bps| Request {
        tenant: Some("lab".to_owned()),
        rate_bps,
        lease_ns: None,
        ..request(name, &[port])
    };
    let a = of_lab("a", 1, Some(60_000_000));
    book.admit(&a, 0).expect("admitted");
    assert_eq!(
        refused(&mut book, &of_lab("b", 2, None), 0),
        "tenant `lab` has a rate, so each of its jobs needs one; 40Mbit/s are left"
    );
    assert_eq!(
        refused(&mut book, &of_lab("b", 2, Some(50_000_000)), 0),
        "tenant `lab` has 40Mbit/s left; 50Mbit/s were requested. Held by `a` (number 1, slots 0 to 63, 60Mbit/s, until it is \
         released)"
    );
    book.admit(&of_lab("b", 2, Some(40_000_000)), 0)
        .expect("admitted");
    let third = refused(&mut book, &of_lab("c", 3, Some(1000)), 0);
    assert!(
        third.starts_with("tenant `lab` may have 2 jobs at once, and has `a` ("),
        "{third}"
    );
    let stranger = Request {
        tenant: Some("nobody".to_owned()),
        ..request("d", &[4])
    };
    assert_eq!(
        refused(&mut book, &stranger, 0),
        "there is no tenant `nobody`; there are lab, home"
    );
}

#[test]
fn what_is_no_request_is_refused_for_what_it_is() {
    let mut book = Book::default();
    book.admit(&request("held", &[7]), 0).expect("admitted");
    let good = request("a", &[1, 2]);
    let long = "x".repeat(65);
    let cases = [
        (
            Request {
                name: String::new(),
                ..good.clone()
            },
            "a job's name is not empty: ``",
        ),
        (
            Request {
                name: "-x".to_owned(),
                ..good.clone()
            },
            "a job's name is made of letters, digits, `-`, `_` and `.`, and begins with a letter or digit: `-x`",
        ),
        (
            Request {
                name: long.clone(),
                ..good.clone()
            },
            &*format!("a job's name has at most 64 characters: `{long}`"),
        ),
        (
            Request {
                ports: vec![],
                ..good.clone()
            },
            "a switch sums 1 to 64 ranks; found 0",
        ),
        (
            Request {
                ports: (0..65).collect(),
                ..good.clone()
            },
            "a switch sums 1 to 64 ranks; found 65",
        ),
        (
            Request {
                ports: vec![1, 2, 1],
                ..good.clone()
            },
            "port 1 is given for two ranks: each rank needs a port of its own",
        ),
        (
            Request {
                ports: vec![1, 7],
                ..good.clone()
            },
            "port 7 belongs to job `held` (number 1, slots 0 to 63, for 60s more): two jobs behind one port could forge each \
             other's frames",
        ),
        (
            Request {
                window: 48,
                ..good.clone()
            },
            "a window is a power of two from 1 to 1024; found 48: 64 is the nearest",
        ),
        (
            Request {
                window: 2048,
                ..good.clone()
            },
            "a window is a power of two from 1 to 1024; found 2048: 1024 is the nearest",
        ),
        (
            Request {
                rate_bps: Some(0),
                ..good.clone()
            },
            "a rate is at least 1 kbit/s: a job with less than that could not send a frame",
        ),
        (
            Request {
                lease_ns: Some(5),
                ..good.clone()
            },
            "a lease lasts 1s to 2592000s; found 5ns",
        ),
    ];
    for (request, wanted) in cases {
        assert_eq!(refused(&mut book, &request, 0), wanted);
    }
}

#[test]
fn tenants_that_do_not_fit_are_refused() {
    let twice = Tenants::new(vec![tenant("a", 1), tenant("a", 1)]);
    assert_eq!(
        twice.expect_err("twice").to_string(),
        "tenant `a` is declared twice"
    );
    let many = Tenants::new(vec![tenant("a", 1000), tenant("b", 25)]);
    assert_eq!(
        many.expect_err("many").to_string(),
        "the tenants' slots are 1025 together; a switch has 1024"
    );
    let none = Tenants::new(vec![tenant("a", 0)]);
    assert!(none.is_err());
    let nothing = Tenant {
        jobs: Some(0),
        ..tenant("a", 1)
    };
    assert!(Tenants::new(vec![nothing]).is_err());
}

/// What a switch keeps of a job is read back as it was.
#[test]
fn a_grant_survives_json() {
    let mut book = Book::default();
    let grant = book.admit(&request("a", &[3, 5]), 7).expect("admitted");
    let text = serde_json::to_string(&grant).expect("writes");
    assert_eq!(serde_json::from_str::<Grant>(&text).expect("reads"), grant);
}
