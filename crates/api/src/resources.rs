//! Amounts of resources as the scheduler counts them: integers per resource.

use std::fmt;

use crate::name::Name;
use crate::qualified::check_qualified_name;
use crate::quantity::Quantity;

/// Amounts of the resources that nodes offer and pods ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources {
    /// CPU, in thousandths of a core.
    pub milli_cpu: i64,
    /// Memory, in bytes.
    pub memory: i64,
    /// Local ephemeral storage, in bytes.
    pub ephemeral_storage: i64,
    /// Extended resources, huge pages and the like, sorted by name. No entry
    /// stands for zero.
    scalars: Vec<(Name, i64)>,
}

/// Which of the amounts of [`Resources`] a resource's name stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// `cpu`, in thousandths of a core.
    Cpu,
    /// `memory`, in bytes.
    Memory,
    /// `ephemeral-storage`, in bytes.
    EphemeralStorage,
    /// `pods`: how many pods a node takes. Never requested.
    Pods,
    /// Everything else that is counted, by its name.
    Scalar(Name),
    /// A name that the scheduler does not count.
    Uncounted,
}

impl ResourceKind {
    /// The kind of the resource called `name`.
    pub fn of(name: &str) -> Self {
        match name {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "ephemeral-storage" => Self::EphemeralStorage,
            "pods" => Self::Pods,
            other if is_scalar(other) => Self::Scalar(Name::new(other)),
            _ => Self::Uncounted,
        }
    }
}

/// Whether a resource that is none of the basic ones is counted: extended
/// resources, huge pages, attachable volume limits and prefixed native ones.
fn is_scalar(name: &str) -> bool {
    is_extended(name)
        || name.starts_with("hugepages-")
        || name.contains("kubernetes.io/")
        || name.starts_with("attachable-volumes-")
}

/// Whether `name` is an extended resource: qualified by a domain that is not
/// Kubernetes' own, and still a valid name when a quota puts `requests.` in
/// front of it.
pub fn is_extended(name: &str) -> bool {
    name.contains('/')
        && !name.contains("kubernetes.io/")
        && !name.starts_with("requests.")
        && check_qualified_name(&format!("requests.{name}")).is_ok()
}

impl Resources {
    /// The amount of `kind`; 0 for what is not counted here.
    pub fn get(&self, kind: &ResourceKind) -> i64 {
        match kind {
            ResourceKind::Cpu => self.milli_cpu,
            ResourceKind::Memory => self.memory,
            ResourceKind::EphemeralStorage => self.ephemeral_storage,
            ResourceKind::Scalar(name) => self.scalar(name),
            ResourceKind::Pods | ResourceKind::Uncounted => 0,
        }
    }

    /// The amount of the scalar resource `name`.
    pub fn scalar(&self, name: &Name) -> i64 {
        self.scalars.iter().find(|(n, _)| n == name).map_or(0, |(_, amount)| *amount)
    }

    /// The scalar resources that are not zero, by name.
    pub fn scalars(&self) -> impl ExactSizeIterator<Item = (&Name, i64)> {
        self.scalars.iter().map(|(name, amount)| (name, *amount))
    }

    /// Sets the scalar resource `name`.
    pub fn set_scalar(&mut self, name: Name, amount: i64) {
        match (self.scalars.binary_search_by(|(n, _)| n.cmp(&name)), amount) {
            (Ok(at), 0) => drop(self.scalars.remove(at)),
            (Ok(at), _) => self.scalars[at].1 = amount,
            (Err(_), 0) => {}
            (Err(at), _) => self.scalars.insert(at, (name, amount)),
        }
    }

    /// Sets the amount that `kind` stands for; ignores what is not counted
    /// here. CPU is taken in thousandths, the rest in units, both rounded up.
    pub fn set(&mut self, kind: ResourceKind, quantity: Quantity) {
        match kind {
            ResourceKind::Cpu => self.milli_cpu = quantity.milli_value(),
            ResourceKind::Memory => self.memory = quantity.value(),
            ResourceKind::EphemeralStorage => self.ephemeral_storage = quantity.value(),
            ResourceKind::Scalar(name) => self.set_scalar(name, quantity.value()),
            ResourceKind::Pods | ResourceKind::Uncounted => {}
        }
    }

    /// Adds every amount of `other`, capped to what fits.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    /// Takes every amount of `other` away, capped to what fits.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    /// Whether nothing is asked for or offered.
    pub fn is_zero(&self) -> bool {
        self.milli_cpu == 0
            && self.memory == 0
            && self.ephemeral_storage == 0
            && self.scalars.is_empty()
    }

    fn combine(&mut self, other: &Self, op: fn(i64, i64) -> i64) {
        self.milli_cpu = op(self.milli_cpu, other.milli_cpu);
        self.memory = op(self.memory, other.memory);
        self.ephemeral_storage = op(self.ephemeral_storage, other.ephemeral_storage);
        for (name, amount) in &other.scalars {
            self.set_scalar(name.clone(), op(self.scalar(name), *amount));
        }
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu={}m memory={}", self.milli_cpu, self.memory)?;
        if self.ephemeral_storage != 0 {
            write!(f, " ephemeral-storage={}", self.ephemeral_storage)?;
        }
        self.scalars.iter().try_for_each(|(name, amount)| write!(f, " {name}={amount}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_counted_names_from_others() {
        let scalar = |name: &str| ResourceKind::Scalar(Name::new(name));
        for (name, kind) in [
            ("cpu", ResourceKind::Cpu),
            ("pods", ResourceKind::Pods),
            ("hugepages-2Mi", scalar("hugepages-2Mi")),
            ("example.com/gpu", scalar("example.com/gpu")),
            ("attachable-volumes-aws-ebs", scalar("attachable-volumes-aws-ebs")),
            ("kubernetes.io/batch-cpu", scalar("kubernetes.io/batch-cpu")),
            ("requests.example.com/gpu", ResourceKind::Uncounted),
            ("storage", ResourceKind::Uncounted),
            ("example.com/", ResourceKind::Uncounted),
            ("example.com/a/b", ResourceKind::Uncounted),
            ("EXAMPLE.com/gpu", ResourceKind::Uncounted),
        ] {
            assert_eq!(ResourceKind::of(name), kind, "{name}");
        }
    }

    #[test]
    fn what_is_added_and_taken_away_leaves_no_trace() {
        let mut sum = Resources { milli_cpu: 100, ..Resources::default() };
        let before = sum.clone();
        let mut more = Resources { milli_cpu: 5, memory: 7, ..Resources::default() };
        more.set_scalar("example.com/gpu".into(), 2);
        sum.add(&more);
        assert_eq!(sum.scalar(&"example.com/gpu".into()), 2);
        sum.subtract(&more);
        assert_eq!(sum, before);
    }
}
