use proptest::prelude::*;
use serde_json::{Value, json};

use super::{FieldSelector, LabelSelector, from_value};

#[test]
fn label_selectors_match_as_written() {
    let labels = json!({ "app": "web", "tier": "back", "n": "5", "example.com/x": "" });
    let cases = [
        ("", true),
        ("app=web", true),
        ("app==web,tier=back", true),
        ("app=web,tier=front", false),
        ("app!=api", true),
        ("missing!=api", true),
        ("app in (api, web)", true),
        ("app notin (api,web)", false),
        ("missing notin (api)", true),
        ("missing in (api)", false),
        ("app", true),
        ("!app", false),
        ("!missing", true),
        ("n>4", true),
        ("n > 5", false),
        ("n<6", true),
        ("app<6", false),
        ("example.com/x=", true),
        ("example.com/x in (,a)", true),
        ("in in (a)", false),
    ];
    for (text, expected) in cases {
        let selector = LabelSelector::parse(text).expect(text);
        assert_eq!(selector.matches(Some(&labels)), expected, "{text}");
    }
}

#[test]
fn objects_without_labels_match_what_asks_for_absence() {
    let selector = |text| LabelSelector::parse(text).expect("valid");
    assert!(selector("!a,b!=c").matches(None));
    assert!(!selector("a").matches(None));
    assert!(selector("").is_everything());
}

#[test]
fn wrong_label_selectors_are_refused_with_what_was_found() {
    let cases = [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found: 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("!=", "found '!=', expected: !, identifier, or 'end of string'"),
        ("!(", "unable to parse requirement: found '(', expected: identifier"),
    ];
    for (text, expected) in cases {
        assert_eq!(LabelSelector::parse(text).expect_err(text), expected, "{text}");
    }
    for text in ["-a=b", "a=-b", "a/b/c", "Upper.Case/a", "a>x", "a=ä"] {
        LabelSelector::parse(text).expect_err(text);
    }
}

#[test]
fn selector_objects_match() {
    let labels = json!({ "app": "web", "tier": "back" });
    let cases = [
        (Value::Null, false),
        (json!({}), true),
        (json!({ "matchLabels": { "app": "web" } }), true),
        (json!({ "matchLabels": { "app": "web", "x": "y" } }), false),
        (expression("tier", "In", json!(["back", "front"])), true),
        (expression("tier", "NotIn", json!(["back"])), false),
        (expression("tier", "Exists", json!([])), true),
        (expression("x", "DoesNotExist", Value::Null), true),
    ];
    for (selector, expected) in cases {
        let parsed = from_value(&selector).expect("valid");
        assert_eq!(parsed.matches(Some(&labels)), expected, "{selector}");
    }
    for (operator, values) in [("In", json!([])), ("Exists", json!(["a"])), ("Gt", json!(["1"]))] {
        from_value(&expression("a", operator, values)).expect_err(operator);
    }
}

fn expression(key: &str, operator: &str, values: Value) -> Value {
    json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] })
}

#[test]
fn field_selectors_match_and_unescape() {
    let field = |path: &str| match path {
        "metadata.name" => "a,b".to_owned(),
        "spec.nodeName" => "n1".to_owned(),
        _ => String::new(),
    };
    let cases = [
        ("", true),
        ("spec.nodeName=n1", true),
        ("spec.nodeName==n1", true),
        ("spec.nodeName!=n1", false),
        ("spec.other=", true),
        ("spec.other!=", false),
        (r"metadata.name=a\,b,spec.nodeName=n1", true),
        ("spec.nodeName=n1,,", true),
    ];
    for (text, expected) in cases {
        let selector = FieldSelector::parse(text).expect(text);
        assert_eq!(selector.matches(field), expected, "{text}");
    }
    let required = FieldSelector::parse("a!=1,b=2").expect("valid");
    assert_eq!((required.required_value("a"), required.required_value("b")), (None, Some("2")));
}

#[test]
fn wrong_field_selectors_are_refused() {
    assert_eq!(
        FieldSelector::parse("a=b,c").expect_err("no operator"),
        "invalid selector: 'a=b,c'; can't understand 'c'"
    );
    for text in [r"a=\x", r"a=\", "a=b=c"] {
        FieldSelector::parse(text).expect_err(text);
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[ a-c!=<>(),\\\\/.é]{0,12}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            selector.matches(Some(&json!({ "a": "b" })));
        }
        if let Ok(selector) = FieldSelector::parse(&text) {
            prop_assert!(selector.terms.iter().all(|term| text.contains(&term.path)));
        }
    }
}
