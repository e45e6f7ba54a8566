//! What stands in a lock, and how it is written.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Who holds a lock, and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Empty when nobody does: it was released, or never taken.
    pub holder: String,
    /// How long others must wait after the last renewal. Where this is missing
    /// or makes no sense, each waits for its own lease duration.
    pub lease_duration_seconds: i32,
    /// When the holder took it, by its own clock; for people.
    pub acquire_time: Option<Timestamp>,
    /// When the holder renewed it last, by its own clock; for people. Others
    /// only look at whether it changes.
    pub renew_time: Option<Timestamp>,
    /// How often it went from one holder to another.
    pub transitions: i32,
}

/// What was read from a lock: of one that consists of two objects, what is true
/// of both, and what the second one says alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// What counts.
    pub record: Record,
    /// What the second object says. It counts only as a sign of life.
    pub second: Option<Record>,
}

impl From<Record> for Sighting {
    fn from(record: Record) -> Self {
        Self { record, second: None }
    }
}

/// The number in the field, cut to what fits.
fn number(from: &Value) -> i32 {
    let number = from.as_i64().unwrap_or_default();
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}

fn time(from: &Value) -> Option<Timestamp> {
    from.as_str()?.parse().ok()
}

impl Record {
    /// Reads the `spec` of a `Lease`. Nothing in it is required.
    pub(crate) fn from_lease_spec(spec: &Value) -> Self {
        Self {
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            lease_duration_seconds: number(&spec["leaseDurationSeconds"]),
            acquire_time: time(&spec["acquireTime"]),
            renew_time: time(&spec["renewTime"]),
            transitions: number(&spec["leaseTransitions"]),
        }
    }

    /// Writes the `spec` of a `Lease`, and leaves fields alone that it does not
    /// know. Those of coordinated leader election go: they would say that whoever
    /// coordinates it chose this holder.
    pub(crate) fn write_lease_spec(&self, spec: &mut Map<String, Value>) {
        let micro = |time: Option<Timestamp>| time.map(|t| format!("{t:.6}"));
        let fields = [
            ("holderIdentity", json!(self.holder)),
            ("leaseDurationSeconds", json!(self.lease_duration_seconds)),
            ("acquireTime", json!(micro(self.acquire_time))),
            ("renewTime", json!(micro(self.renew_time))),
            ("leaseTransitions", json!(self.transitions)),
        ];
        for coordinated in ["preferredHolder", "strategy"] {
            spec.remove(coordinated);
        }
        spec.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    }

    /// Reads the annotation of an older lock.
    pub(crate) fn from_annotation(text: &str) -> Result<Self, serde_json::Error> {
        let fields: Map<String, Value> = serde_json::from_str(text)?;
        let field = |name| fields.get(name).unwrap_or(&Value::Null);
        Ok(Self {
            holder: field("holderIdentity").as_str().unwrap_or_default().to_owned(),
            lease_duration_seconds: number(field("leaseDurationSeconds")),
            acquire_time: time(field("acquireTime")),
            renew_time: time(field("renewTime")),
            transitions: number(field("leaderTransitions")),
        })
    }

    /// The annotation of an older lock.
    pub(crate) fn to_annotation(&self) -> String {
        let seconds = |time: Option<Timestamp>| time.map(|t| format!("{t:.0}"));
        json!({
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.lease_duration_seconds,
            "acquireTime": seconds(self.acquire_time),
            "renewTime": seconds(self.renew_time),
            "leaderTransitions": self.transitions,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn record() -> Record {
        Record {
            holder: "a_1".to_owned(),
            lease_duration_seconds: 15,
            acquire_time: Some("2026-01-02T03:04:05.123456789Z".parse().unwrap()),
            renew_time: Some("2026-01-02T03:04:07Z".parse().unwrap()),
            transitions: 3,
        }
    }

    #[test]
    fn a_lease_keeps_fields_of_others_but_not_those_of_a_coordinated_election() {
        let mut spec = Map::new();
        spec.insert("strategy".to_owned(), json!("OldestEmulationVersion"));
        spec.insert("preferredHolder".to_owned(), json!("b_2"));
        spec.insert("shard".to_owned(), json!(7));
        record().write_lease_spec(&mut spec);
        let spec = Value::Object(spec);
        expect![[r#"{"acquireTime":"2026-01-02T03:04:05.123456Z","holderIdentity":"a_1","leaseDurationSeconds":15,"leaseTransitions":3,"renewTime":"2026-01-02T03:04:07.000000Z","shard":7}"#]]
        .assert_eq(&spec.to_string());
        let read = Record::from_lease_spec(&spec);
        assert_eq!((read.holder.as_str(), read.transitions), ("a_1", 3));
        assert_eq!(read.renew_time, record().renew_time);
    }

    #[test]
    fn an_annotation_has_whole_seconds() {
        let text = record().to_annotation();
        expect![[r#"{"acquireTime":"2026-01-02T03:04:05Z","holderIdentity":"a_1","leaderTransitions":3,"leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:07Z"}"#]]
        .assert_eq(&text);
        let read = Record::from_annotation(&text).unwrap();
        assert_eq!(read.renew_time, record().renew_time);
        assert_eq!((read.holder.as_str(), read.lease_duration_seconds), ("a_1", 15));
    }

    #[test]
    fn odd_content_is_read_as_far_as_it_makes_sense() {
        assert_eq!(Record::from_lease_spec(&Value::Null), Record::default());
        let odd =
            json!({ "leaseDurationSeconds": 1e300, "renewTime": "soon", "leaseTransitions": -1 });
        let read = Record::from_lease_spec(&odd);
        assert_eq!((read.lease_duration_seconds, read.renew_time, read.transitions), (0, None, -1));
        let long = json!({ "leaseDurationSeconds": i64::MAX });
        assert_eq!(Record::from_lease_spec(&long).lease_duration_seconds, i32::MAX);
        assert_eq!(Record::from_annotation("{}").unwrap(), Record::default());
        for bad in ["", "[]", "{", "1"] {
            assert!(Record::from_annotation(bad).is_err(), "{bad}");
        }
    }
}
