//! What the workload controllers share: pods of a template, owners, claims,
//! conditions.

mod ownership;
mod percent;
mod pods;
mod status;
mod template;
mod time;

pub(crate) use ownership::{claim, owner_reference, owners_patch};
pub(crate) use percent::{Round, resolve};
pub(crate) use pods::{
    Availability, availability, condition, has_ended, is_active, is_ready, is_terminating, phase,
    pod_cost, ready_since, start_time,
};
pub(crate) use status::{merge_diff, set_condition, status_patch};
pub(crate) use template::{HASH_LABEL, REVISION_LABEL, labelled, pod_of, selects, template_hash};
pub(crate) use time::{later, later_by};
