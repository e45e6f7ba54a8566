//! Preemptions under way: which pod waits for whom to leave.
//!
//! ```text
//!            begin                 requests end, or          last victim
//!            (evictions            all victims are           is gone
//!             requested)           seen to terminate
//!   (none) ────────────► held ────────────────────► waiting ────────────► (none)
//!      │                   │ a request failed                                ▲
//!      │                   └─────────────────────────────────────────────────┤
//!      └────────────────────────────────────────────► waiting ───────────────┘
//!            begin (victims were on their way out)
//! ```
//!
//! A pod that is held must not be tried: it would pick victims anew. A pod that
//! waits may be, and is when the last victim is gone.

use std::collections::{BTreeMap, BTreeSet};

use steersman_api::key::PodUid;
use steersman_api::name::Name;

/// See the module documentation. Changed by the core only.
#[derive(Clone, Debug, Default)]
pub struct Preemptions {
    under_way: BTreeMap<PodUid, UnderWay>,
    /// By victim, those who wait for it.
    waiting_for: BTreeMap<PodUid, BTreeSet<PodUid>>,
}

/// One pod's preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// Where room is made.
    pub node: Name,
    /// Who is still there.
    pub victims: BTreeSet<PodUid>,
    /// Those of them whose eviction is being requested and that were not seen
    /// to terminate yet.
    pub requested: BTreeSet<PodUid>,
    /// Tells this preemption from earlier ones of the same pod.
    pub ticket: u64,
}

/// What a victim's departure, or its beginning, means to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The pod is held no more; other victims are still there.
    Released(PodUid),
    /// That was the last one: the preemption is over.
    AllGone(PodUid),
}

impl Preemptions {
    /// A pod's preemption, if one is under way.
    pub fn get(&self, preemptor: &PodUid) -> Option<&UnderWay> {
        self.under_way.get(preemptor)
    }

    /// Every preemption, by preemptor.
    pub fn iter(&self) -> impl Iterator<Item = (&PodUid, &UnderWay)> {
        self.under_way.iter()
    }

    /// Whether a pod must not be tried, since evictions for it are being
    /// requested.
    pub fn holds(&self, preemptor: &PodUid) -> bool {
        self.under_way.get(preemptor).is_some_and(|it| !it.requested.is_empty())
    }

    /// Whether some pod waits for this one to leave.
    pub fn is_victim(&self, pod: &PodUid) -> bool {
        self.waiting_for.contains_key(pod)
    }

    /// Begins a preemption, instead of an earlier one of the same pod. One
    /// without victims is none.
    pub fn begin(&mut self, preemptor: &PodUid, it: UnderWay) {
        self.end(preemptor);
        if it.victims.is_empty() {
            return;
        }
        for victim in &it.victims {
            self.waiting_for.entry(victim.clone()).or_default().insert(preemptor.clone());
        }
        self.under_way.insert(preemptor.clone(), it);
    }

    /// Ends a pod's preemption.
    pub fn end(&mut self, preemptor: &PodUid) -> Option<UnderWay> {
        let it = self.under_way.remove(preemptor)?;
        for victim in &it.victims {
            self.drop_waiting(victim, preemptor);
        }
        Some(it)
    }

    /// All evictions of a preemption were requested; whether the pod was held
    /// until now.
    pub fn requests_ended(&mut self, preemptor: &PodUid) -> bool {
        let Some(it) = self.under_way.get_mut(preemptor) else { return false };
        let held = !it.requested.is_empty();
        it.requested.clear();
        held
    }

    /// A pod is seen to terminate: what that means to those who wait for it.
    pub fn terminates(&mut self, victim: &PodUid) -> Vec<Departure> {
        let Some(preemptors) = self.waiting_for.get(victim) else { return Vec::new() };
        let mut released = Vec::new();
        for preemptor in preemptors {
            let Some(it) = self.under_way.get_mut(preemptor) else { continue };
            if it.requested.remove(victim) && it.requested.is_empty() {
                released.push(Departure::Released(preemptor.clone()));
            }
        }
        released
    }

    /// A pod is gone from its node: what that means to those who waited for
    /// it.
    pub fn leaves(&mut self, victim: &PodUid) -> Vec<Departure> {
        let Some(preemptors) = self.waiting_for.remove(victim) else { return Vec::new() };
        let mut departures = Vec::new();
        for preemptor in preemptors {
            let Some(it) = self.under_way.get_mut(&preemptor) else { continue };
            it.victims.remove(victim);
            let released = it.requested.remove(victim) && it.requested.is_empty();
            if it.victims.is_empty() {
                self.under_way.remove(&preemptor);
                departures.push(Departure::AllGone(preemptor));
            } else if released {
                departures.push(Departure::Released(preemptor));
            }
        }
        departures
    }

    fn drop_waiting(&mut self, victim: &PodUid, preemptor: &PodUid) {
        let Some(preemptors) = self.waiting_for.get_mut(victim) else { return };
        preemptors.remove(preemptor);
        if preemptors.is_empty() {
            self.waiting_for.remove(victim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uids(names: &[&str]) -> BTreeSet<PodUid> {
        names.iter().map(|name| PodUid::from(*name)).collect()
    }

    fn begun(preemptor: &str, victims: &[&str], requested: &[&str]) -> Preemptions {
        let mut preemptions = Preemptions::default();
        let (victims, requested) = (uids(victims), uids(requested));
        let it = UnderWay { node: "n1".into(), victims, requested, ticket: 1 };
        preemptions.begin(&preemptor.into(), it);
        preemptions
    }

    #[test]
    fn pod_is_held_until_every_victim_is_on_its_way_out() {
        let mut all = begun("p", &["a", "b", "c"], &["a", "b"]);
        assert!(all.holds(&"p".into()));
        assert_eq!(all.terminates(&"a".into()), []);
        assert_eq!(all.leaves(&"c".into()), []);
        assert!(all.holds(&"p".into()));
        assert_eq!(all.terminates(&"b".into()), [Departure::Released("p".into())]);
        assert!(!all.holds(&"p".into()));
        assert_eq!(all.leaves(&"b".into()), []);
        assert_eq!(all.leaves(&"a".into()), [Departure::AllGone("p".into())]);
        assert_eq!(all.get(&"p".into()), None);
        assert_eq!(all.leaves(&"a".into()), []);
    }

    #[test]
    fn end_of_requests_releases_once() {
        let mut all = begun("p", &["a"], &["a"]);
        assert!(all.requests_ended(&"p".into()));
        assert!(!all.requests_ended(&"p".into()));
        assert!(all.is_victim(&"a".into()));
    }

    #[test]
    fn one_victim_can_be_waited_for_by_several() {
        let mut all = begun("p", &["a"], &[]);
        let both = UnderWay {
            node: "n1".into(),
            victims: uids(&["a", "b"]),
            requested: uids(&["b"]),
            ticket: 2,
        };
        all.begin(&"q".into(), both);
        assert_eq!(all.leaves(&"a".into()), [Departure::AllGone("p".into())]);
        assert!(all.end(&"q".into()).is_some());
        assert!(!all.is_victim(&"b".into()));
    }
}
