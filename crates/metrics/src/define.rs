//! Defining families of metrics: name, labels, buckets, and how stable the
//! reference says they are.

use prometheus::core::Collector;
use prometheus::{
    Counter, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

/// How stable a metric is, as the reference promises it: its help text begins
/// with this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// May change or go.
    Alpha,
    /// Labels are not taken away.
    Beta,
    /// Changes only after a long deprecation.
    Stable,
    /// One of this project's own.
    Own,
    /// Not subject to anybody's promise: of the process.
    Raw,
}

impl Stability {
    /// `[ALPHA] ` and the like, as in the reference's help texts.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Alpha => "[ALPHA] ",
            Self::Beta => "[BETA] ",
            Self::Stable => "[STABLE] ",
            Self::Own | Self::Raw => "",
        }
    }

    /// The value of the label `stability_level`.
    pub(crate) const fn level(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Stable => "STABLE",
            Self::Own | Self::Raw => "",
        }
    }
}

/// What a family is.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// How stable it is.
    pub stability: Stability,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The upper bounds of a histogram's buckets, without the infinite one.
    pub buckets: Vec<f64>,
}

/// `count` bounds, each `factor` times the one before.
pub(crate) fn exponential(start: f64, factor: f64, count: usize) -> Vec<f64> {
    let mut bounds = Vec::with_capacity(count);
    let mut bound = start;
    for _ in 0..count {
        bounds.push(bound);
        bound *= factor;
    }
    bounds
}

/// Makes families, registers them and remembers what they are.
pub(crate) struct Definer<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) definitions: Vec<Definition>,
}

/// Why making and registering cannot fail.
const VALID: &str = "names, labels and buckets are constants that a test checks";

/// A family's constants.
#[derive(Clone, Copy)]
pub(crate) struct Head(pub(crate) Stability, pub(crate) &'static str, pub(crate) &'static str);

impl Head {
    fn opts(self) -> Opts {
        Opts::new(self.1, format!("{}{}", self.0.prefix(), self.2))
    }
}

impl Definer<'_> {
    fn define<T: Collector + Clone + 'static>(
        &mut self,
        head: Head,
        kind: &'static str,
        labels: &'static [&'static str],
        buckets: &[f64],
        collector: T,
    ) -> T {
        let Head(stability, name, _) = head;
        let buckets = buckets.to_vec();
        self.definitions.push(Definition { name, kind, stability, labels, buckets });
        self.registry.register(Box::new(collector.clone())).expect(VALID);
        collector
    }

    pub(crate) fn counter(&mut self, head: Head) -> IntCounter {
        let made = IntCounter::with_opts(head.opts()).expect(VALID);
        self.define(head, "counter", &[], &[], made)
    }

    pub(crate) fn float_counter(&mut self, head: Head) -> Counter {
        let made = Counter::with_opts(head.opts()).expect(VALID);
        self.define(head, "counter", &[], &[], made)
    }

    pub(crate) fn counters(
        &mut self,
        head: Head,
        labels: &'static [&'static str],
    ) -> IntCounterVec {
        let made = IntCounterVec::new(head.opts(), labels).expect(VALID);
        self.define(head, "counter", labels, &[], made)
    }

    pub(crate) fn gauge(&mut self, head: Head) -> IntGauge {
        let made = IntGauge::with_opts(head.opts()).expect(VALID);
        self.define(head, "gauge", &[], &[], made)
    }

    pub(crate) fn float_gauge(&mut self, head: Head) -> Gauge {
        let made = Gauge::with_opts(head.opts()).expect(VALID);
        self.define(head, "gauge", &[], &[], made)
    }

    pub(crate) fn gauges(&mut self, head: Head, labels: &'static [&'static str]) -> IntGaugeVec {
        let made = IntGaugeVec::new(head.opts(), labels).expect(VALID);
        self.define(head, "gauge", labels, &[], made)
    }

    pub(crate) fn histogram(&mut self, head: Head, buckets: Vec<f64>) -> Histogram {
        let opts = HistogramOpts::from(head.opts()).buckets(buckets.clone());
        let made = Histogram::with_opts(opts).expect(VALID);
        self.define(head, "histogram", &[], &buckets, made)
    }

    pub(crate) fn histograms(
        &mut self,
        head: Head,
        labels: &'static [&'static str],
        buckets: Vec<f64>,
    ) -> HistogramVec {
        let opts = HistogramOpts::from(head.opts()).buckets(buckets.clone());
        let made = HistogramVec::new(opts, labels).expect(VALID);
        self.define(head, "histogram", labels, &buckets, made)
    }
}
