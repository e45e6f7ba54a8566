//! What a controller decides: calls to make and when to look again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::cluster::{Key, Kind, Watched, World, uid};

/// How simulated things behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From a pod's binding until it runs.
    pub start_delay: SignedDuration,
    /// The longest that a deleted pod takes to end, whatever its grace period.
    pub stop_delay: SignedDuration,
    /// How long the pods of jobs run, unless an annotation says otherwise.
    pub run_time: SignedDuration,
    /// A node whose lease is this old is unreachable.
    pub node_grace: SignedDuration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            start_delay: SignedDuration::from_millis(500),
            stop_delay: SignedDuration::from_secs(1),
            run_time: SignedDuration::from_secs(5),
            node_grace: SignedDuration::from_secs(40),
        }
    }
}

/// What a controller decides from.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The cluster as last seen.
    pub world: &'a World,
    /// The time.
    pub now: Timestamp,
    /// Since when the cluster is looked at: nothing that was late before is to
    /// blame for it.
    pub since: Timestamp,
    /// How simulated things behave.
    pub settings: &'a Settings,
}

/// What a controller decided about one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do.
    pub actions: Vec<Action>,
    /// Whether the order matters; the first failure then ends the plan.
    pub ordered: bool,
    /// When to look again even if nothing changes.
    pub again_at: Option<Timestamp>,
    /// What to write down when an object cannot be created.
    pub complaint: Option<Complaint>,
}

/// A call that says why something failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Complaint {
    /// A patch.
    pub call: Call,
    /// Where in the patch the reason belongs, as a JSON pointer.
    pub reason_at: &'static str,
}

/// One call, and what to tell about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The call.
    pub call: Call,
    /// The event to record when it succeeds. The object's name is appended if
    /// the note asks for it.
    pub on_success: Option<Note>,
    /// The event to record when it fails. The error is appended.
    pub on_failure: Option<Note>,
}

/// A call of the API.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Creates an object.
    Create {
        /// Its kind.
        kind: Kind,
        /// Its namespace.
        namespace: String,
        /// The object.
        object: Value,
    },
    /// Replaces an object that was read before; a conflict means that it has
    /// changed since.
    Replace {
        /// Its kind.
        kind: Kind,
        /// Its key.
        key: Key,
        /// What of it.
        part: Part,
        /// The object.
        object: Value,
    },
    /// Applies a merge patch.
    Patch {
        /// The object's kind.
        kind: Kind,
        /// Its key.
        key: Key,
        /// What of it.
        part: Part,
        /// The patch.
        patch: Value,
    },
    /// Deletes an object.
    Delete {
        /// Its kind.
        kind: Kind,
        /// Its key.
        key: Key,
        /// Its uid: never another object of the same name.
        uid: String,
        /// The grace period in seconds; the object's own if not given.
        grace: Option<i64>,
    },
    /// No call; the note is all.
    Nothing,
}

/// What of an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status.
    Main,
    /// The status.
    Status,
}

/// An event about an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The object.
    pub about: ObjectReference,
    /// Who tells.
    pub reporter: &'static str,
    /// On which host.
    pub host: String,
    /// Whether it is a warning.
    pub warning: bool,
    /// The reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// Whether the name of the object that the call made is appended.
    pub with_name: bool,
}

impl Plan {
    /// Asks to be woken at that time, or earlier if asked for that too.
    pub fn wake_at(&mut self, at: Timestamp) {
        self.again_at = Some(self.again_at.map_or(at, |other| other.min(at)));
    }

    /// Adds an action without notes.
    pub fn call(&mut self, call: Call) {
        self.actions.push(Action { call, on_success: None, on_failure: None });
    }

    /// Adds an action that is told of when it succeeds.
    pub fn call_noting(&mut self, call: Call, note: Note) {
        self.actions.push(Action { call, on_success: Some(note), on_failure: None });
    }

    /// Adds nothing but a note.
    pub fn note(&mut self, note: Note) {
        self.call_noting(Call::Nothing, note);
    }
}

impl Complaint {
    /// The call with the reason in it.
    pub(crate) fn with(self, reason: &str) -> Call {
        let mut call = self.call;
        if let Call::Patch { patch, .. } = &mut call
            && let Some(place) = patch.pointer_mut(self.reason_at)
        {
            *place = json!(reason);
        }
        call
    }
}

impl Call {
    /// Creates a typed object.
    pub fn create<K: Watched>(object: &K) -> Self {
        let namespace = object.metadata().namespace.clone().unwrap_or_default();
        Self::Create { kind: K::WHICH, namespace, object: to_value(object) }
    }

    /// Replaces a typed object.
    pub fn replace<K: Watched>(object: &K, part: Part) -> Self {
        Self::Replace {
            kind: K::WHICH,
            key: Key::of(object.metadata()),
            part,
            object: to_value(object),
        }
    }

    /// Deletes a typed object.
    pub fn delete<K: Watched>(object: &K, grace: Option<i64>) -> Self {
        let metadata = object.metadata();
        Self::Delete {
            kind: K::WHICH,
            key: Key::of(metadata),
            uid: uid(metadata).to_owned(),
            grace,
        }
    }

    /// Applies a merge patch to a typed object.
    pub fn patch<K: Watched>(object: &K, part: Part, patch: Value) -> Self {
        Self::Patch { kind: K::WHICH, key: Key::of(object.metadata()), part, patch }
    }
}

impl Note {
    /// A normal event.
    pub fn normal<K: Watched>(
        about: &K,
        reporter: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            about: reference::<K>(about.metadata()),
            reporter,
            host: String::new(),
            warning: false,
            reason,
            message: message.into(),
            with_name: false,
        }
    }

    /// A warning.
    pub fn warning<K: Watched>(
        about: &K,
        reporter: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { warning: true, ..Self::normal(about, reporter, reason, message) }
    }

    /// Appends the name of what the call makes.
    #[must_use]
    pub fn with_name(self) -> Self {
        Self { with_name: true, ..self }
    }

    /// Tells it from a host.
    #[must_use]
    pub fn from_host(self, host: &str) -> Self {
        Self { host: host.to_owned(), ..self }
    }
}

fn reference<K: Watched>(metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::WHICH.api_version().to_owned()),
        kind: Some(K::WHICH.name().to_owned()),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        field_path: None,
    }
}

/// The JSON form of a typed object.
pub(crate) fn to_value<K: Watched>(object: &K) -> Value {
    // Objects of the API always have a JSON form; null would be refused.
    let mut value = serde_json::to_value(object).unwrap_or(Value::Null);
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        // The server keeps its own books; sending them back only costs time.
        metadata.remove("managedFields");
    }
    value
}

/// The body of a deletion.
pub(crate) fn delete_options(uid: &str, grace: Option<i64>) -> Value {
    let mut options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": { "uid": uid },
    });
    if let Some(grace) = grace {
        options["gracePeriodSeconds"] = json!(grace);
    }
    options
}
