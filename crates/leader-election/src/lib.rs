//! Leader election through the Kubernetes API: of several replicas of a program
//! one works, and the others stand by.
//!
//! The replicas compete for a lock: a `Lease`, or for old clusters an annotation
//! on an `Endpoints` or a `ConfigMap`. Format and rules are those of client-go,
//! so replicas written in Go and in Rust can share a lock. The holder renews it;
//! who has seen it unchanged for as long as it says it lasts may take it. Nobody
//! compares clocks with anybody: the times in the lock are for people.
//!
//! What is promised: whoever was cut off, is too slow or was frozen knows that
//! its term has ended *before* anybody else can begin one, even if it could not
//! be told. A [`Leadership`] ends by itself, a fixed time after the last renewal
//! that succeeded was *sent*; that time is shorter than what the others wait.
//! What is not promised: that a request which was sent within the term arrives
//! within it. The distance between `lease_duration` and `renew_deadline` is the
//! time that it has. Clocks may run at different speeds, as long as the ratio
//! stays below that of these two.
//!
//! - [`Election`] and [`Term`]: compete, lead, let go.
//! - [`Leadership`]: a cheap token that says whether the term still runs. Ask it
//!   before each act that only the leader may do, or let its [`Fence`] do so for
//!   all writes of a client.
//! - [`Monitor`]: who leads, numbers for metrics, a health check.
//! - [`Elector`]: the rules, as a machine without time or IO of its own.
//!
//! It does not take part in coordinated leader election (`LeaseCandidate`).
//! `examples/singleton.rs` is a whole program.
//!
//! ```no_run
//! use steersman_leader_election::{Config, Election, unique_identity};
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::lease("default", "my-service", unique_identity("host-1"));
//! let election = Election::new(client, config)?;
//! election
//!     .run(|leadership| async move {
//!         while leadership.still_valid() {
//!             // Work that nobody else may do at the same time.
//! #           break;
//!         }
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod clock;
mod election;
mod elector;
mod events;
mod fence;
mod identity;
mod leadership;
mod lock;
mod monitor;
mod record;
mod runner;
mod term;
mod timing;

pub use clock::{Clock, SystemClock};
pub use election::{Config, ConfigError, Election, Observer};
pub use elector::{Action, Elector, Ended, Now};
pub use fence::{Fence, Fenced, FencedOut};
pub use identity::unique_identity;
pub use leadership::Leadership;
pub use lock::{LockError, LockKind, ParseLockKindError};
pub use monitor::{Metrics, Monitor, Overdue};
pub use record::{Record, Sighting};
pub use term::{Lost, Term};
pub use timing::{JITTER_FACTOR, Timing, TimingError};
