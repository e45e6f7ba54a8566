//! What the queue and the scheduler promise, rule by rule, on clusters of a
//! few objects. `tests/stress` looks for what nobody thought of.

mod binding;
mod extenders;
mod nodes;
mod nominations;
mod preemption;
mod queue;
mod races;
mod stats;
mod volumes;
mod world;
