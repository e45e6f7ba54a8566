//! What users switch: families that are left out, and values of labels that are
//! allowed (`--disabled-metrics`, `--allow-metric-labels`,
//! `--allow-metric-labels-manifest`, `--show-hidden-metrics-for-version`).

use std::collections::{BTreeMap, BTreeSet};

use prometheus::proto::{Bucket, Counter, Gauge, Histogram, Metric, MetricFamily, MetricType};
use serde::Deserialize;
use thiserror::Error;

/// The minor release of Kubernetes that this scheduler follows.
const MINOR: u32 = 36;

/// What is put in place of a label's value that is not allowed.
const UNEXPECTED: &str = "unexpected";

/// Which families and values of labels to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Families that are left out, by full name.
    pub disabled: BTreeSet<String>,
    /// By family and label, the values that are allowed; others are shown as
    /// `unexpected`.
    pub allowed: AllowList,
}

/// By family and label, the values that are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(BTreeMap<(String, String), BTreeSet<String>>);

/// What is wrong with a flag about metrics.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChoiceError {
    /// A key of an allow list.
    #[error("{0:?} is not a metric and a label, allowed: metric,label")]
    Key(String),
    /// An entry of `--allow-metric-labels`.
    #[error("{0:?} has no values, allowed: metric,label='value,value'")]
    NoValues(String),
    /// The manifest is no YAML, or another document.
    #[error("the allow list cannot be read: {0}")]
    Manifest(String),
    /// A version of which nothing can be shown.
    #[error("{0:?} is not the minor version before this one, allowed: 1.{previous}", previous = MINOR - 1)]
    Version(String),
    /// A name that no family has.
    #[error("{0:?} is not the name of a metric")]
    Empty(String),
}

impl AllowList {
    /// Reads `--allow-metric-labels`: `metric,label='v1,v2',metric,label=v3`.
    /// The quotes may be left out around a single value.
    ///
    /// # Errors
    /// When it is written otherwise.
    pub fn parse(text: &str) -> Result<Self, ChoiceError> {
        let mut list = Self::default();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let Some((key, after)) = rest.split_once('=') else {
                return Err(ChoiceError::NoValues(rest.to_owned()));
            };
            let (values, after) = match after.strip_prefix(['\'', '"']) {
                Some(quoted) => {
                    let end = quoted.find(['\'', '"']);
                    let end = end.ok_or_else(|| ChoiceError::NoValues(rest.to_owned()))?;
                    (&quoted[..end], &quoted[end + 1..])
                }
                // The reference's flag is a map of strings: what follows up to
                // the next key are values.
                None => unquoted(after),
            };
            list.add(key, values)?;
            rest = after.trim_start_matches(',').trim_start();
        }
        Ok(list)
    }

    /// Reads the manifest of `--allow-metric-labels-manifest`: a YAML document
    /// with `allowListMapping`.
    ///
    /// # Errors
    /// When it is written otherwise.
    pub fn parse_manifest(text: &str) -> Result<Self, ChoiceError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Manifest {
            #[serde(default)]
            allow_list_mapping: BTreeMap<String, String>,
        }
        let manifest: Manifest = serde_saphyr::from_str(text)
            .map_err(|error| ChoiceError::Manifest(error.to_string()))?;
        let mut list = Self::default();
        for (key, values) in &manifest.allow_list_mapping {
            list.add(key, values)?;
        }
        Ok(list)
    }

    /// What `flag` says instead of what this says, where both say something.
    #[must_use]
    pub fn overridden_by(mut self, flag: Self) -> Self {
        self.0.extend(flag.0);
        self
    }

    fn add(&mut self, key: &str, values: &str) -> Result<(), ChoiceError> {
        let parts = key.split_once(',').map(|(metric, label)| (metric.trim(), label.trim()));
        let (metric, label) = parts
            .filter(|(metric, label)| {
                !metric.is_empty() && !label.is_empty() && !label.contains(',')
            })
            .ok_or_else(|| ChoiceError::Key(key.to_owned()))?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        self.0.insert((metric.to_owned(), label.to_owned()), values);
        Ok(())
    }
}

/// The values up to the next `metric,label=`, and what follows.
fn unquoted(text: &str) -> (&str, &str) {
    let Some(next) = text.find('=') else { return (text, "") };
    // Before the next `=` stand a metric and a label.
    let before = &text[..next];
    let label = before.rfind(',').unwrap_or(0);
    let metric = before[..label].rfind(',').unwrap_or(0);
    (&text[..metric], &text[metric..])
}

impl Choice {
    /// Reads `--disabled-metrics`, which may be given several times and hold
    /// several names separated by commas.
    ///
    /// # Errors
    /// When a name is empty.
    pub fn disable(&mut self, names: &str) -> Result<(), ChoiceError> {
        for name in names.split(',') {
            if name.trim().is_empty() {
                return Err(ChoiceError::Empty(name.to_owned()));
            }
            self.disabled.insert(name.trim().to_owned());
        }
        Ok(())
    }

    pub(crate) fn apply(&self, families: Vec<MetricFamily>) -> Vec<MetricFamily> {
        let shown = families.into_iter().filter(|f| !self.disabled.contains(f.name()));
        shown.map(|family| self.constrain(family)).collect()
    }

    fn constrain(&self, mut family: MetricFamily) -> MetricFamily {
        let name = family.name().to_owned();
        if !self.allowed.0.keys().any(|(metric, _)| *metric == name) {
            return family;
        }
        let mut merged: BTreeMap<Vec<(String, String)>, Metric> = BTreeMap::new();
        for mut metric in family.take_metric() {
            for label in metric.mut_label() {
                let key = (name.clone(), label.name().to_owned());
                let allowed = self.allowed.0.get(&key);
                if allowed.is_some_and(|values| !values.contains(label.value())) {
                    label.set_value(UNEXPECTED.to_owned());
                }
            }
            let labels = metric.get_label().iter();
            let labels = labels.map(|l| (l.name().to_owned(), l.value().to_owned())).collect();
            match merged.get_mut(&labels) {
                Some(sum) => add(sum, &metric, family.get_field_type()),
                None => drop(merged.insert(labels, metric)),
            }
        }
        family.set_metric(merged.into_values().collect());
        family
    }
}

fn add(sum: &mut Metric, metric: &Metric, kind: MetricType) {
    match kind {
        MetricType::COUNTER => {
            let mut counter = Counter::default();
            counter.set_value(sum.get_counter().get_value() + metric.get_counter().get_value());
            sum.set_counter(counter);
        }
        MetricType::GAUGE => {
            let mut gauge = Gauge::default();
            gauge.set_value(sum.get_gauge().get_value() + metric.get_gauge().get_value());
            sum.set_gauge(gauge);
        }
        MetricType::HISTOGRAM => {
            let (a, b) = (sum.get_histogram(), metric.get_histogram());
            let mut histogram = Histogram::default();
            histogram.set_sample_count(a.get_sample_count() + b.get_sample_count());
            histogram.set_sample_sum(a.get_sample_sum() + b.get_sample_sum());
            let buckets = a.get_bucket().iter().zip(b.get_bucket()).map(|(a, b)| {
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(a.upper_bound());
                bucket.set_cumulative_count(a.cumulative_count() + b.cumulative_count());
                bucket
            });
            histogram.set_bucket(buckets.collect());
            sum.set_histogram(histogram);
        }
        // There are none.
        MetricType::SUMMARY | MetricType::UNTYPED => {}
    }
}

/// Checks `--show-hidden-metrics-for-version`. No metric of this release is
/// hidden, so nothing changes.
///
/// # Errors
/// When it is not the minor version before this one.
pub fn check_hidden_version(version: &str) -> Result<(), ChoiceError> {
    let previous = format!("1.{}", MINOR - 1);
    if version == previous { Ok(()) } else { Err(ChoiceError::Version(version.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(&str, &str, &[&str])]) -> AllowList {
        let entry = |(metric, label, values): &(&str, &str, &[&str])| {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            (((*metric).to_owned(), (*label).to_owned()), values)
        };
        AllowList(entries.iter().map(entry).collect())
    }

    #[test]
    fn reads_allow_lists_as_the_reference_does() {
        let both = list(&[("m1", "l1", &["v1", "v2"]), ("m2", "l2", &["v3"])]);
        for text in
            ["m1,l1='v1,v2',m2,l2=v3", "m1,l1=v1,v2,m2,l2='v3'", "m1,l1=\"v1,v2\", m2,l2=v3"]
        {
            assert_eq!(AllowList::parse(text), Ok(both.clone()), "{text}");
        }
        let manifest = "allowListMapping:\n  \"m1,l1\": \"v1,v2\"\n  \"m2,l2\": v3\n";
        assert_eq!(AllowList::parse_manifest(manifest), Ok(both.clone()));
        let flag = list(&[("m2", "l2", &["other"])]);
        let expected = list(&[("m1", "l1", &["v1", "v2"]), ("m2", "l2", &["other"])]);
        assert_eq!(both.overridden_by(flag), expected);
    }

    #[test]
    fn says_what_is_wrong_with_a_flag() {
        let error = |text| AllowList::parse(text).expect_err(text).to_string();
        assert_eq!(error("m1='v'"), "\"m1\" is not a metric and a label, allowed: metric,label");
        assert_eq!(error("m1,l1"), "\"m1,l1\" has no values, allowed: metric,label='value,value'");
        assert!(AllowList::parse("m,l='v").is_err());
        assert!(AllowList::parse_manifest("other: {}").is_err());
        assert_eq!(check_hidden_version("1.35"), Ok(()));
        let error = check_hidden_version("1.36").expect_err("it is this one").to_string();
        assert_eq!(error, "\"1.36\" is not the minor version before this one, allowed: 1.35");
        assert!(Choice::default().disable("a,,b").is_err());
    }
}
