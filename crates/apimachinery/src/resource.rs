//! What a server has to know of a resource to serve it.

use std::fmt;

use crate::rules::Rules;

/// One resource in one version: a row of discovery.
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// `v1` and so on.
    pub version: &'static str,
    /// `Pod`.
    pub kind: &'static str,
    /// `pods`.
    pub plural: &'static str,
    /// `pod`.
    pub singular: &'static str,
    /// Whether its objects belong to a namespace.
    pub namespaced: bool,
    /// `po`.
    pub short_names: &'static [&'static str],
    /// `all` and other collections that `kubectl get` knows.
    pub categories: &'static [&'static str],
    /// The name of its schema: `io.k8s.api.core.v1.Pod`.
    pub schema: &'static str,
    /// Whether objects are kept, or each request is answered on the spot.
    pub storage: Storage,
    /// Whether `/status` is a subresource: writes to the main resource then
    /// leave `status` as it is, writes to `/status` leave the rest.
    pub has_status: bool,
    /// Further subresources.
    pub subresources: &'static [Subresource],
    /// Subresources that clients know and this API does not have.
    pub absent: &'static [Absent],
    /// What the kind demands.
    pub rules: &'static dyn Rules,
}

/// Where objects of a resource are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// As they are.
    Own,
    /// As objects of another resource, of which this is another view (the
    /// `events` of the core group and of `events.k8s.io` are the same objects).
    /// [`Rules::to_storage`] and [`Rules::from_storage`] convert.
    SharedWith {
        /// Group of the resource that keeps them.
        group: &'static str,
        /// Its plural.
        plural: &'static str,
    },
    /// Nowhere: the resource can only be created, and the answer is what
    /// [`Rules::answer`] makes of it (`SelfSubjectAccessReview`).
    Nowhere,
    /// Nowhere: creating one is the POST of a subresource of the object of the
    /// same name (`bindings`, which is `pods/binding`).
    Through {
        /// Group of the object's resource.
        group: &'static str,
        /// Its plural.
        plural: &'static str,
        /// The subresource.
        subresource: &'static str,
    },
}

/// A subresource other than `/status`.
#[derive(Clone, Copy, Debug)]
pub struct Subresource {
    /// `binding`, `scale`, `eviction`.
    pub name: &'static str,
    /// Group of the kind that is sent and received.
    pub group: &'static str,
    /// Version of that kind.
    pub version: &'static str,
    /// That kind: `Binding`, `Scale`, `Eviction`.
    pub kind: &'static str,
    /// What can be done with it.
    pub action: Action,
}

/// A subresource that clients ask for in vain, and what they are told. Without a
/// word about it they would blame their version or the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absent {
    /// `log`, `exec`.
    pub name: &'static str,
    /// Why there is none, for people.
    pub why: &'static str,
}

/// How a subresource works. The functions are in [`Rules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read and written as a view of the object ([`Rules::read_view`],
    /// [`Rules::write_view`]): GET, PUT and PATCH.
    View,
    /// POST changes the object ([`Rules::perform`]).
    Perform,
    /// POST deletes the object if its disruption budgets allow it.
    Evict,
    /// PUT writes `spec.finalizers` and nothing else.
    Finalize,
}

/// Group, version and resource: what a request's path names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The group; empty for core.
    pub group: String,
    /// The plural.
    pub plural: String,
}

impl Resource {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `pods`, `deployments.apps`: how errors name it.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether there are objects of it that can be read.
    pub fn keeps_objects(&self) -> bool {
        matches!(self.storage, Storage::Own | Storage::SharedWith { .. })
    }

    /// The subresource of a name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.qualified(), self.version)
    }
}
