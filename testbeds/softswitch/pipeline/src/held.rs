//! What the control plane writes and packets only read.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that one switch owns, or that several look at and none changes.
///
/// Invariant: it is changed only by a switch that owns it, which every one is until it [shares](Held::share) it, and again
/// when it has [regained](Held::regain) it.
#[derive(Debug)]
pub enum Held<T> {
    /// By this switch alone.
    Own(T),
    /// By several.
    Shared(Arc<T>),
}

impl<T: Default> Held<T> {
    /// Another switch may look at it, and this one no longer changes it.
    pub fn share(&mut self) -> Held<T> {
        let shared = match std::mem::take(self) {
            Held::Own(value) => Arc::new(value),
            Held::Shared(value) => value,
        };
        *self = Held::Shared(Arc::clone(&shared));
        Held::Shared(shared)
    }

    /// Owns it again; false while another looks at it.
    pub fn regain(&mut self) -> bool {
        match std::mem::take(self) {
            Held::Own(value) => *self = Held::Own(value),
            Held::Shared(value) => match Arc::try_unwrap(value) {
                Ok(value) => *self = Held::Own(value),
                Err(value) => *self = Held::Shared(value),
            },
        }
        matches!(self, Held::Own(_))
    }
}

impl<T: Default> Default for Held<T> {
    fn default() -> Self {
        Held::Own(T::default())
    }
}

/// A value of its own.
impl<T: Clone> Clone for Held<T> {
    fn clone(&self) -> Self {
        Held::Own(T::clone(self))
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match self {
            Held::Own(value) => value,
            Held::Shared(value) => value,
        }
    }
}

impl<T> DerefMut for Held<T> {
    /// # Panics
    /// If others look at it: the caller has broken the invariant.
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Held::Own(value) => value,
            Held::Shared(_) => changed_while_shared(),
        }
    }
}

#[cold]
fn changed_while_shared() -> ! {
    panic!("what several switches look at is changed by one that does not own it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_who_looks_may_own() {
        let mut first = Held::Own(vec![1]);
        let second = first.share();
        let third = first.share();
        assert_eq!((second.len(), third[0]), (1, 1));
        drop(second);
        assert!(!first.regain());
        assert_eq!(*first, [1]);
        drop(third);
        assert!(first.regain());
        first.push(2);
        assert_eq!(*first, [1, 2]);
    }

    #[test]
    #[should_panic(expected = "does not own it")]
    fn what_is_shared_is_not_changed() {
        let mut first = Held::Own(vec![1]);
        let _second = first.share();
        first.push(2);
    }

    #[test]
    fn a_clone_is_apart() {
        let mut first = Held::Own(vec![1]);
        let _second = first.share();
        let mut third = first.clone();
        third.push(2);
        assert_eq!((first.len(), third.len()), (1, 2));
    }
}
