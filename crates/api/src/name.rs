//! Interned values. Clusters repeat themselves: label keys, namespaces, whole
//! label sets and whole pod specs stand thousands of times. Each distinct one
//! is stored once; copies are pointers, and equality is a pointer comparison.
//!
//! Interned values are counted and freed with their last user, so that a
//! scheduler that runs for months does not keep the labels of every Job it saw.

use std::cmp::Ordering;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;

use internment::ArcIntern;

/// An interned string: a name, label key, label value or the like.
///
/// Equality and hashing look at the pointer; ordering looks at the text, so
/// that ordered collections do not depend on the order of insertion.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name(ArcIntern<str>);

impl Name {
    /// The interned copy of `text`.
    pub fn new(text: &str) -> Self {
        Self(ArcIntern::from(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Default for Name {
    fn default() -> Self {
        Self::new("")
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other {
            return Ordering::Equal;
        }
        self.as_str().cmp(other.as_str())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A shared immutable value of which equal copies are stored once.
///
/// Equality and hashing look at the pointer.
pub struct Interned<T: Eq + Hash + Send + Sync + 'static>(ArcIntern<T>);

impl<T: Eq + Hash + Send + Sync + 'static> Interned<T> {
    /// The stored copy of `value`.
    pub fn new(value: T) -> Self {
        Self(ArcIntern::new(value))
    }
}

impl<T: Eq + Hash + Send + Sync + 'static> Clone for Interned<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Eq + Hash + Send + Sync + 'static> Deref for Interned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Eq + Hash + Send + Sync + Default + 'static> Default for Interned<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Eq + Hash + Send + Sync + 'static> PartialEq for Interned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: Eq + Hash + Send + Sync + 'static> Eq for Interned<T> {}

impl<T: Eq + Hash + Send + Sync + 'static> Hash for Interned<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: Eq + Hash + Send + Sync + fmt::Debug + 'static> fmt::Debug for Interned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
