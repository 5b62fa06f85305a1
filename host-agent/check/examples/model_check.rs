//! tmp
use check::all_reduce::*;
use check::*;
fn main() {
    let a: Vec<u32> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let mut b = Bounds::new(a[0] as u8, a[1], vec![Operation::Integers(a[2] as u8); a[3] as usize]);
    b.restarts = a[4] as u8;
    b.crashes = a[5] != 0;
    let t = std::time::Instant::now();
    let m = AllReduce::new(b).unwrap();
    let r = explore(&m, Search::ALL);
    match r { Ok(r) => { println!("{:#?} {:?}", Report{found:None, ..r.clone()}, t.elapsed()); if let Some(f)=r.found { println!("{:?}\n{}", f.wrong, f.trace); } }, Err(e) => println!("{e:?}") }
}
