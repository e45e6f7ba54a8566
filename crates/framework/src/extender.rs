//! Programs outside the scheduler that have a say in its decisions.

/// An extender, as the core calls it: synchronously, inside the cycle.
pub trait Extender: Send + Sync {
    /// What it is called in messages: its address.
    fn name(&self) -> &str;
}
