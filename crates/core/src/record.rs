//! What a driver may want to measure, as it happens: the core counts and hands
//! out the times it was given; how long something took by the wall is the
//! driver's to say.

use std::time::Duration;

use steersman_api::name::Name;
use steersman_api::time::Time;

use crate::event::FailureReason;

/// Something that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A pod was bound.
    Scheduled {
        /// Its profile.
        profile: Name,
        /// How many attempts it took, from 1.
        attempts: u32,
        /// When the last of them began.
        started: Time,
        /// When the pod could be tried for the first time: not while it was
        /// gated.
        first_active: Time,
        /// Whether only the last-resort flush had brought it back.
        after_flush: bool,
    },
    /// An attempt failed, or a binding.
    Failed {
        /// The pod's profile.
        profile: Name,
        /// How.
        reason: FailureReason,
        /// When the attempt began; unknown when the pod was gone already.
        started: Option<Time>,
    },
    /// A wait at Permit is over.
    PermitWaited {
        /// Whether the pod may go.
        allowed: bool,
        /// How long it waited, by the driver's clock.
        waited: Duration,
    },
}

/// What was recorded and not taken yet. Nothing, unless somebody wants it.
#[derive(Debug, Default)]
pub(crate) struct Records {
    kept: bool,
    new: Vec<Record>,
}

impl Records {
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// Whether anybody wants them: otherwise nothing is looked up for them.
    pub(crate) fn are_kept(&self) -> bool {
        self.kept
    }

    pub(crate) fn push(&mut self, record: Record) {
        if self.kept {
            self.new.push(record);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.new)
    }
}
