//! Taints and tolerations.
//!
//! Source: the core/v1 API documentation of `Taint` and `Toleration`.

use crate::name::Name;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// New pods are kept away.
    NoSchedule,
    /// New pods are kept away when possible.
    PreferNoSchedule,
    /// New pods are kept away and running ones are evicted.
    NoExecute,
}

impl TaintEffect {
    /// The effect of that name in the API.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "NoSchedule" => Some(Self::NoSchedule),
            "PreferNoSchedule" => Some(Self::PreferNoSchedule),
            "NoExecute" => Some(Self::NoExecute),
            _ => None,
        }
    }

    /// The effect's name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }

    /// Whether it keeps a new pod from the node, rather than only advising.
    pub const fn repels(self) -> bool {
        matches!(self, Self::NoSchedule | Self::NoExecute)
    }
}

/// A mark on a node that keeps pods away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// What the taint is about.
    pub key: Name,
    /// Its value; often empty.
    pub value: Name,
    /// What it does.
    pub effect: TaintEffect,
}

/// How a toleration compares values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TolerationOperator {
    /// Any value.
    Exists,
    /// The same value.
    Equal,
    /// An operator that tolerates nothing: unknown, or behind a feature gate
    /// that is off by default (`Lt`, `Gt`).
    Never,
}

/// A pod's acceptance of taints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// The taint's key; empty with [`TolerationOperator::Exists`]: every key.
    pub key: Name,
    /// How values are compared.
    pub operator: TolerationOperator,
    /// The value to compare with.
    pub value: Name,
    /// The effect tolerated; `None`: every one.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// Whether this toleration accepts `taint`.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match self.operator {
                TolerationOperator::Exists => true,
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Never => false,
            }
    }
}

/// The first taint among those that `counts` selects which no toleration
/// accepts.
pub fn find_untolerated<'t>(
    taints: &'t [Taint],
    tolerations: &[Toleration],
    counts: impl Fn(&Taint) -> bool,
) -> Option<&'t Taint> {
    taints.iter().find(|taint| counts(taint) && !tolerations.iter().any(|t| t.tolerates(taint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        key: &str,
        op: TolerationOperator,
        value: &str,
        effect: Option<TaintEffect>,
        ok: bool,
    ) {
        let toleration = Toleration { key: key.into(), operator: op, value: value.into(), effect };
        let taint = Taint { key: "k".into(), value: "v".into(), effect: TaintEffect::NoSchedule };
        assert_eq!(toleration.tolerates(&taint), ok, "{toleration:?}");
    }

    #[test]
    fn toleration_accepts_taint_of_same_key_value_and_effect() {
        use TolerationOperator::{Equal, Exists, Never};
        check("k", Equal, "v", Some(TaintEffect::NoSchedule), true);
        check("k", Equal, "v", None, true);
        check("k", Equal, "w", None, false);
        check("l", Equal, "v", None, false);
        check("k", Equal, "v", Some(TaintEffect::NoExecute), false);
        check("k", Exists, "", None, true);
        check("", Exists, "", None, true);
        check("", Equal, "v", None, true);
        check("", Equal, "", None, false);
        check("k", Never, "v", None, false);
    }
}
