//! What a path names.

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A resource, an object, or a subresource.
    Resource(ResourcePath),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/apps`.
    Group(String),
    /// `/api/v1`, `/apis/apps/v1`.
    GroupVersion(String, String),
    /// Something else.
    Other,
}

/// A path below a group's version.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty: none, or all.
    pub(crate) namespace: String,
    pub(crate) plural: String,
    /// Empty: the collection.
    pub(crate) name: String,
    /// Empty: the object itself.
    pub(crate) subresource: String,
    /// The old way to ask for a watch: `/api/v1/watch/pods`.
    pub(crate) is_watch: bool,
}

/// Reads a path.
pub(crate) fn parse(path: &str) -> Target {
    let segments: Option<Vec<String>> =
        path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect();
    let Some(segments) = segments else { return Target::Other };
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["api", version] => Target::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group] => Target::Group((*group).to_owned()),
        ["apis", group, version] => {
            Target::GroupVersion((*group).to_owned(), (*version).to_owned())
        }
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Target::Other,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Target {
    let (rest, is_watch) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (rest, true),
        rest => (rest, false),
    };
    let (namespace, plural, name, subresource) = match rest {
        // Namespaces are objects too, with subresources of their own.
        ["namespaces", name, sub @ ("status" | "finalize")] => ("", "namespaces", *name, *sub),
        ["namespaces", namespace, plural] => (*namespace, *plural, "", ""),
        ["namespaces", namespace, plural, name] => (*namespace, *plural, *name, ""),
        ["namespaces", namespace, plural, name, sub] => (*namespace, *plural, *name, *sub),
        [plural] => ("", *plural, "", ""),
        [plural, name] => ("", *plural, *name, ""),
        [plural, name, sub] => ("", *plural, *name, *sub),
        _ => return Target::Other,
    };
    Target::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        plural: plural.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        is_watch,
    })
}

/// A text without its percent signs; `None` if they make no sense.
pub(crate) fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |at: usize| char::from(*tail.get(at)?).to_digit(16);
        let code = digit(0)? * 16 + digit(1)?;
        bytes.push(u8::try_from(code).ok()?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{ResourcePath, Target, decode, parse};

    fn path(group: &str, namespace: &str, plural: &str, name: &str, sub: &str) -> Target {
        Target::Resource(ResourcePath {
            group: group.to_owned(),
            version: "v1".to_owned(),
            namespace: namespace.to_owned(),
            plural: plural.to_owned(),
            name: name.to_owned(),
            subresource: sub.to_owned(),
            is_watch: false,
        })
    }

    #[test]
    fn paths_name_what_they_name_in_the_reference() {
        let cases = [
            ("/api/v1/pods", path("", "", "pods", "", "")),
            ("/api/v1/nodes/n1", path("", "", "nodes", "n1", "")),
            ("/api/v1/nodes/n1/status", path("", "", "nodes", "n1", "status")),
            ("/api/v1/namespaces", path("", "", "namespaces", "", "")),
            ("/api/v1/namespaces/a", path("", "", "namespaces", "a", "")),
            ("/api/v1/namespaces/a/status", path("", "", "namespaces", "a", "status")),
            ("/api/v1/namespaces/a/pods", path("", "a", "pods", "", "")),
            ("/api/v1/namespaces/a/pods/p/binding", path("", "a", "pods", "p", "binding")),
            ("/apis/apps/v1/namespaces/a/deployments/d", path("apps", "a", "deployments", "d", "")),
            ("/apis/rbac/v1/clusterroles/a%3Ab", path("rbac", "", "clusterroles", "a:b", "")),
            ("/api/v1/namespaces/a/pods/p/binding/x", Target::Other),
            ("/api", Target::CoreVersions),
            ("/apis/", Target::Groups),
            ("/apis/apps", Target::Group("apps".to_owned())),
            ("/apis/apps/v1", Target::GroupVersion("apps".to_owned(), "v1".to_owned())),
            ("/nothing", Target::Other),
            ("/", Target::Other),
        ];
        for (text, target) in cases {
            assert_eq!(parse(text), target, "{text}");
        }
        let Target::Resource(watch) = parse("/api/v1/watch/namespaces/a/pods") else {
            panic!("not a resource");
        };
        assert!(watch.is_watch && watch.namespace == "a");
    }

    #[test]
    fn percent_signs_are_decoded_or_refused() {
        assert_eq!(decode("a%2Fb%c3%a4").as_deref(), Some("a/bä"));
        for bad in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
