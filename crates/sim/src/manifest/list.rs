//! Lists in block style, as `kubectl get -o yaml` writes them: cut into their
//! items, so that a large dump is read in parallel, a broken item spoils no
//! other, and each one has a line.

/// The text of a list object, in parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts<'t> {
    /// Everything but the items; `items` is empty there.
    pub(super) rest: String,
    /// Each item as a YAML list of one, and its line within the text, from 0.
    pub(super) items: Vec<(&'t str, usize)>,
}

/// Cuts the text of a document; `None` when it is no list in block style, or
/// its items may refer to each other.
///
/// This looks at lines only and may be wrong about text that is spread over
/// lines in odd ways. Then some part is no valid YAML.
pub(super) fn cut(text: &str) -> Option<Parts<'_>> {
    if text.contains(" &") || text.contains(" *") {
        return None;
    }
    let lines = lines(text);
    let items_at = lines.iter().position(|line| line.text.trim_end() == "items:")?;
    let is_content = |line: &&Line<'_>| !line.content.is_empty() && !line.content.starts_with('#');
    let margin = lines[items_at + 1..].iter().find(is_content)?.depth;
    let starts_item = |line: &Line<'_>| {
        line.depth == margin && (line.content == "-" || line.content.starts_with("- "))
    };
    let end = lines[items_at + 1..]
        .iter()
        .position(|line| is_content(&line) && line.depth <= margin && !starts_item(line))
        .map_or(lines.len(), |length| items_at + 1 + length);

    let starts: Vec<usize> = (items_at + 1..end).filter(|n| starts_item(&lines[*n])).collect();
    let offset = |line: usize| lines.get(line).map_or(text.len(), |line| line.offset);
    let ends = starts.iter().skip(1).copied().chain([end]);
    let items = starts.iter().zip(ends).map(|(from, to)| (&text[offset(*from)..offset(to)], *from));
    let rest = [&text[..offset(items_at + 1)], &text[offset(end)..]].concat();
    let items: Vec<_> = items.collect();
    (!items.is_empty()).then_some(Parts { rest, items })
}

struct Line<'t> {
    text: &'t str,
    offset: usize,
    /// Blanks in front.
    depth: usize,
    /// What is between the blanks.
    content: &'t str,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut offset = 0;
    let line = |text| {
        let content = str::trim_start_matches(text, ' ');
        let depth = str::len(text) - content.len();
        let line = Line { text, offset, depth, content: content.trim_end() };
        offset += text.len();
        line
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, &[(&str, usize)])>) {
        let expected =
            expected.map(|(rest, items)| Parts { rest: rest.to_owned(), items: items.to_vec() });
        assert_eq!(cut(text), expected, "{text:?}");
    }

    #[test]
    fn cuts_items_at_their_margin() {
        check(
            "a: v1\nitems:\n- b: 1\n  c:\n  - d\n\n# e\n- f: |\n    - g\nkind: List\n",
            Some((
                "a: v1\nitems:\nkind: List\n",
                &[("- b: 1\n  c:\n  - d\n\n# e\n", 2), ("- f: |\n    - g\n", 7)],
            )),
        );
        check(
            "items:\n  - a: 1\n  -\n    b: 2",
            Some(("items:\n", &[("  - a: 1\n", 1), ("  -\n    b: 2", 2)])),
        );
    }

    #[test]
    fn leaves_other_text_alone() {
        check("", None);
        check("items: []\n", None);
        check("items:\n", None);
        check("items:\nkind: List\n", None);
        check("spec:\n  items:\n  - a\n", None);
        check("items:\n- &a {b: 1}\n- *a\n", None);
    }
}
