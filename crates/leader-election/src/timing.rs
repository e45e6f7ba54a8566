//! How long things take, and which lengths make sense together.

use std::time::Duration;

use thiserror::Error;

/// By how much the wait between two tries of a candidate may be longer than the
/// retry period, as a part of it. It keeps candidates from moving in step.
pub const JITTER_FACTOR: f64 = 1.2;

/// The three durations of an election, checked against each other:
/// `lease_duration` > `renew_deadline` > `retry_period` * [`JITTER_FACTOR`] > 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub(crate) lease_duration: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
}

/// The durations do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TimingError {
    /// A leader would go on for as long as others wait, or longer.
    #[error("leaseDuration must be greater than renewDeadline")]
    LeaseDuration,
    /// A leader might give up before its second try.
    #[error("renewDeadline must be greater than retryPeriod*JitterFactor")]
    RenewDeadline,
    /// There would be no wait between tries.
    #[error("retryPeriod must be greater than zero")]
    RetryPeriod,
}

impl Timing {
    /// Checks the durations.
    ///
    /// # Errors
    /// When they do not go together.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, TimingError> {
        if lease_duration <= renew_deadline {
            return Err(TimingError::LeaseDuration);
        }
        if renew_deadline.as_secs_f64() <= retry_period.as_secs_f64() * JITTER_FACTOR {
            return Err(TimingError::RenewDeadline);
        }
        if retry_period.is_zero() {
            return Err(TimingError::RetryPeriod);
        }
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// How long others wait after the last renewal that they saw.
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long the leader goes on after its last renewal.
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// How long to wait between two tries.
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// The lease duration as it stands in the lock, which knows whole seconds:
    /// rounded up, so that nobody waits less than the leader counts on.
    pub(crate) fn lease_seconds(&self) -> i32 {
        let more = u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(self.lease_duration.as_secs().saturating_add(more)).unwrap_or(i32::MAX)
    }

    /// How long one request may take, so that one that hangs does not cost the
    /// term.
    pub(crate) fn patience(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }
}

impl Default for Timing {
    /// What Kubernetes' own components use: 15 s, 10 s and 2 s.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(millis: [u64; 3], expected: Result<(), &str>) {
        let [lease, renew, retry] = millis.map(Duration::from_millis);
        let timing = Timing::new(lease, renew, retry);
        assert_eq!(timing.map(|_| ()).map_err(|e| e.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn accepts_what_goes_together_and_says_what_does_not() {
        check([15_000, 10_000, 2_000], Ok(()));
        check([2_001, 2_000, 1_000], Ok(()));
        let lease = "leaseDuration must be greater than renewDeadline";
        check([10_000, 10_000, 2_000], Err(lease));
        check([0, 0, 0], Err(lease));
        let renew = "renewDeadline must be greater than retryPeriod*JitterFactor";
        check([15_000, 2_400, 2_000], Err(renew));
        check([15_000, 0, 0], Err(renew));
        check([15_000, 10_000, 0], Err("retryPeriod must be greater than zero"));
    }

    #[test]
    fn the_lock_never_says_less_than_the_leader_counts_on() {
        let seconds = |millis| {
            let lease_duration = Duration::from_millis(millis);
            Timing { lease_duration, ..Timing::default() }.lease_seconds()
        };
        assert_eq!([1, 999, 1000, 1001, 15_000].map(seconds), [1, 1, 1, 2, 15]);
    }
}
