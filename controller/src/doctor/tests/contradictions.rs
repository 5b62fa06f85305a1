//! Ranks that contradict each other.

use super::*;

#[test]
fn ranks_that_contradict_each_other() {
    let healthy = [0, 1, 2].map(|number| rank(number, None));
    assert_eq!(wrong(&[], &healthy), Vec::<String>::new());
    let mut twice = healthy.clone();
    twice[2] = rank(1, None);
    twice[2].after.as_mut().unwrap().process = 99;
    assert!(wrong(&[], &twice)[0].starts_with("rank 1 runs 2 times, at "));
    let mut other = healthy.clone();
    other[1].after.as_mut().unwrap().ranks = 4;
    other[2].after.as_mut().unwrap().window = 8;
    assert_eq!(
        wrong(&[], &other),
        [
            "rank 0 reports a job of 3 ranks, rank 1 one of 4",
            "rank 0 reports a window of 4, rank 2 one of 8"
        ]
    );
    let mut late = healthy.clone();
    late[0].after.as_mut().unwrap().age_ms = 3200.0;
    late[1].after = Err("nothing answers".to_owned());
    let told = wrong(&[], &late);
    assert_eq!(
        told,
        [
            "its status is 3.2 s old: process 70 computes or hangs",
            "nothing answers"
        ]
    );
    let mut lossy = healthy;
    let counters = &mut lossy[0].after.as_mut().unwrap().counters;
    counters.insert("weir_lost_frames_total".to_owned(), 12);
    let found = judge(&[], &lossy, APART);
    assert_names(texts(&found, Level::Note)[0], "dropped 12 frames");
}
