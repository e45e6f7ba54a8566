//! Answers of the API server, kept for a while, each asked for once at a time.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::review::ReviewError;

/// At most `capacity` answers by what was asked. Those who ask the same while
/// the answer is on its way wait for that one. Failures are handed to those who
/// wait and forgotten.
pub(crate) struct ReviewCache<K, V> {
    capacity: usize,
    entries: Mutex<Entries<K, V>>,
}

struct Entries<K, V> {
    by_key: HashMap<K, Entry<V>>,
    /// Keys by age; some are of entries that have been replaced since.
    order: VecDeque<(K, u64)>,
    next_id: u64,
}

struct Entry<V> {
    id: u64,
    answer: Answer<V>,
}

type Answer<V> = Shared<BoxFuture<'static, Result<(V, Instant), ReviewError>>>;

impl<K, V> ReviewCache<K, V>
where
    K: Clone + Eq + Hash,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(capacity: usize) -> Self {
        let entries = Entries { by_key: HashMap::new(), order: VecDeque::new(), next_id: 0 };
        Self { capacity, entries: Mutex::new(entries) }
    }

    /// The answer about `key`: a kept one, or what `ask` brings, kept for as
    /// long as that says.
    pub(crate) async fn get<F>(&self, key: &K, ask: impl FnOnce() -> F) -> Result<V, ReviewError>
    where
        F: Future<Output = Result<(V, Duration), ReviewError>> + Send + 'static,
    {
        let (id, answer) = self.entry(key, ask);
        match answer.await {
            Ok((value, _)) => Ok(value),
            Err(error) => {
                self.forget(key, id);
                Err(error)
            }
        }
    }

    fn entry<F>(&self, key: &K, ask: impl FnOnce() -> F) -> (u64, Answer<V>)
    where
        F: Future<Output = Result<(V, Duration), ReviewError>> + Send + 'static,
    {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.by_key.get(key)
            && entry.is_good(now)
        {
            return (entry.id, entry.answer.clone());
        }
        let asking = ask();
        let answer = AssertUnwindSafe(async move {
            let (value, ttl) = asking.await?;
            Ok((value, Instant::now() + ttl))
        });
        let answer = answer.catch_unwind().map(|done| done.unwrap_or(Err(ReviewError::Broken)));
        let answer = answer.boxed().shared();
        // A task of its own: whoever asked first may hang up, others still wait.
        // And it sees to it that an answer for which nobody waits any more has
        // its time from when it came, not from when it is looked at.
        tokio::spawn(answer.clone());
        let id = entries.insert(key.clone(), answer.clone(), self.capacity);
        (id, answer)
    }

    fn forget(&self, key: &K, id: u64) {
        let mut entries = self.entries.lock();
        if entries.by_key.get(key).is_some_and(|entry| entry.id == id) {
            entries.by_key.remove(key);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().by_key.len()
    }
}

impl<V: Clone> Entry<V> {
    /// Whether the answer is on its way or has not expired.
    fn is_good(&self, now: Instant) -> bool {
        match self.answer.peek() {
            None => true,
            Some(Ok((_, until))) => now < *until,
            Some(Err(_)) => false,
        }
    }
}

impl<K: Clone + Eq + Hash, V> Entries<K, V> {
    fn insert(&mut self, key: K, answer: Answer<V>, capacity: usize) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.by_key.insert(key.clone(), Entry { id, answer });
        self.order.push_back((key, id));
        while self.by_key.len() > capacity || self.order.len() > 2 * capacity {
            let Some((old, old_id)) = self.order.pop_front() else { break };
            if self.by_key.get(&old).is_some_and(|entry| entry.id == old_id) {
                self.by_key.remove(&old);
            }
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    struct Bench {
        cache: ReviewCache<String, usize>,
        asked: Arc<AtomicUsize>,
    }

    impl Bench {
        fn new(capacity: usize) -> Self {
            Self { cache: ReviewCache::new(capacity), asked: Arc::default() }
        }

        /// Asks; the n-th question is answered with n after a second.
        async fn ask(&self, key: &str) -> Result<usize, ReviewError> {
            let asked = self.asked.clone();
            let ask = move || async move {
                let n = asked.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok((n, TTL))
            };
            self.cache.get(&key.to_owned(), ask).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_until_it_expires() {
        let bench = Bench::new(10);
        assert_eq!(bench.ask("a").await.unwrap(), 1);
        tokio::time::advance(TTL - Duration::from_millis(1)).await;
        assert_eq!(bench.ask("a").await.unwrap(), 1);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(bench.ask("a").await.unwrap(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_the_same_at_once_share_one_question() {
        let bench = Bench::new(10);
        let all = futures::future::join_all((0..20).map(|_| bench.ask("a"))).await;
        assert!(all.into_iter().all(|answer| answer.unwrap() == 1));
        assert_eq!(bench.asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_hangs_up_does_not_take_the_answer_from_the_others() {
        let bench = Bench::new(10);
        let hasty = tokio::time::timeout(Duration::from_millis(100), bench.ask("a")).await;
        assert!(hasty.is_err());
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(bench.ask("a").await.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_waited_for_expires_too() {
        let bench = Bench::new(10);
        let hasty = tokio::time::timeout(Duration::from_millis(100), bench.ask("a")).await;
        assert!(hasty.is_err());
        tokio::time::sleep(TTL * 10).await;
        assert_eq!(bench.ask("a").await.unwrap(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_panics_is_asked_again() {
        let cache: ReviewCache<u8, u8> = ReviewCache::new(10);
        let panics = || async { if true { panic!("expected by this test") } else { Ok((0, TTL)) } };
        assert!(matches!(cache.get(&1, panics).await, Err(ReviewError::Broken)));
        assert_eq!(cache.get(&1, || async { Ok((7, TTL)) }).await.unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_not_kept() {
        let cache: ReviewCache<u8, u8> = ReviewCache::new(10);
        let failed = cache.get(&1, || async { Err(ReviewError::Busy) }).await;
        assert!(matches!(failed, Err(ReviewError::Busy)));
        assert_eq!(cache.len(), 0);
        assert_eq!(cache.get(&1, || async { Ok((7, TTL)) }).await.unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_answers_go_when_room_runs_out() {
        let bench = Bench::new(3);
        for key in ["a", "b", "c", "d"] {
            bench.ask(key).await.unwrap();
        }
        assert_eq!(bench.cache.len(), 3);
        assert_eq!(bench.ask("d").await.unwrap(), 4, "still kept");
        assert_eq!(bench.ask("a").await.unwrap(), 5, "was evicted");
    }
}
