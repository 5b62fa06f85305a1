//! tmp
use check::all_reduce::{AllReduce, Bounds, Operation};
use check::parameter_server::{self, ParameterServer};
use aggregation::server::Mode;
use check::slots::Rule;
use check::{Search, explore};

fn show(name: &str, r: Result<check::Report, check::Broken>, t: std::time::Instant) {
            match r {
                Ok(r) => { println!("{name}: {} states, {} trans broken {} stuck {} ended {} {:?} {:?}", r.states, r.transitions, r.broken, r.broken_and_stuck, r.ended, r.found.as_ref().map(|f| (f.wrong.clone(), f.trace.0.len())), t.elapsed());
                   if std::env::var("T").is_ok() { if let Some(f) = r.found { println!("{}", f.trace) } } }
                Err(e) => println!("{name} {e:?}"),
            }
}
#[test]
fn ps() {
    for mode in [Mode::Direct, Mode::Switch] {
    for (w,win,rounds,chunks) in [(2,1,1,1),(2,1,2,1),(2,2,2,2),(3,1,2,1)] {
        let mut b = parameter_server::Bounds::new(mode, w, win, rounds, chunks);
        let t = std::time::Instant::now();
        show(&format!("{mode:?} {w} {win} {rounds} {chunks}"), explore(&ParameterServer::new(b.clone()).unwrap(), Search::ALL), t);
        b.exponents = vec![0, 3, 9][..w as usize].to_vec();
        let t = std::time::Instant::now();
        show(&format!("asym {mode:?} {w} {win} {rounds} {chunks}"), explore(&ParameterServer::new(b).unwrap(), Search::ALL), t);
    }}
    for rule in Rule::ALL {
        let mut b = parameter_server::Bounds::new(Mode::Switch, 2, 1, 2, 1);
        b.without = Some(rule);
        let t = std::time::Instant::now();
        show(&format!("{rule:?}"), explore(&ParameterServer::new(b).unwrap(), Search::ALL), t);
    }
}
#[test]
fn all_rules() {
    for rule in [Rule::None].into_iter().chain(Rule::ALL) {
        for (name, mut bounds) in [
            ("2 ints W1", Bounds::new(2, 1, vec![Operation::Integers(1); 3])),
            ("2 floats", Bounds::new(2, 1, vec![Operation::Floats(1, vec![9, 9]), Operation::Floats(1, vec![9,9])])),
            ("2 floats asym", Bounds::new(2, 1, vec![Operation::Floats(1, vec![0, 9]), Operation::Floats(2, vec![0, 9])])),
            ("nan", Bounds::new(2, 1, vec![Operation::NotFinite])),
            ("stranger", {let mut b = Bounds::new(2, 1, vec![Operation::Integers(1)]); b.stranger=true; b}),
        ] {
            bounds.without = Some(rule);
            let t = std::time::Instant::now();
            show(&format!("{rule:?} {name}"), explore(&AllReduce::new(bounds).unwrap(), Search::ALL), t);
        }
    }
}
#[test]
fn proto() {
    use check::prototype::Prototype;
    for (s, f, first) in [(1,1,1),(2,2,1),(1,2,1),(1,1,0)] {
    for search in [Search{stuck:false, ..Search::ALL}, Search{wrong:false,..Search::ALL}] {
        let t = std::time::Instant::now();
        let p = Prototype{workers:2, slots:s, fragments:f, first};
        show(&format!("{p:?}"), explore(&p, search), t);
    }}
}
