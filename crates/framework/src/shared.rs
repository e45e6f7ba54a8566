//! What the instances of plugins share. A scheduler makes one instance for each
//! profile; what they promise to pods must be known to all of them.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One thing of each type, for the plugins of one scheduler.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use steersman_framework::shared::Shared;
///
/// let shared = Shared::default();
/// shared.of::<AtomicU32>().store(7, Ordering::Relaxed);
/// assert_eq!(shared.of::<AtomicU32>().load(Ordering::Relaxed), 7);
/// ```
#[derive(Default)]
pub struct Shared(RefCell<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Shared {
    /// The thing of that type, made when it is asked for first.
    pub fn of<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut things = self.0.borrow_mut();
        let thing = things.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        thing.clone().downcast().expect("it is kept under its type")
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} things)", self.0.borrow().len())
    }
}
