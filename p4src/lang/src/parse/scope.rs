//! Scopes of declared names, as far as the grammar needs them: whether a name is a type.

use hashbrown::HashMap;

/// The meaning of a name: a type, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Type, extern, parser, control, package, type parameter.
    Type,
    /// Variable, constant, instance, function, action, table.
    Object,
}

/// Declared names, with the innermost meaning last.
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

    /// The meaning of a name; `None` if it is not declared.
    pub(super) fn meaning(&self, name: &str) -> Option<Meaning> {
        self.names.get(name)?.last().copied()
    }
}
