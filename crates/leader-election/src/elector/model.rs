//! Several electors against a model of the lock: requests are lost and delayed,
//! replicas freeze, die and come back, their clocks run at different speeds.
//!
//! Whatever happens, no two are certain to lead at the same moment.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::any;
use proptest::{prop_assert, proptest};

use super::{Action, Elector, Now};
use crate::record::Record;
use crate::timing::Timing;

/// How bad the world is.
#[derive(Clone, Copy)]
struct World {
    replicas: usize,
    /// Of a thousand requests, how many are lost, and as many answers.
    lost: u64,
    /// How long a request and an answer travel at the most, in milliseconds.
    travel: u64,
    /// Of a thousand steps of a replica, after how many it freezes, dies, or
    /// resigns.
    trouble: u64,
    /// By how many thousandths clocks may be fast or slow.
    drift: u64,
    timing: Timing,
}

const HARD: World = World {
    replicas: 4,
    lost: 150,
    travel: 4_000,
    trouble: 30,
    drift: 100,
    timing: Timing {
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    },
};

/// What a request does, at the lock.
#[derive(Clone)]
enum Request {
    Read,
    Create(Record),
    Update(Record, u64),
}

enum Event {
    /// The replica does its next step.
    Step,
    /// A request arrives at the lock.
    Arrive { id: u64, request: Request },
    /// An answer arrives at the replica: the version, and what was read.
    Answer { id: u64, answer: Result<Option<(u64, Record)>, ()> },
    /// The replica waits no longer.
    GiveUp { id: u64 },
}

struct Replica {
    elector: Elector,
    /// Which life of it; what was sent in an earlier one is not answered.
    life: u64,
    /// Local milliseconds = global ones * rate / 1000 + offset.
    rate: u64,
    offset: u64,
    frozen_until: u64,
    version: Option<u64>,
    /// The request that is out.
    waits_for: Option<u64>,
}

impl Replica {
    fn now(&self, global: u64) -> Now {
        let millis = global * self.rate / 1000 + self.offset;
        let elapsed = Duration::from_millis(millis);
        // The time of day is as wrong as can be.
        Now { elapsed, wall: Timestamp::UNIX_EPOCH + elapsed * 3 }
    }

    /// When the local clock will show this.
    fn global(&self, local: Duration) -> u64 {
        let millis = u64::try_from(local.as_micros()).unwrap().div_ceil(1000);
        (millis.saturating_sub(self.offset) * 1000).div_ceil(self.rate)
    }

    fn is_certain(&self, global: u64) -> bool {
        self.elector.leads_until().is_some_and(|until| until > self.now(global).elapsed)
    }
}

struct Model {
    world: World,
    chance: u64,
    events: BTreeMap<(u64, u64), (usize, Event)>,
    n_events: u64,
    lock: Option<(u64, Record)>,
    replicas: Vec<Replica>,
    /// When a term began, and who leads.
    terms: Vec<(u64, usize)>,
    /// When two led.
    clash: Option<u64>,
}

impl Model {
    fn new(world: World, seed: u64) -> Self {
        let mut model = Self {
            world,
            chance: seed,
            events: BTreeMap::new(),
            n_events: 0,
            lock: None,
            replicas: Vec::new(),
            terms: Vec::new(),
            clash: None,
        };
        for i in 0..world.replicas {
            let rate = 1000 - world.drift + model.below(2 * world.drift + 1);
            let offset = model.below(1_000_000);
            let elector = model.elector(i, 0);
            let replica = Replica {
                elector,
                life: 0,
                rate,
                offset,
                frozen_until: 0,
                version: None,
                waits_for: None,
            };
            model.replicas.push(replica);
            let start = model.below(5_000);
            model.at(start, i, Event::Step);
        }
        model
    }

    fn elector(&mut self, i: usize, life: u64) -> Elector {
        let seed = self.below(u64::MAX);
        Elector::new(format!("{i}.{life}"), self.world.timing, seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end.max(1)
    }

    fn chance_of(&mut self, thousandths: u64) -> bool {
        self.below(1000) < thousandths
    }

    fn at(&mut self, time: u64, who: usize, event: Event) {
        self.n_events += 1;
        self.events.insert((time, self.n_events), (who, event));
    }

    /// Goes on until that time.
    fn run(&mut self, end: u64) {
        while let Some(entry) = self.events.first_entry() {
            let time = entry.key().0;
            if time > end {
                break;
            }
            let (who, event) = entry.remove();
            match event {
                Event::Arrive { id, request } => self.arrive(time, who, id, request),
                event if self.replicas[who].frozen_until > time => {
                    self.at(self.replicas[who].frozen_until, who, event);
                }
                Event::Step => self.step(time, who),
                Event::Answer { id, answer } => self.answer(time, who, id, answer),
                Event::GiveUp { id } => self.answer(time, who, id, Err(())),
            }
        }
    }

    fn step(&mut self, time: u64, who: usize) {
        if self.chance_of(self.world.trouble) {
            match self.below(3) {
                0 => {
                    let thaw = time + self.below(40_000);
                    self.replicas[who].frozen_until = thaw;
                    return self.at(thaw, who, Event::Step);
                }
                1 => return self.restart(time, who),
                _ => self.replicas[who].elector.resign(),
            }
        }
        let replica = &mut self.replicas[who];
        let now = replica.now(time);
        let request = match replica.elector.next(now) {
            Action::Wait(until) => {
                let wake = replica.global(until).max(time + 1);
                return self.at(wake, who, Event::Step);
            }
            Action::Stop(_) => return self.restart(time, who),
            Action::Read => Request::Read,
            Action::Create(record) => Request::Create(record),
            Action::Update(record) => {
                Request::Update(record, replica.version.expect("it was read before"))
            }
        };
        let patience = replica.global(now.elapsed + replica.elector.patience(now)).max(time + 1);
        self.n_events += 1;
        let id = self.n_events;
        self.replicas[who].waits_for = Some(id);
        self.at(patience, who, Event::GiveUp { id });
        if !self.chance_of(self.world.lost) {
            let arrives = time + self.below(self.world.travel + 1);
            self.at(arrives, who, Event::Arrive { id, request });
        }
    }

    /// The replica dies, and another takes its place.
    fn restart(&mut self, time: u64, who: usize) {
        let life = self.replicas[who].life + 1;
        let elector = self.elector(who, life);
        let replica = &mut self.replicas[who];
        (replica.elector, replica.life) = (elector, life);
        (replica.version, replica.waits_for) = (None, None);
        let start = time + 1 + self.below(3_000);
        self.at(start, who, Event::Step);
    }

    /// The lock: a compare and swap.
    fn arrive(&mut self, time: u64, who: usize, id: u64, request: Request) {
        let version = time * 1_000_000 + id;
        let answer = match (request, &self.lock) {
            (Request::Read, lock) => Ok(lock.clone()),
            (Request::Create(record), None) => Ok(Some((version, record))),
            (Request::Update(record, on), Some((last, _))) if on == *last => {
                Ok(Some((version, record)))
            }
            (Request::Create(_) | Request::Update(..), _) => Err(()),
        };
        if let Ok(Some(lock)) = &answer {
            self.lock = Some(lock.clone());
        }
        if !self.chance_of(self.world.lost) {
            let arrives = time + self.below(self.world.travel + 1);
            self.at(arrives, who, Event::Answer { id, answer });
        }
    }

    fn answer(
        &mut self,
        time: u64,
        who: usize,
        id: u64,
        answer: Result<Option<(u64, Record)>, ()>,
    ) {
        let replica = &mut self.replicas[who];
        if replica.waits_for != Some(id) {
            return;
        }
        replica.waits_for = None;
        let now = replica.now(time);
        let led = replica.elector.leads_until().is_some();
        match answer {
            Ok(found) => {
                replica.version = found.as_ref().map(|(version, _)| *version);
                // Only one of the two fits to what was asked; the other is not
                // listened to.
                if matches!(replica.elector.step, super::Step::Reading) {
                    replica.elector.read(found.map(|(_, record)| record.into()), now);
                } else {
                    replica.elector.wrote(now);
                }
            }
            Err(()) => replica.elector.failed(now),
        }
        if replica.is_certain(time) {
            if !led {
                self.terms.push((time, who));
            }
            let leads = |i: &usize| *i != who && self.replicas[*i].is_certain(time);
            if (0..self.replicas.len()).any(|i| leads(&i)) {
                self.clash.get_or_insert(time);
            }
        }
        self.at(time, who, Event::Step);
    }

    fn leader(&self, time: u64) -> Option<usize> {
        (0..self.replicas.len()).find(|i| self.replicas[*i].is_certain(time))
    }
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    #[test]
    fn never_two_leaders_at_once(seed in any::<u64>()) {
        let mut model = Model::new(HARD, seed);
        model.run(900_000);
        prop_assert!(model.clash.is_none(), "two led at {:?} ms", model.clash);
        // Otherwise this would prove nothing.
        prop_assert!(model.terms.len() > 2, "{} terms", model.terms.len());
    }

    /// A quarter of an hour later all is well again, and the leader dies.
    #[test]
    fn another_takes_over_within_the_lease_and_one_retry(seed in any::<u64>()) {
        let calm = World { lost: 0, travel: 50, trouble: 0, drift: 0, ..HARD };
        let mut model = Model::new(calm, seed);
        let death = 60_000 + model.below(10_000);
        model.run(death);
        let leader = model.leader(death).expect("somebody leads");
        model.replicas[leader].frozen_until = u64::MAX;
        let retry = calm.timing.retry_period.mul_f64(1.0 + crate::JITTER_FACTOR);
        let within = calm.timing.lease_duration + retry;
        // Each of a read, what it finds, a second read and a write may take long.
        let travel = 6 * calm.travel;
        let end = death + u64::try_from(within.as_millis()).unwrap() + travel;
        model.run(end);
        let next = model.terms.iter().find(|(time, who)| *time > death && *who != leader);
        prop_assert!(next.is_some(), "nobody took over: {:?}", model.terms);
        prop_assert!(model.clash.is_none());
    }
}

#[test]
fn the_model_would_notice_two_leaders() {
    // A leader that goes on for longer than others wait.
    let timing = Timing { renew_deadline: Duration::from_secs(40), ..Timing::default() };
    let noticed = (0..20).any(|seed| {
        let mut model = Model::new(World { timing, ..HARD }, seed);
        model.run(900_000);
        model.clash.is_some()
    });
    assert!(noticed);
}
