//! Pod signatures: what of a pod the plugins read, as a value. Pods of equal
//! signature get equal answers, so answers can be remembered per signature.

use std::fmt::{self, Write};

use steersman_api::name::Interned;
use steersman_api::pod::PodInfo;

/// What of a pod all plugins of a profile read. Readable, for explanations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Signature(Interned<String>);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Collects the fragments of one signature.
#[derive(Debug, Default)]
pub struct SignatureBuilder(String);

impl SignatureBuilder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one part. `value` must print all of itself, and equal values
    /// alike. Several plugins may add one part under one name.
    pub fn part(&mut self, name: &str, value: &dyn fmt::Debug) {
        let start = self.0.len();
        write!(self.0, "{name}={value:?};").expect("writing to a string");
        // Plugins that read the same part add it once.
        if self.0[..start].contains(&self.0[start..]) {
            self.0.truncate(start);
        }
    }

    /// The signature of all parts.
    pub fn finish(self) -> Signature {
        Signature(Interned::new(self.0))
    }
}

/// Whether a plugin's reading of a pod can be put into a signature.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signable {
    /// It was.
    Yes,
    /// What the plugin answers depends on more than it could add; answers for
    /// this pod must not be reused.
    No,
}

/// A plugin says what of a pod its Filter and Score read.
pub trait Sign: Send + Sync {
    /// Adds everything of `pod` that can change the plugin's answers.
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable;
}

/// What besides the pod's signature an answer about a node depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// On that node's generation alone: the answer stays true until the node
    /// or its pods change.
    Node,
    /// On other nodes or objects as well.
    Cluster,
}
