//! One rule of a role: what it allows, and what of it another rule covers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::attributes::{Attributes, Target};

/// What is meant by all of something.
const ALL: &str = "*";

/// What may be done to what. The fields are those of the API's `PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) api_groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) resource_names: Vec<String>,
    pub(crate) non_resource_urls: Vec<String>,
}

impl Rule {
    /// The rules of a role, as it is stored.
    pub(crate) fn all_of(role: &Value) -> Vec<Self> {
        let rules = role.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().map(Self::of).collect()
    }

    fn of(rule: &Value) -> Self {
        let texts = |field: &str| {
            let list = rule.get(field).and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: texts("verbs"),
            api_groups: texts("apiGroups"),
            resources: texts("resources"),
            resource_names: texts("resourceNames"),
            non_resource_urls: texts("nonResourceURLs"),
        }
    }

    /// The two rules that allow everything.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || vec![ALL.to_owned()];
        [
            Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), non_resource_urls: all(), ..Self::default() },
        ]
    }

    /// Whether it allows this.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        if !has(&self.verbs, asked.verb) {
            return false;
        }
        match asked.target {
            Target::Resource { group, resource, subresource, name, .. } => {
                has(&self.api_groups, group)
                    && self.names_resource(resource, subresource)
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|known| known == name))
            }
            Target::Path(path) => self.non_resource_urls.iter().any(|url| covers_url(url, path)),
        }
    }

    /// `*` is everything, `*/scale` that subresource of everything. There is no
    /// `pods/*`: in the reference it is a name like any other.
    fn names_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|known| {
            known == ALL
                || match known.split_once('/') {
                    None => subresource.is_empty() && known == resource,
                    Some((of, sub)) => {
                        !subresource.is_empty()
                            && sub == subresource
                            && (of == ALL || of == resource)
                    }
                }
        })
    }

    /// Whether it allows everything that the other does.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let names = match other.resource_names.as_slice() {
            [] => self.resource_names.is_empty(),
            names => {
                self.resource_names.is_empty()
                    || names.iter().all(|name| self.resource_names.contains(name))
            }
        };
        let resource = |wanted: &String| {
            self.resources.contains(wanted)
                || wanted
                    .split_once('/')
                    .is_some_and(|(_, sub)| self.resources.contains(&format!("{ALL}/{sub}")))
        };
        let is_all = |list: &[String]| list.iter().any(|known| known == ALL);
        names
            && other.verbs.iter().all(|verb| has(&self.verbs, verb))
            && other.api_groups.iter().all(|group| has(&self.api_groups, group))
            && (is_all(&self.resources) || other.resources.iter().all(resource))
            && other
                .non_resource_urls
                .iter()
                .all(|wanted| self.non_resource_urls.iter().any(|known| covers_url(known, wanted)))
    }

    /// It as rules of one verb for one thing each.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        for verb in &self.verbs {
            for url in &self.non_resource_urls {
                parts.push(Self {
                    verbs: vec![verb.clone()],
                    non_resource_urls: vec![url.clone()],
                    ..Self::default()
                });
            }
            for group in &self.api_groups {
                for resource in &self.resources {
                    let part = Self {
                        verbs: vec![verb.clone()],
                        api_groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        parts.push(part);
                        continue;
                    }
                    let names = self.resource_names.iter();
                    parts.extend(
                        names.map(|name| Self {
                            resource_names: vec![name.clone()],
                            ..part.clone()
                        }),
                    );
                }
            }
        }
        parts
    }

    /// The rule in the API's form; fields without anything are left out.
    pub(crate) fn to_value(&self) -> Value {
        let mut rule = json!({ "verbs": self.verbs });
        for (field, list) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !list.is_empty() {
                rule[field] = json!(list);
            }
        }
        rule
    }

    /// The rule on one line: `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`.
    pub(crate) fn line(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts.into_iter().filter(|(_, list)| !list.is_empty());
        let parts: Vec<String> =
            parts.map(|(name, list)| format!("{name}:{}", quoted(list))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// What of the rules the others do not cover, one verb for one thing each.
pub(crate) fn missing(held: &[&Rule], wanted: &[Rule]) -> Vec<Rule> {
    let parts = wanted.iter().flat_map(Rule::parts);
    parts.filter(|part| !held.iter().any(|rule| rule.covers(part))).collect()
}

/// Rules for the same thing as one rule with all of their verbs, one a line,
/// sorted.
pub(crate) fn lines(rules: &[Rule]) -> Vec<String> {
    let mut merged: BTreeMap<Rule, Vec<String>> = BTreeMap::new();
    for rule in rules {
        let verbs = merged.entry(Rule { verbs: Vec::new(), ..rule.clone() }).or_default();
        for verb in &rule.verbs {
            if !verbs.contains(verb) {
                verbs.push(verb.clone());
            }
        }
    }
    let mut lines: Vec<String> =
        merged.into_iter().map(|(rule, verbs)| Rule { verbs, ..rule }.line()).collect();
    lines.sort();
    lines
}

/// A list as the reference's messages show it: `["a" "b"]`.
pub(crate) fn quoted(list: &[String]) -> String {
    let list: Vec<String> = list.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", list.join(" "))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|known| known == ALL || known == wanted)
}

/// A URL of a rule may end in `*`.
fn covers_url(known: &str, wanted: &str) -> bool {
    known == wanted || known.ends_with('*') && wanted.starts_with(known.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn rule(value: Value) -> Rule {
        Rule::of(&value)
    }

    /// `verb group/resource/subresource:name` or `verb /path`; `-` is nothing.
    fn allows(rule: &Rule, asked: &str) -> bool {
        let (verb, what) = asked.split_once(' ').unwrap();
        let target = if what.starts_with('/') {
            Target::Path(what)
        } else {
            let (what, name) = what.split_once(':').unwrap_or((what, ""));
            let mut parts = what.split('/').map(|part| if part == "-" { "" } else { part });
            Target::Resource {
                group: parts.next().unwrap(),
                resource: parts.next().unwrap(),
                subresource: parts.next().unwrap_or(""),
                namespace: "",
                name,
            }
        };
        rule.allows(&Attributes { verb, target })
    }

    #[test]
    fn rules_allow_what_they_allow_in_the_reference() {
        let pods = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
        let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let scale = json!({"verbs": ["update"], "apiGroups": ["apps"], "resources": ["*/scale"]});
        let sub = json!({"verbs": ["create"], "apiGroups": [""], "resources": ["pods/binding"]});
        let star = json!({"verbs": ["create"], "apiGroups": [""], "resources": ["pods/*"]});
        let named = json!({"verbs": ["get", "create"], "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"], "resourceNames": ["a", "b"]});
        let urls = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/api/*"]});
        let every_url = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
        for (value, asked, expected) in [
            (&pods, "get -/pods:p", true),
            (&pods, "list -/pods", true),
            (&pods, "watch -/pods", false),
            (&pods, "get -/pods/status:p", false),
            (&pods, "get apps/pods:p", false),
            (&pods, "get -/nodes:n", false),
            (&pods, "get /pods", false),
            (&all, "deletecollection apps/deployments", true),
            (&all, "create -/pods/binding:p", true),
            (&all, "get /healthz", false),
            (&scale, "update apps/deployments/scale:d", true),
            (&scale, "update apps/deployments:d", false),
            (&scale, "update apps/deployments/status:d", false),
            (&sub, "create -/pods/binding:p", true),
            (&sub, "create -/pods", false),
            (&sub, "create -/bindings", false),
            (&star, "create -/pods/binding:p", false),
            (&star, "create -/pods", false),
            (&named, "get coordination.k8s.io/leases:a", true),
            (&named, "get coordination.k8s.io/leases:c", false),
            // Who creates does not name: such a rule never allows it.
            (&named, "create coordination.k8s.io/leases", false),
            (&urls, "get /healthz", true),
            (&urls, "get /healthz/ping", false),
            (&urls, "get /api/v1", true),
            (&urls, "get /api", false),
            (&urls, "post /api/v1", false),
            (&every_url, "get /metrics", true),
            (&every_url, "get -/pods", false),
        ] {
            assert_eq!(allows(&rule(value.clone()), asked), expected, "{value} {asked}");
        }
    }

    #[test]
    fn what_is_missing_is_told_by_thing() {
        let held = [
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"]})),
            rule(json!({"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"]})),
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"],
                "resourceNames": ["mine"]})),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/api/*"]})),
        ];
        let wanted = [
            rule(json!({"verbs": ["get", "list", "watch"], "apiGroups": ["", "apps"],
                "resources": ["pods", "pods/scale"]})),
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"],
                "resourceNames": ["mine", "theirs"]})),
            rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]})),
            rule(json!({"verbs": ["get"], "nonResourceURLs": ["/api/v1", "/metrics", "/api*"]})),
        ];
        let held: Vec<&Rule> = held.iter().collect();
        expect![[r#"
            {APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}
            {APIGroups:[""], Resources:["pods/scale"], Verbs:["list" "watch"]}
            {APIGroups:[""], Resources:["secrets"], ResourceNames:["theirs"], Verbs:["get"]}
            {APIGroups:[""], Resources:["secrets"], Verbs:["get"]}
            {NonResourceURLs:["/api*"], Verbs:["get"]}
            {NonResourceURLs:["/metrics"], Verbs:["get"]}"#]]
        .assert_eq(&lines(&missing(&held, &wanted)).join("\n"));
    }
}
