//! Objects other than pods and nodes that plugins read: what a kind must
//! provide so that the core can store it without knowing it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::key::ObjectKey;
use crate::node::Node;
use crate::pod::PodInfo;

/// A kind of object that plugins may read (a service, a namespace, a custom
/// resource of a plugin from outside).
pub trait StoredObject: Any + fmt::Debug + Send + Sync + Sized {
    /// The kind as cluster events write it: `Service`,
    /// `storage.k8s.io/CSINode`.
    const RESOURCE: &'static str;

    /// Namespace and name.
    fn key(&self) -> &ObjectKey;
}

/// A [`StoredObject`] whose type was forgotten, on its way to the core.
#[derive(Clone)]
pub struct AnyObject {
    resource: &'static str,
    key: ObjectKey,
    value: Arc<dyn Any + Send + Sync>,
}

impl AnyObject {
    /// Forgets the type of `object`.
    pub fn new<T: StoredObject>(object: T) -> Self {
        Self { resource: T::RESOURCE, key: object.key().clone(), value: Arc::new(object) }
    }

    /// The kind, as [`StoredObject::RESOURCE`].
    pub fn resource(&self) -> &'static str {
        self.resource
    }

    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The object, when it is a `T`.
    pub fn get<T: StoredObject>(&self) -> Option<&T> {
        self.value.downcast_ref()
    }

    /// As [`AnyObject::get`], to keep.
    pub fn shared<T: StoredObject>(&self) -> Option<Arc<T>> {
        self.value.clone().downcast().ok()
    }
}

impl fmt::Debug for AnyObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource, self.key)
    }
}

/// An object as the core takes it in.
#[derive(Clone, Debug)]
pub enum ClusterObject {
    /// A pod, bound or not.
    Pod(Arc<PodInfo>),
    /// A node.
    Node(Arc<Node>),
    /// Anything else that plugins read.
    Other(AnyObject),
}
