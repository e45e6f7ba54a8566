//! Events for `kubectl describe`: like ones are counted, floods are cut off.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::Clock;
use super::calls::{json_request, patch_request, signed};
use super::plan::Note;
use crate::cluster::{Key, Kind};

/// So many events that differ in their message alone are told one by one.
const SIMILAR: usize = 10;
/// Events further apart than this are not alike.
const INTERVAL: SignedDuration = SignedDuration::from_mins(10);
/// So many events about one object at once, then one each five minutes.
const OBJECT_BURST: f64 = 25.;
const OBJECT_RATE: f64 = 1. / 300.;
/// So many events of all, as each real kubelet allows itself.
const ALL_BURST: f64 = 1000.;
const ALL_RATE: f64 = 50.;
/// More than this is not remembered.
const MEMORY: usize = 4096;

/// Writes events until nobody tells any more. One that cannot be written is
/// dropped.
pub(super) async fn run(client: Client, clock: Clock, mut notes: mpsc::Receiver<Note>) {
    let mut correlator = Correlator::new(clock.now());
    while let Some(note) = notes.recv().await {
        let agent = if note.reporter == "kubelet" { "kubelet" } else { "kube-controller-manager" };
        let Some(write) = correlator.record(note, clock.now()) else { continue };
        let written = match &write {
            Write::Create(key, event) => {
                let path = Kind::Event.collection(&key.namespace);
                send(&client, agent, json_request("POST", &path, event)).await
            }
            Write::Count(key, patch) => {
                send(&client, agent, patch_request(&Kind::Event.object(key), patch)).await
            }
        };
        if let Err(error) = written {
            tracing::debug!(%error, "an event could not be written");
            correlator.forget(&write);
        }
    }
}

async fn send(
    client: &Client,
    agent: &'static str,
    request: kube::Result<http::Request<Vec<u8>>>,
) -> kube::Result<Value> {
    client.request(signed(request?, agent)).await
}

/// What to write.
#[derive(Debug, PartialEq)]
enum Write {
    Create(Key, Value),
    Count(Key, Value),
}

/// Object (uid or path), reporter, type, reason.
type Topic = (String, &'static str, bool, &'static str);

struct Correlator {
    topics: BTreeMap<Topic, (BTreeSet<String>, Timestamp)>,
    told: BTreeMap<(Topic, String), Told>,
    buckets: BTreeMap<(String, &'static str), Bucket>,
    all: Bucket,
    serial: u64,
}

struct Told {
    key: Key,
    count: u64,
    last: Timestamp,
}

impl Correlator {
    fn new(now: Timestamp) -> Self {
        Self {
            topics: BTreeMap::new(),
            told: BTreeMap::new(),
            buckets: BTreeMap::new(),
            all: Bucket::full(ALL_BURST, now),
            serial: 0,
        }
    }

    fn record(&mut self, note: Note, now: Timestamp) -> Option<Write> {
        self.make_room(now);
        let object = object_of(&note);
        let topic: Topic = (object.clone(), note.reporter, note.warning, note.reason);
        let (messages, since) =
            self.topics.entry(topic.clone()).or_insert_with(|| (BTreeSet::new(), now));
        if now.duration_since(*since) > INTERVAL {
            messages.clear();
        }
        *since = now;
        messages.insert(note.message.clone());
        let (same, message) = if messages.len() >= SIMILAR {
            (String::new(), format!("(combined from similar events): {}", note.message))
        } else {
            (note.message.clone(), note.message.clone())
        };
        let bucket = self
            .buckets
            .entry((object, note.reporter))
            .or_insert_with(|| Bucket::full(OBJECT_BURST, now));
        if !bucket.take(OBJECT_BURST, OBJECT_RATE, now) || !self.all.take(ALL_BURST, ALL_RATE, now)
        {
            return None;
        }
        let shown = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        if let Some(told) = self.told.get_mut(&(topic.clone(), same.clone())) {
            told.count += 1;
            told.last = now;
            let patch = json!({ "count": told.count, "lastTimestamp": shown, "message": message });
            return Some(Write::Count(told.key.clone(), patch));
        }
        self.serial += 1;
        let event = event(&note, &message, &shown, now, self.serial);
        let key = Key::new(
            event["metadata"]["namespace"].as_str().unwrap_or_default(),
            event["metadata"]["name"].as_str().unwrap_or_default(),
        );
        self.told.insert((topic, same), Told { key: key.clone(), count: 1, last: now });
        Some(Write::Create(key, event))
    }

    /// The event of a failed write may not exist: the next one is new.
    fn forget(&mut self, write: &Write) {
        let (Write::Create(key, _) | Write::Count(key, _)) = write;
        self.told.retain(|_, told| told.key != *key);
    }

    fn make_room(&mut self, now: Timestamp) {
        let old = |last: Timestamp| now.duration_since(last) > INTERVAL;
        if self.told.len() > MEMORY {
            self.told.retain(|_, told| !old(told.last));
            if self.told.len() > MEMORY {
                self.told.clear();
            }
        }
        if self.topics.len() > MEMORY {
            self.topics.retain(|_, (_, since)| !old(*since));
            if self.topics.len() > MEMORY {
                self.topics.clear();
            }
        }
        if self.buckets.len() > MEMORY {
            self.buckets.retain(|_, bucket| !old(bucket.at));
            if self.buckets.len() > MEMORY {
                self.buckets.clear();
            }
        }
    }
}

/// A token bucket.
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

impl Bucket {
    fn full(burst: f64, now: Timestamp) -> Self {
        Self { tokens: burst, at: now }
    }

    fn take(&mut self, burst: f64, rate: f64, now: Timestamp) -> bool {
        let gained = now.duration_since(self.at).as_secs_f64() * rate;
        self.tokens = (self.tokens + gained).min(burst);
        self.at = now;
        let some = self.tokens >= 1.;
        if some {
            self.tokens -= 1.;
        }
        some
    }
}

fn object_of(note: &Note) -> String {
    let about = &note.about;
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    format!(
        "{}/{}/{}/{}",
        part(&about.kind),
        part(&about.namespace),
        part(&about.name),
        part(&about.uid)
    )
}

fn event(note: &Note, message: &str, shown: &str, now: Timestamp, serial: u64) -> Value {
    let about = &note.about;
    let name = about.name.as_deref().unwrap_or_default();
    let namespace = about.namespace.as_deref().unwrap_or("default");
    // Two events of one moment must not get one name.
    let moment = now.as_nanosecond() + i128::from(serial);
    let mut source = json!({ "component": note.reporter });
    if !note.host.is_empty() {
        source["host"] = json!(note.host);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": format!("{name}.{moment:x}"), "namespace": namespace },
        "involvedObject": about,
        "reason": note.reason,
        "message": message,
        "source": source,
        "firstTimestamp": shown,
        "lastTimestamp": shown,
        "count": 1,
        "type": if note.warning { "Warning" } else { "Normal" },
        "reportingComponent": note.reporter,
        "reportingInstance": note.host,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn note(message: &str) -> Note {
        let node = Node {
            metadata: ObjectMeta { name: Some("n1".to_owned()), ..Default::default() },
            ..Default::default()
        };
        Note::normal(&node, "kubelet", "Tested", message)
    }

    fn shape(write: Option<Write>) -> String {
        match write {
            None => "dropped".to_owned(),
            Some(Write::Create(_, event)) => format!("new {}", event["message"]),
            Some(Write::Count(_, patch)) => format!("{} x {}", patch["count"], patch["message"]),
        }
    }

    #[test]
    fn equal_events_are_counted() {
        let mut correlator = Correlator::new(Timestamp::UNIX_EPOCH);
        let mut record = || shape(correlator.record(note("a"), Timestamp::UNIX_EPOCH));
        assert_eq!([record(), record(), record()], ["new \"a\"", "2 x \"a\"", "3 x \"a\""]);
    }

    #[test]
    fn events_that_differ_in_their_message_are_combined_then_cut_off() {
        let mut correlator = Correlator::new(Timestamp::UNIX_EPOCH);
        let shapes: Vec<String> = (0..30)
            .map(|i| shape(correlator.record(note(&i.to_string()), Timestamp::UNIX_EPOCH)))
            .collect();
        assert_eq!(shapes[8], "new \"8\"");
        assert_eq!(shapes[9], "new \"(combined from similar events): 9\"");
        assert_eq!(shapes[10], "2 x \"(combined from similar events): 10\"");
        assert_eq!(shapes[25], "dropped");
    }
}
