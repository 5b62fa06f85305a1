//! How much a file can make the checks do: what is too much is refused before it is looked at piece by piece.

use scenario::load;

fn told(text: &str) -> Vec<String> {
    let found = load("t.yaml", text).expect_err("it is too much").0;
    found.iter().map(ToString::to_string).collect()
}

fn hosts(count: usize) -> String {
    let names: Vec<String> = (0..count).map(|n| format!("h{n}")).collect();
    names.join(", ")
}

#[test]
fn a_star_has_as_many_hosts_as_any_network() {
    let text = format!(
        "weir: 1\nname: x\ntopology: {{star: {{hosts: [{}]}}}}\n",
        hosts(2400)
    );
    let told = told(&text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].ends_with("[capacity] 2400 hosts; a topology has at most 512"),
        "{told:?}"
    );
}

#[test]
fn pairs_are_counted_before_they_are_expanded() {
    let all = hosts(300);
    let text = format!(
        "weir: 1\nname: x\ntopology: {{star: {{hosts: [{all}]}}}}\nflows:\n  f: {{from: [{all}], to: [{all}]}}\n"
    );
    let told = told(&text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("[capacity] flow `f` has 90000 pairs of hosts"),
        "{told:?}"
    );
}

#[test]
fn of_very_many_errors_the_first_are_shown() {
    let lines = "  - flow.f.lots == 0\n".repeat(40_000);
    let text = format!(
        "weir: 1\nname: x\ntopology: {{star: {{hosts: [a, b]}}}}\nflows:\n  f: {{from: a, to: b}}\nexpect:\n{lines}"
    );
    let told = told(&text);
    assert_eq!(told.len(), 101);
    assert!(
        told[99].starts_with("t.yaml:106:5: [unknown-name]"),
        "{}",
        told[99]
    );
    assert!(
        told[100].contains("more errors than the first 100"),
        "{}",
        told[100]
    );
}
