//! Finds import cycles between sibling modules.
//!
//! The rule, for each library, program, example and benchmark of each crate:
//!
//! 1. Module `m` uses module `n` if a path in `m` leads to an item that `n` defines, or to `n`
//!    itself. Code under `#[cfg(test)]` and the files in `tests` do not count.
//! 2. A path is what a `use` declaration imports, or two or more names joined by `::` anywhere else
//!    in the code: in expressions, types, patterns, attributes and the arguments of macros. A name
//!    that stands alone counts if a glob import (`use a::*`) brings it.
//! 3. A path is followed through `crate`, `self`, `super`, imports, re-exports and globs to the
//!    module that defines the item. `use crate::Packet`, where the root has `pub use a::Packet`, is
//!    a use of `a`. Enum variants, associated items and fields belong to the module of their type.
//! 4. A use of `a::b::c` by `a::d::e` is a use of `a::b` by `a::d`: it counts for the two siblings
//!    that contain its ends. Uses between a module and its ancestors do not count.
//! 5. Siblings form a cycle if each reaches each other by uses, directly or by way of others of
//!    them. A cycle has as many members as possible, so a module is in one cycle at most.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::Tree;

/// Import cycle: sibling modules that reach each other by uses.
#[derive(Debug)]
pub struct Cycle {
    /// Paths of the cycle's modules from the crate's root.
    pub modules: BTreeSet<String>,
    /// All direct uses between modules of the cycle.
    pub uses: Vec<Use>,
}

/// Uses of one module's items by another module, without modules in between.
#[derive(Debug)]
pub struct Use {
    /// Path of the module whose code uses the items.
    pub user: String,
    /// Path of the module that defines the items.
    pub used: String,
    /// Number of different paths in the code, by the files that contain them.
    pub count: usize,
    /// File, line and text of one of these paths in the code.
    pub example: String,
}

/// For each module, the siblings that it uses, with the paths of these uses.
type Uses = BTreeMap<usize, BTreeMap<usize, Vec<String>>>;

/// Finds all import cycles in a module tree.
pub fn find(tree: &Tree) -> Vec<Cycle> {
    let uses = between_siblings(tree);
    let reached: BTreeMap<_, _> = uses
        .keys()
        .map(|from| (*from, reachable(&uses, *from)))
        .collect();
    let reaches = |from: usize, to| reached.get(&from).is_some_and(|found| found.contains(&to));
    let mut cycles = Vec::new();
    for (&first, found) in &reached {
        let members = found.iter().copied().filter(|other| reaches(*other, first));
        let members: BTreeSet<_> = members.collect();
        if members.first() == Some(&first) {
            cycles.push(cycle(tree, &uses, &members));
        }
    }
    cycles
}

fn cycle(tree: &Tree, uses: &Uses, members: &BTreeSet<usize>) -> Cycle {
    let mut direct = Vec::new();
    for user in members {
        for (used, paths) in uses.get(user).into_iter().flatten() {
            if members.contains(used) {
                direct.push(Use {
                    user: tree.path(*user),
                    used: tree.path(*used),
                    count: paths.len(),
                    example: paths[0].clone(),
                });
            }
        }
    }
    Cycle {
        modules: members.iter().map(|module| tree.path(*module)).collect(),
        uses: direct,
    }
}

fn between_siblings(tree: &Tree) -> Uses {
    let mut uses = Uses::new();
    for (index, module) in tree.modules.iter().enumerate() {
        if module.test {
            continue;
        }
        let own = tree.ancestors(index);
        for (used, path, line) in tree.used_by(index) {
            let others = tree.ancestors(used);
            let ends = own.iter().zip(&others).find(|(own, other)| own != other);
            if let Some((&user, &used)) = ends {
                let text = format!("{}:{line}: `{path}`", module.file.display());
                uses.entry(user)
                    .or_default()
                    .entry(used)
                    .or_default()
                    .push(text);
            }
        }
    }
    uses
}

/// Indexes of the modules that `from` reaches by one use or more.
fn reachable(uses: &Uses, from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let next = uses.get(&module).into_iter().flat_map(BTreeMap::keys);
        open.extend(next.filter(|to| reached.insert(**to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Texts;
    use std::path::{Path, PathBuf};

    /// The members of each cycle.
    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
        let texts: Texts = files.collect();
        let tree = Tree::read(Path::new("src/lib.rs"), &texts).expect("a tree");
        let cycles = find(&tree).into_iter();
        let members = cycles.map(|cycle| Vec::from_iter(cycle.modules).join(" "));
        members.collect()
    }

    const ROOT: (&str, &str) = ("src/lib.rs", "mod a; mod b; mod c; pub use b::B;");

    #[test]
    fn siblings_that_use_each_other_are_a_cycle() {
        let files = [
            ROOT,
            ("src/a.rs", "use crate::B;"),
            ("src/b.rs", "pub struct B(crate::a::A);"),
            ("src/c.rs", "use crate::a; use crate::b;"),
        ];
        assert_eq!(cycles(&files), ["a b"]);
    }

    #[test]
    fn a_cycle_may_lead_by_way_of_others() {
        let files = [
            ROOT,
            ("src/a.rs", "use crate::b;"),
            ("src/b.rs", "use crate::c;"),
            ("src/c.rs", "use crate::a;"),
        ];
        assert_eq!(cycles(&files), ["a b c"]);
    }

    #[test]
    fn uses_by_tests_and_of_ancestors_are_none() {
        let files = [
            ROOT,
            ("src/a.rs", "use crate::b; use crate::Root;"),
            (
                "src/b.rs",
                "#[cfg(test)] mod tests { use crate::a; } // crate::a",
            ),
            ("src/c.rs", "mod d; use d::D; fn f() { \"crate::a\" }"),
            ("src/c/d.rs", "use super::f; use crate::c;"),
        ];
        assert_eq!(cycles(&files), Vec::<String>::new());
    }

    #[test]
    fn a_use_between_deep_modules_counts_where_their_paths_part() {
        let files = [
            (
                "src/lib.rs",
                "mod a { pub mod x; pub mod y; } mod b { pub mod z; }",
            ),
            ("src/a/x.rs", "use crate::b::z::Z; use super::y;"),
            ("src/a/y.rs", "use crate::a::x;"),
            ("src/b/z.rs", "pub struct Z(crate::a::y::Y);"),
        ];
        assert_eq!(cycles(&files), ["a b", "a::x a::y"]);
    }

    #[test]
    fn the_uses_of_a_cycle_are_those_between_its_members() {
        let texts = Texts::from([
            ("src/lib.rs".into(), "mod a; mod b; mod c;".into()),
            (
                "src/a.rs".into(),
                "\nuse crate::b;\nuse crate::b::B;".into(),
            ),
            ("src/b.rs".into(), "use crate::a;".into()),
            ("src/c.rs".into(), "use crate::a;".into()),
        ]);
        let tree = Tree::read(Path::new("src/lib.rs"), &texts).expect("a tree");
        let [cycle] = &find(&tree)[..] else {
            panic!("not one cycle")
        };
        let uses = cycle
            .uses
            .iter()
            .map(|u| (&u.user[..], &u.used[..], u.count, &u.example[..]));
        let expected = [
            ("a", "b", 2, "src/a.rs:2: `crate::b`"),
            ("b", "a", 1, "src/b.rs:1: `crate::a`"),
        ];
        assert_eq!(Vec::from_iter(uses), expected);
    }
}
