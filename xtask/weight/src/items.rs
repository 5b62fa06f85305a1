//! Reads the items of one module: declared modules, names, imports and every path in the code.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{Kind, Token};

/// Items of one module, without items under `#[cfg(test)]`.
#[derive(Debug, Default)]
pub struct Items<'a> {
    /// Modules that this module declares, in order. Modules under `#[cfg(test)]` are among them.
    pub modules: Vec<Declared<'a>>,
    /// Names of all items except modules.
    pub names: BTreeSet<&'a str>,
    /// All words in macro calls at the level of items: such a call may define items of these names.
    pub macro_words: BTreeSet<&'a str>,
    /// Imported names, each with the paths that it stands for.
    pub imports: BTreeMap<&'a str, Vec<&'a str>>,
    /// Paths of modules from which a glob imports all names.
    pub globs: BTreeSet<Vec<&'a str>>,
    /// All paths in the code, each with a line that contains it: the paths of imports, and every path of two or more segments.
    pub paths: BTreeMap<Vec<&'a str>, usize>,
    /// Single names that may refer to items, each with a line that contains it: names that begin with a capital or are called.
    pub single_names: BTreeMap<&'a str, usize>,
    /// Number of lines of the module's items under `#[cfg(test)]`.
    pub test_lines: usize,
}

/// A declaration of a module.
#[derive(Debug)]
pub struct Declared<'a> {
    /// Name of the declared module.
    pub name: &'a str,
    /// Line of the declaration, from 1.
    pub line: usize,
    /// Path in the attribute `#[path = "…"]`; `None` without this attribute.
    pub path: Option<&'a str>,
    /// Whether the module is compiled for tests only.
    pub test: bool,
    /// Items of an inline module; `None` if the module has a file of its own.
    pub inline: Option<Items<'a>>,
}

/// Keywords of Rust that stand before the name of the item that they define.
const DEFINE: [&str; 9] = [
    "mod", "struct", "enum", "union", "trait", "fn", "type", "const", "static",
];

impl<'a> Items<'a> {
    /// Reads the items in the tokens of a file or of an inline module.
    pub fn read(tokens: &[Token<'a>]) -> Self {
        let mut items = Self::default();
        let mut rest = tokens;
        while !rest.is_empty() {
            let item = Item::first(rest);
            rest = &rest[item.tokens.len()..];
            items.add(item);
        }
        items
    }

    fn add(&mut self, item: Item<'_, 'a>) {
        if item.test {
            let (first, last) = (item.tokens.first(), item.tokens.last());
            if let (Some(first), Some(last)) = (first, last) {
                self.test_lines += last.last_line - first.line + 1;
            }
        }
        match (item.keyword, item.name) {
            ("mod", Some(name)) => {
                let body = item.tokens.last().and_then(|token| token.group('{'));
                let inline = body.map(Items::read);
                if let (Some(inline), false) = (&inline, item.test) {
                    self.test_lines += inline.test_lines;
                }
                self.modules.push(Declared {
                    name,
                    line: item.tokens[item.keyword_at].line,
                    path: item.path,
                    test: item.test,
                    inline,
                });
                return;
            }
            _ if item.test => return,
            ("use", _) => {}
            ("impl" | "trait" | "extern", name) => {
                self.names.extend(name);
                // Only the inner items know which code is under `#[cfg(test)]`.
                if let Some(body) = item.tokens.last().and_then(|token| token.group('{')) {
                    self.code(&item.tokens[..item.tokens.len() - 1], &mut Vec::new());
                    let inner = Items::read(body);
                    self.test_lines += inner.test_lines;
                    self.paths.extend(inner.paths);
                    self.single_names.extend(inner.single_names);
                    if item.keyword == "extern" {
                        self.names.extend(inner.names);
                    }
                    return;
                }
            }
            (_, Some(name)) => {
                self.names.insert(name);
            }
            (_, None) => words(item.tokens, &mut self.macro_words),
        }
        let mut local = Vec::new();
        self.code(item.tokens, &mut local);
        if item.keyword == "use" {
            for (name, path) in local {
                self.imports.entry(name).or_insert(path);
            }
        }
    }

    /// Collects the paths in the code `tokens`. `local` has the imports of the enclosing blocks:
    /// names that stand for the first segment of a path.
    fn code(&mut self, tokens: &[Token<'a>], local: &mut Vec<(&'a str, Vec<&'a str>)>) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match &token.kind {
                Kind::Group(_, inner) => {
                    let outer = local.len();
                    self.code(inner, local);
                    local.truncate(outer);
                    at += 1;
                }
                Kind::Word("use") if !tokens.get(at + 1).is_some_and(|t| t.is_mark('<')) => {
                    let rest = &tokens[at + 1..];
                    let length = rest.iter().take_while(|token| !token.is_mark(';')).count();
                    self.imported(&rest[..length], &mut Vec::new(), local);
                    at += length + 1;
                }
                Kind::Word(_) => at += self.path(tokens, at, local),
                _ => at += 1,
            }
        }
    }

    /// Collects the path that begins at the token with index `at`, and returns the number of the path's tokens.
    fn path(
        &mut self,
        tokens: &[Token<'a>],
        at: usize,
        local: &[(&'a str, Vec<&'a str>)],
    ) -> usize {
        let path = segments(&tokens[at..]);
        let length = 2 * path.len() - 1;
        let before = |count: usize| at.checked_sub(count).map(|index| &tokens[index]);
        let is = |count, mark| before(count).is_some_and(|token: &Token| token.is_mark(mark));
        // A field or a method; a part of a longer path; a parameter of a macro.
        let no_path = is(1, '.') && !is(2, '.')
            || before(1).is_some_and(|token| token.kind == Kind::Separator)
            || is(1, '$') && path[0] != "crate";
        if no_path {
            return length;
        }
        let line = tokens[at].line;
        if path.len() > 1 {
            let import = local.iter().rev().find(|(name, _)| *name == path[0]);
            let path = match import {
                Some((_, start)) => [start, &path[1..]].concat(),
                None => path,
            };
            self.paths.entry(path).or_insert(line);
            return length;
        }
        let mark = |ahead: usize, mark| tokens.get(at + ahead).is_some_and(|t| t.is_mark(mark));
        let called = mark(1, '!') || tokens.get(at + 1).is_some_and(|t| t.group('(').is_some());
        let defined = before(1)
            .and_then(Token::word)
            .is_some_and(|keyword| DEFINE.contains(&keyword));
        // `Item = u8` in the bounds of a type.
        let binding = mark(1, '=') && !mark(2, '=') && !mark(2, '>');
        let refers = called || path[0].starts_with(char::is_uppercase);
        if refers && !defined && !binding {
            self.single_names.entry(path[0]).or_insert(line);
        }
        length
    }

    /// Collects the names that a `use` declaration imports; its tokens come without keyword and semicolon.
    fn imported(
        &mut self,
        tokens: &[Token<'a>],
        start: &mut Vec<&'a str>,
        local: &mut Vec<(&'a str, Vec<&'a str>)>,
    ) {
        for tree in tokens.split(|token| token.is_mark(',')) {
            let Some(first) = tree.first() else { continue };
            let outer = start.len();
            let mut alias = None;
            let mut words = tree.iter();
            while let Some(token) = words.next() {
                match &token.kind {
                    Kind::Word("as") => alias = words.next().and_then(Token::word),
                    Kind::Word("self") if start.len() > outer || outer > 0 => {}
                    Kind::Word(word) => start.push(word),
                    Kind::Group('{', inner) => {
                        self.imported(inner, start, local);
                        alias = Some("");
                    }
                    Kind::Mark('*') => {
                        self.paths.entry(start.clone()).or_insert(token.line);
                        self.globs.insert(start.clone());
                        alias = Some("");
                    }
                    // A path that begins with `::` begins with another crate.
                    Kind::Separator if start.is_empty() => start.push("::"),
                    _ => {}
                }
            }
            if alias != Some("")
                && let Some(last) = start.last()
            {
                self.paths.entry(start.clone()).or_insert(first.line);
                local.push((alias.unwrap_or(last), start.clone()));
            }
            start.truncate(outer);
        }
    }
}

/// The segments of the path that begins with the first token, without generic arguments.
fn segments<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let mut path: Vec<_> = tokens[0].word().into_iter().collect();
    for pair in tokens[1..].chunks_exact(2) {
        match (&pair[0].kind, &pair[1].kind) {
            (Kind::Separator, Kind::Word(word)) => path.push(word),
            _ => break,
        }
    }
    path
}

/// Collects all words of the tokens, also inside brackets.
fn words<'a>(tokens: &[Token<'a>], found: &mut BTreeSet<&'a str>) {
    for token in tokens {
        match &token.kind {
            Kind::Word(word) => {
                found.insert(word);
            }
            Kind::Group(_, inner) => words(inner, found),
            _ => {}
        }
    }
}

/// The tokens of one item.
struct Item<'t, 'a> {
    tokens: &'t [Token<'a>],
    keyword: &'a str,
    keyword_at: usize,
    name: Option<&'a str>,
    path: Option<&'a str>,
    test: bool,
}

impl<'t, 'a> Item<'t, 'a> {
    /// The item that begins with the first of the tokens.
    fn first(tokens: &'t [Token<'a>]) -> Self {
        let word = |at: usize| tokens.get(at).and_then(Token::word);
        let group = |at: usize, bracket| tokens.get(at).and_then(|token| token.group(bracket));
        let (mut at, mut test, mut path) = (0, false, None);
        while tokens.get(at).is_some_and(|token| token.is_mark('#')) {
            let inner = usize::from(tokens.get(at + 1).is_some_and(|token| token.is_mark('!')));
            let Some(attribute) = group(at + 1 + inner, '[') else {
                break;
            };
            match attribute {
                [name, condition] if name.word() == Some("cfg") => {
                    test |= condition.group('(').is_some_and(needs_test);
                }
                [name, _, value] if name.word() == Some("path") => {
                    if let Kind::Text(text) = value.kind {
                        path = Some(text);
                    }
                }
                _ => {}
            }
            at += 2 + inner;
        }
        if word(at) == Some("pub") {
            at += 1 + usize::from(group(at + 1, '(').is_some());
        }
        loop {
            let qualifies = match word(at) {
                Some("unsafe" | "async" | "default" | "safe") => true,
                Some("const") => matches!(word(at + 1), Some("unsafe" | "async" | "extern" | "fn")),
                Some("extern") => group(at + 1, '{').is_none() && group(at + 2, '{').is_none(),
                _ => matches!(tokens.get(at).map(|t| &t.kind), Some(Kind::Text(_))),
            };
            if !qualifies {
                break;
            }
            at += 1;
        }
        let keyword = word(at).unwrap_or("");
        let name_at = match (keyword, word(at + 1)) {
            ("static", Some("mut")) => at + 2,
            ("macro_rules", _) => at + 2,
            (keyword, _) if DEFINE.contains(&keyword) => at + 1,
            _ => usize::MAX,
        };
        let end = tokens.iter().skip(at).position(|token| {
            token.is_mark(';')
                || token.group('{').is_some()
                    && !matches!(keyword, "use" | "const" | "static" | "type")
        });
        let length = end.map_or(tokens.len(), |end| at + end + 1);
        Self {
            tokens: &tokens[..length],
            keyword,
            keyword_at: at.min(length - 1),
            name: word(name_at),
            path,
            test,
        }
    }
}

/// Whether the predicates of a `cfg` attribute hold in tests only.
fn needs_test(predicates: &[Token]) -> bool {
    match predicates {
        [word] => word.word() == Some("test"),
        [operator, arguments] => {
            let Some(arguments) = arguments.group('(') else {
                return false;
            };
            let mut each = arguments
                .split(|token| token.is_mark(','))
                .filter(|argument| !argument.is_empty())
                .map(needs_test);
            match operator.word() {
                Some("all") => each.any(|needed| needed),
                Some("any") => each.all(|needed| needed),
                _ => false,
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens;

    fn items(text: &str) -> Items<'_> {
        Items::read(&tokens::parse(text).expect("Rust"))
    }

    fn paths(text: &str) -> Vec<String> {
        items(text)
            .paths
            .keys()
            .map(|path| path.join("::"))
            .collect()
    }

    #[test]
    fn the_names_of_items_are_found() {
        let text = "
            #![allow(dead_code)]
            #[derive(Debug)] pub struct A<const N: usize>(*const F) where F: Copy;
            pub(crate) enum B { C } union D { a: u8 } pub unsafe trait E {} impl E for B {}
            pub const fn f() -> [u8; { 1 }] { const INNER: u8 = 1; } async fn g() {}
            unsafe extern \"C\" { fn h(); } pub extern \"C\" fn i() {}
            type J = fn(u8) -> u8; const K: u8 = { 1 }; static mut L: u8 = 0;
            macro_rules! m { () => {} } made! { N }
        ";
        let items = items(text);
        let expected = ["A", "B", "D", "E", "J", "K", "L", "f", "g", "h", "i", "m"];
        assert_eq!(Vec::from_iter(items.names), expected);
        assert_eq!(Vec::from_iter(items.macro_words), ["N", "made"]);
    }

    #[test]
    fn imports_are_read_with_their_names() {
        let text = "use a::{self, b as c, d::{e, f::*}}; pub(crate) use self::g; use ::h::i;";
        let items = items(text);
        let imports: Vec<_> = items
            .imports
            .iter()
            .map(|(name, path)| format!("{name} = {}", path.join("/")))
            .collect();
        let expected = ["a = a", "c = a/b", "e = a/d/e", "g = self/g", "i = ::/h/i"];
        assert_eq!(imports, expected);
        assert_eq!(Vec::from_iter(items.globs), [["a", "d", "f"]]);
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        let text = "
            #[derive(a::A)] struct S { b: b::B<c::C> }
            fn f(x: &dyn d::D) -> <e::E as f::F>::Out {
                match x { g::G { .. } => log!(\"{}\", h::H), 0..i::I => $crate::j::J }
                x.field::<k::K>(); l::L::<m::M>::n::<o::O>();
            }
            macro_rules! r { () => { $p::P; $crate::q::Q } }
        ";
        let expected = [
            "a::A",
            "b::B",
            "c::C",
            "crate::j::J",
            "crate::q::Q",
            "d::D",
            "e::E",
            "f::F",
            "g::G",
            "h::H",
            "i::I",
            "k::K",
            "l::L",
            "m::M",
            "o::O",
        ];
        assert_eq!(paths(text), expected);
    }

    #[test]
    fn an_import_in_a_block_holds_in_that_block() {
        let text = "fn f() { { use a::b as c; c::d() } c::e() }";
        assert_eq!(paths(text), ["a::b", "a::b::d", "c::e"]);
    }

    #[test]
    fn items_for_tests_are_left_out_and_their_lines_counted() {
        let text = "use a::A;
            #[cfg(test)]
            mod tests {
                use b::B;
            }
            #[cfg(all(test, feature = \"x\"))] use c::C;
            #[cfg(any(test, unix))] use d::D;
            #[cfg(not(test))] use e::E;
            #[cfg(test)]
            mod file;
            impl A {
                #[cfg(test)]
                fn f() {}
            }
            mod inline {
                #[cfg(any(test, all(unix, test)))]
                const N: f::F = 1;
            }";
        let items = items(text);
        let paths: Vec<_> = items.paths.keys().map(|path| path.join("::")).collect();
        assert_eq!(paths, ["a::A", "d::D", "e::E"]);
        assert_eq!(items.test_lines, 4 + 1 + 2 + 2 + 2);
        let modules = items
            .modules
            .iter()
            .map(|module| (module.name, module.test));
        let expected = [("tests", true), ("file", true), ("inline", false)];
        assert_eq!(Vec::from_iter(modules), expected);
    }
}
