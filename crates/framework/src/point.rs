//! The extension points: the moments at which plugins take part.

use std::fmt;

use bitflags::bitflags;

/// One moment of a pod's way at which plugins are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionPoint {
    /// Before a pod may enter the activeQ.
    PreEnqueue,
    /// The order of the activeQ.
    QueueSort,
    /// Once a cycle, before nodes are looked at.
    PreFilter,
    /// Whether one node can run the pod.
    Filter,
    /// When no node can: what could be done about it.
    PostFilter,
    /// Once a cycle, before feasible nodes are scored.
    PreScore,
    /// How good one feasible node is.
    Score,
    /// A node was chosen: take what the pod needs there.
    Reserve,
    /// Allow, reject or hold the binding.
    Permit,
    /// Work needed before the binding.
    PreBind,
    /// The binding itself.
    Bind,
    /// After the binding.
    PostBind,
}

impl ExtensionPoint {
    /// Every point, in the order in which a pod meets them.
    pub const ALL: [Self; 12] = [
        Self::PreEnqueue,
        Self::QueueSort,
        Self::PreFilter,
        Self::Filter,
        Self::PostFilter,
        Self::PreScore,
        Self::Score,
        Self::Reserve,
        Self::Permit,
        Self::PreBind,
        Self::Bind,
        Self::PostBind,
    ];

    /// The point's name as metrics and logs write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreEnqueue => "PreEnqueue",
            Self::QueueSort => "QueueSort",
            Self::PreFilter => "PreFilter",
            Self::Filter => "Filter",
            Self::PostFilter => "PostFilter",
            Self::PreScore => "PreScore",
            Self::Score => "Score",
            Self::Reserve => "Reserve",
            Self::Permit => "Permit",
            Self::PreBind => "PreBind",
            Self::Bind => "Bind",
            Self::PostBind => "PostBind",
        }
    }

    /// The point's field under `profiles[].plugins`.
    pub const fn config_field(self) -> &'static str {
        match self {
            Self::PreEnqueue => "preEnqueue",
            Self::QueueSort => "queueSort",
            Self::PreFilter => "preFilter",
            Self::Filter => "filter",
            Self::PostFilter => "postFilter",
            Self::PreScore => "preScore",
            Self::Score => "score",
            Self::Reserve => "reserve",
            Self::Permit => "permit",
            Self::PreBind => "preBind",
            Self::Bind => "bind",
            Self::PostBind => "postBind",
        }
    }

    /// The point as a set of one.
    pub const fn set(self) -> PointSet {
        PointSet::from_bits_truncate(1 << self as u16)
    }
}

impl fmt::Display for ExtensionPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

bitflags! {
    /// A set of extension points.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PointSet: u16 {
        /// See [`ExtensionPoint::PreEnqueue`].
        const PRE_ENQUEUE = 1 << ExtensionPoint::PreEnqueue as u16;
        /// See [`ExtensionPoint::QueueSort`].
        const QUEUE_SORT = 1 << ExtensionPoint::QueueSort as u16;
        /// See [`ExtensionPoint::PreFilter`].
        const PRE_FILTER = 1 << ExtensionPoint::PreFilter as u16;
        /// See [`ExtensionPoint::Filter`].
        const FILTER = 1 << ExtensionPoint::Filter as u16;
        /// See [`ExtensionPoint::PostFilter`].
        const POST_FILTER = 1 << ExtensionPoint::PostFilter as u16;
        /// See [`ExtensionPoint::PreScore`].
        const PRE_SCORE = 1 << ExtensionPoint::PreScore as u16;
        /// See [`ExtensionPoint::Score`].
        const SCORE = 1 << ExtensionPoint::Score as u16;
        /// See [`ExtensionPoint::Reserve`].
        const RESERVE = 1 << ExtensionPoint::Reserve as u16;
        /// See [`ExtensionPoint::Permit`].
        const PERMIT = 1 << ExtensionPoint::Permit as u16;
        /// See [`ExtensionPoint::PreBind`].
        const PRE_BIND = 1 << ExtensionPoint::PreBind as u16;
        /// See [`ExtensionPoint::Bind`].
        const BIND = 1 << ExtensionPoint::Bind as u16;
        /// See [`ExtensionPoint::PostBind`].
        const POST_BIND = 1 << ExtensionPoint::PostBind as u16;
    }
}
