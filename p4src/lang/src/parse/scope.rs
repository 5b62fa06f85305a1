//! What a name means where it stands, as far as the grammar asks: a type, or not.

use hashbrown::HashMap;

/// A type, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Type, extern, parser, control, package, type parameter.
    Type,
    /// Variable, constant, instance, function, action, table.
    Object,
}

/// Declared names, innermost last.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    names: HashMap<&'a str, Vec<Meaning>>,
    /// Names in order of declaration; `None` opens a scope.
    undo: Vec<Option<&'a str>>,
}

impl<'a> Scopes<'a> {
    pub(super) fn push(&mut self) {
        self.undo.push(None);
    }

    pub(super) fn pop(&mut self) {
        while let Some(Some(name)) = self.undo.pop() {
            if let Some(meanings) = self.names.get_mut(name) {
                meanings.pop();
            }
        }
    }

    pub(super) fn declare(&mut self, name: &'a str, meaning: Meaning) {
        self.names.entry(name).or_default().push(meaning);
        self.undo.push(Some(name));
    }

    /// `None`: not declared.
    pub(super) fn meaning(&self, name: &str) -> Option<Meaning> {
        self.names.get(name)?.last().copied()
    }
}
