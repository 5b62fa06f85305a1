//! Builds the module tree of one library, program or example, and finds the module in which a path's item is defined.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::items::{Declared, Items};
use crate::tokens;

/// Text of each Rust file, by its path.
pub type Texts = BTreeMap<PathBuf, String>;

/// Module tree of one library, program or example. The root comes first, and each module after its parent.
pub struct Tree<'a> {
    /// All modules, modules for tests included.
    pub modules: Vec<Module<'a>>,
}

/// A module in the module tree.
pub struct Module<'a> {
    /// Name of the module in its declaration; empty for the root.
    pub name: &'a str,
    /// Index of the module that declares this module; `None` for the root.
    pub parent: Option<usize>,
    /// Indices of the modules that this module declares.
    pub children: Vec<usize>,
    /// Path of the file that contains the module.
    pub file: PathBuf,
    /// Whether only tests compile the module.
    pub test: bool,
    /// Items of the module.
    pub items: Items<'a>,
}

/// Target of a path in the code.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Module(usize),
    /// An item that the module with this index defines.
    ItemOf(usize),
    /// Another crate, or a name that no `use` declaration imports.
    Elsewhere,
}

impl<'a> Tree<'a> {
    /// Builds the tree from the text of the root file, and the texts of the modules that it declares.
    ///
    /// # Errors
    /// If a file cannot be split into tokens, or a declared module has no file.
    pub fn read(root: &Path, texts: &'a Texts) -> Result<Self> {
        let mut tree = Self {
            modules: Vec::new(),
        };
        let module = Module {
            name: "",
            parent: None,
            children: Vec::new(),
            file: root.to_path_buf(),
            test: false,
            items: read_file(root, texts)?,
        };
        tree.add(module, root.parent().unwrap_or(Path::new("")), texts)?;
        Ok(tree)
    }

    /// Adds a module and the modules that it declares, whose files lie in `folder`.
    fn add(&mut self, mut module: Module<'a>, folder: &Path, texts: &'a Texts) -> Result<()> {
        let index = self.modules.len();
        let declared = std::mem::take(&mut module.items.modules);
        let (file, test) = (module.file.clone(), module.test);
        if let Some(parent) = module.parent {
            self.modules[parent].children.push(index);
        }
        self.modules.push(module);
        for Declared {
            name,
            line,
            path,
            test: declared_for_test,
            inline,
        } in declared
        {
            let below = folder.join(name);
            let mut module = Module {
                name,
                parent: Some(index),
                children: Vec::new(),
                file: file.clone(),
                test: test || declared_for_test,
                items: Items::default(),
            };
            if let Some(items) = inline {
                module.items = items;
                self.add(module, &below, texts)?;
                continue;
            }
            let candidates = match path {
                Some(path) => vec![file.parent().unwrap_or(Path::new("")).join(path)],
                None => vec![below.with_extension("rs"), below.join("mod.rs")],
            };
            let Some(found) = candidates.iter().find(|path| texts.contains_key(*path)) else {
                bail!(
                    "{}:{line}: module `{name}` has no file; looked for {candidates:?}",
                    file.display(),
                );
            };
            module.file = found.clone();
            module.items = read_file(found, texts)?;
            let beside = path.is_some() || found.ends_with("mod.rs");
            let folder = found.parent().filter(|_| beside).unwrap_or(&below);
            self.add(module, folder, texts)?;
        }
        Ok(())
    }

    /// Path of a module from the root, without `crate`.
    pub fn path(&self, module: usize) -> String {
        let names: Vec<_> = self
            .ancestors(module)
            .iter()
            .skip(1)
            .map(|module| self.modules[*module].name)
            .collect();
        names.join("::")
    }

    /// Indices of the modules from the root to `module`, both included.
    pub fn ancestors(&self, module: usize) -> Vec<usize> {
        let parents = |module: &usize| self.modules[*module].parent;
        let mut found: Vec<_> = std::iter::successors(Some(module), parents).collect();
        found.reverse();
        found
    }

    /// Modules that `module` uses: (index, path in the code, line of the path), in the order of the lines.
    pub fn used_by(&self, module: usize) -> Vec<(usize, String, usize)> {
        let items = &self.modules[module].items;
        let paths = items.paths.iter().filter_map(|(path, line)| {
            let target = self.target(module, path, false, &mut Vec::new());
            Some((target.module()?, path.join("::"), *line))
        });
        let single = items.single_names.iter().filter_map(|(name, line)| {
            let target = self.by_glob(module, name, false, &mut Vec::new())?;
            Some((target.module()?, (*name).to_owned(), *line))
        });
        let mut used: Vec<_> = paths.chain(single).collect();
        used.sort_by_key(|(_, _, line)| *line);
        used
    }

    /// Finds the target of a path in the code of `module`. `leads_on` says that further segments
    /// follow it. `open` has the names that are being looked up.
    fn target(
        &self,
        module: usize,
        path: &[&'a str],
        leads_on: bool,
        open: &mut Vec<(usize, &'a str)>,
    ) -> Target {
        let mut target = Target::Module(module);
        for (index, segment) in path.iter().enumerate() {
            let Target::Module(at) = target else {
                return target;
            };
            let leads_on = leads_on || index + 1 < path.len();
            target = match *segment {
                "crate" => Target::Module(0),
                "self" => Target::Module(at),
                "super" => Target::Module(self.modules[at].parent.unwrap_or(0)),
                name => match self.named(at, name, leads_on, open) {
                    Some(target) => target,
                    None if index == 0 => Target::Elsewhere,
                    // A macro has defined it, or the code does not compile.
                    None => Target::ItemOf(at),
                },
            };
        }
        target
    }

    /// Finds the target of a name in a module. `leads_on`: a further segment of the path follows the name.
    fn named(
        &self,
        module: usize,
        name: &'a str,
        leads_on: bool,
        open: &mut Vec<(usize, &'a str)>,
    ) -> Option<Target> {
        let Module {
            items, children, ..
        } = &self.modules[module];
        let child = || {
            let mut children = children.iter();
            children.find(|child| self.modules[**child].name == name)
        };
        let defined = items.names.contains(name);
        match child() {
            Some(child) if leads_on || !defined => return Some(Target::Module(*child)),
            _ if defined => return Some(Target::ItemOf(module)),
            _ => {}
        }
        if open.contains(&(module, name)) {
            return None;
        }
        open.push((module, name));
        let found = match items.imports.get(name) {
            Some(path) => Some(self.target(module, path, leads_on, open)),
            None => self.by_glob(module, name, leads_on, open),
        };
        open.pop();
        let by_macro = || items.macro_words.contains(name);
        found.or_else(|| by_macro().then_some(Target::ItemOf(module)))
    }

    /// Finds the target of a name that only a glob import brings into a module.
    fn by_glob(
        &self,
        module: usize,
        name: &'a str,
        leads_on: bool,
        open: &mut Vec<(usize, &'a str)>,
    ) -> Option<Target> {
        let Module {
            items, children, ..
        } = &self.modules[module];
        let own = items.names.contains(name)
            || items.imports.contains_key(name)
            || children
                .iter()
                .any(|child| self.modules[*child].name == name);
        if own {
            return None;
        }
        items
            .globs
            .iter()
            .find_map(|path| match self.target(module, path, true, open) {
                Target::Module(from) if from != module => self.named(from, name, leads_on, open),
                _ => None,
            })
    }
}

impl Target {
    fn module(self) -> Option<usize> {
        match self {
            Self::Module(module) | Self::ItemOf(module) => Some(module),
            Self::Elsewhere => None,
        }
    }
}

fn read_file<'a>(path: &Path, texts: &'a Texts) -> Result<Items<'a>> {
    let text = texts
        .get(path)
        .with_context(|| format!("{} is not there", path.display()))?;
    let tokens = tokens::parse(text).with_context(|| path.display().to_string())?;
    Ok(Items::read(&tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Texts {
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
        files.collect()
    }

    /// The paths in module `user` with the modules that they lead to.
    fn used(user: &str, files: &[(&str, &str)]) -> Vec<String> {
        let texts = texts(files);
        let tree = Tree::read(Path::new("src/lib.rs"), &texts).expect("a tree");
        let modules = 0..tree.modules.len();
        let user = modules
            .into_iter()
            .find(|module| tree.path(*module) == user);
        let mut used: Vec<_> = tree
            .used_by(user.expect("the module"))
            .into_iter()
            .map(|(module, path, _)| format!("{path} in {}", tree.path(module)))
            .collect();
        used.sort();
        used
    }

    #[test]
    fn modules_are_found_where_rustc_looks_for_them() {
        let texts = texts(&[
            (
                "src/lib.rs",
                "mod a; mod b; mod c { mod d; } #[path = \"x/y.rs\"] mod e;",
            ),
            ("src/a.rs", "mod f; #[cfg(test)] mod tests;"),
            ("src/a/f.rs", ""),
            ("src/a/tests/mod.rs", "mod g;"),
            ("src/a/tests/g.rs", ""),
            ("src/b/mod.rs", "mod h;"),
            ("src/b/h.rs", ""),
            ("src/c/d.rs", ""),
            ("src/x/y.rs", "mod i;"),
            ("src/x/i.rs", ""),
        ]);
        let tree = Tree::read(Path::new("src/lib.rs"), &texts).expect("a tree");
        let modules = tree.modules.iter().enumerate();
        let modules = modules.map(|(index, module)| {
            let kind = if module.test { " (test)" } else { "" };
            format!("{}{kind}: {}", tree.path(index), module.file.display())
        });
        let expected = [
            ": src/lib.rs",
            "a: src/a.rs",
            "a::f: src/a/f.rs",
            "a::tests (test): src/a/tests/mod.rs",
            "a::tests::g (test): src/a/tests/g.rs",
            "b: src/b/mod.rs",
            "b::h: src/b/h.rs",
            "c: src/lib.rs",
            "c::d: src/c/d.rs",
            "e: src/x/y.rs",
            "e::i: src/x/i.rs",
        ];
        assert_eq!(modules.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_module_without_a_file_is_an_error() {
        let texts = texts(&[("src/lib.rs", "\nmod a;")]);
        let error = Tree::read(Path::new("src/lib.rs"), &texts)
            .err()
            .expect("an error");
        let start = "src/lib.rs:2: module `a` has no file";
        assert!(error.to_string().starts_with(start), "{error}");
    }

    #[test]
    fn paths_are_followed_from_crate_self_and_super() {
        let files = [
            (
                "src/lib.rs",
                "mod a { pub mod x { pub struct X; } pub mod y; } mod b { pub fn f() {} }",
            ),
            (
                "src/a/y.rs",
                "mod z { pub const Z: u8 = 0; }
                 use super::x::X; use self::z::Z; use std::fs; use ::b::g;
                 fn f() { crate::b::f(); super::super::b::f(); z::Z; fs::read(); X::new() }",
            ),
        ];
        let expected = [
            "X::new in a::x",
            "crate::b::f in b",
            "self::z::Z in a::y::z",
            "super::super::b::f in b",
            "super::x::X in a::x",
            "z::Z in a::y::z",
        ];
        assert_eq!(used("a::y", &files), expected);
    }

    #[test]
    fn reexports_lead_to_the_module_that_defines_the_item() {
        let files = [
            (
                "src/lib.rs",
                "mod a; mod b; mod c; pub use a::A; pub use b::*; pub use std::fmt::Debug;",
            ),
            (
                "src/a.rs",
                "pub use self::deep::Deep as A; mod deep { pub struct Deep; }",
            ),
            (
                "src/b.rs",
                "pub use inner::*; mod inner { pub enum B { V } ids! { Made } }",
            ),
            (
                "src/c.rs",
                "use crate::{A, B::V, Debug, Made}; type T = crate::B;",
            ),
        ];
        let expected = [
            "crate::A in a::deep",
            "crate::B in b::inner",
            "crate::B::V in b::inner",
            "crate::Made in b::inner",
        ];
        assert_eq!(used("c", &files), expected);
    }

    #[test]
    fn a_single_name_counts_if_a_glob_brings_it() {
        let files = [
            (
                "src/lib.rs",
                "mod a { use super::b::Other; pub mod c; } mod b;",
            ),
            (
                "src/b.rs",
                "pub struct Thing; pub struct Other; pub fn call() {} pub fn value() {}",
            ),
            (
                "src/a/c.rs",
                "use super::*; use crate::b::*; struct Own;
                 fn f(o: Other) { call(); o.Thing(); value; Own; Unknown; }
                 impl Deref for Own { type Thing = u8; }",
            ),
        ];
        let expected = ["Other in b", "call in b", "crate::b in b", "super in a"];
        assert_eq!(used("a::c", &files), expected);
    }

    #[test]
    fn a_module_and_a_function_may_share_a_name() {
        let files = [
            ("src/lib.rs", "mod a; mod parse; pub use parse::parse;"),
            ("src/parse.rs", "pub fn parse() {} pub fn other() {}"),
            ("src/a.rs", "use crate::parse; fn f() { parse::other() }"),
        ];
        let expected = ["crate::parse in parse", "parse::other in parse"];
        assert_eq!(used("a", &files), expected);
    }

    #[test]
    fn imports_in_a_circle_end() {
        let files = [
            (
                "src/lib.rs",
                "mod a { pub use super::b::*; } mod b { pub use super::a::*; } mod c;",
            ),
            ("src/c.rs", "use crate::a::Missing; use c::c;"),
        ];
        assert_eq!(used("c", &files), ["crate::a::Missing in a"]);
    }
}
