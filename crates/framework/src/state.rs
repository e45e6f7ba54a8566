//! Data that plugins keep for the length of one pod's cycle.

use std::any::{Any, TypeId};
use std::fmt;

/// What a plugin keeps in a [`CycleState`]; implemented by every type that can
/// be copied and shared.
pub trait CycleData: Any + Send + Sync {
    /// A copy behind a box.
    fn boxed_copy(&self) -> Box<dyn CycleData>;
    /// For looking inside.
    fn as_any(&self) -> &dyn Any;
    /// For looking inside and changing.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Any + Clone + Send + Sync> CycleData for T {
    fn boxed_copy(&self) -> Box<dyn CycleData> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Data of one pod's cycle, one value per type. Plugins use types of their
/// own, so they cannot meet by accident.
///
/// Copied for dry runs, which must not disturb the cycle they start from.
#[derive(Default)]
pub struct CycleState {
    // A cycle holds a handful of values: a scan beats a hash.
    values: Vec<(TypeId, Box<dyn CycleData>)>,
}

impl CycleState {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps `value`, in place of an earlier one of its type.
    pub fn put<T: CycleData>(&mut self, value: T) {
        let id = TypeId::of::<T>();
        match self.values.iter_mut().find(|(other, _)| *other == id) {
            Some((_, slot)) => *slot = Box::new(value),
            None => self.values.push((id, Box::new(value))),
        }
    }

    /// The value of that type, if a plugin put one.
    pub fn get<T: CycleData>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        let (_, value) = self.values.iter().find(|(other, _)| *other == id)?;
        (**value).as_any().downcast_ref()
    }

    /// The value of that type, to change it.
    pub fn get_mut<T: CycleData>(&mut self) -> Option<&mut T> {
        let id = TypeId::of::<T>();
        let (_, value) = self.values.iter_mut().find(|(other, _)| *other == id)?;
        (**value).as_any_mut().downcast_mut()
    }
}

impl Clone for CycleState {
    fn clone(&self) -> Self {
        let copies = self.values.iter().map(|(id, value)| (*id, (**value).boxed_copy()));
        Self { values: copies.collect() }
    }
}

impl fmt::Debug for CycleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CycleState({} values)", self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_do_not_share_what_is_changed_later() {
        let mut state = CycleState::new();
        state.put(vec![1]);
        state.put("text");
        let copy = state.clone();
        state.get_mut::<Vec<i32>>().expect("put above").push(2);
        assert_eq!(copy.get::<Vec<i32>>(), Some(&vec![1]));
        assert_eq!(state.get::<Vec<i32>>(), Some(&vec![1, 2]));
        assert_eq!(state.get::<&str>(), Some(&"text"));
        assert_eq!(state.get::<u8>(), None);
    }
}
