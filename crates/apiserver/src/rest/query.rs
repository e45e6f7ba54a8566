//! The part of a URL behind the question mark.

use std::collections::BTreeMap;

use steersman_apimachinery::error::ApiError;

use super::path::decode;

/// Parameters by name; of those given more than once, the first.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads a query; what cannot be decoded is left out.
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let mut parameters = BTreeMap::new();
        for pair in query.unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| decode(&text.replace('+', " "));
            if let (Some(name), Some(value)) = (plain(name), plain(value)) {
                parameters.entry(name).or_insert(value);
            }
        }
        Self(parameters)
    }

    /// A parameter, empty if not given.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A yes or no. A parameter without a value is a yes, as is anything but
    /// `0` and `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !matches!(value.as_str(), "0" | "false"))
    }

    /// A yes or no that may be missing.
    pub(crate) fn maybe_flag(&self, name: &str) -> Option<bool> {
        self.0.contains_key(name).then(|| self.flag(name))
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        match self.text(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                ApiError::bad_request(format!("{name}: invalid value {text:?}: not a number"))
            }),
        }
    }

    /// Whether nothing is to be stored. The only value there is, is `All`.
    pub(crate) fn dry_run(&self) -> Result<bool, ApiError> {
        match self.text("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => Err(ApiError::new(
                422,
                "Invalid",
                format!("dryRun: Unsupported value: {other:?}: supported values: \"All\""),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn parameters_are_decoded() {
        let query =
            Query::parse(Some("labelSelector=a%3Db%2Cc&watch=1&limit=5&x=a+b&flag&no=false"));
        assert_eq!(query.text("labelSelector"), "a=b,c");
        assert_eq!(query.text("x"), "a b");
        assert!(query.flag("watch") && query.flag("flag") && !query.flag("no"));
        assert_eq!((query.maybe_flag("no"), query.maybe_flag("none")), (Some(false), None));
        assert_eq!(query.number("limit"), Ok(Some(5)));
        assert_eq!(query.number("nothing"), Ok(None));
        query.number("x").unwrap_err();
    }
}
