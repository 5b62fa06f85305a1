//! Scopes of declared names, as far as the grammar needs them: whether a name is a type.

use hashbrown::HashMap;

/// The meaning of a name: a type, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A type: built-in or declared type, extern, parser, control, package, or type parameter.
    Type,
    /// Not a type: variable, constant, instance, function, action, or table.
    Object,
}

/// The names declared so far, each with its meanings in the open scopes, the innermost last.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    names: HashMap<&'a str, Vec<Meaning>>,
    /// Names in order of declaration, to remove them when their scope ends; `None` marks the start of a scope.
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

    /// The innermost meaning of a name; `None` if the name is not declared.
    pub(super) fn meaning(&self, name: &str) -> Option<Meaning> {
        self.names.get(name)?.last().copied()
    }
}
