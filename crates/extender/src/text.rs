//! The border for words from outside: whatever text an extender sends gets into
//! messages, pods and logs through [`harmless`], and no other way.

/// Texts of extenders are cut to so many bytes.
const LONGEST_TEXT: usize = 1024;

/// The text as it may be shown to people: in one line, without what terminals
/// and logs would act on, and of bounded length.
pub(crate) fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(LONGEST_TEXT));
    for c in text.chars().map(shown_as) {
        if shown.len() + c.len_utf8() > LONGEST_TEXT {
            shown.push_str(" ...");
            break;
        }
        shown.push(c);
    }
    shown
}

/// Breaks become spaces; what steers terminals, or turns the direction of what
/// is read, becomes the character that stands for one that cannot be shown.
fn shown_as(c: char) -> char {
    match c {
        '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_extenders_do_not_reach_terminals() {
        for (text, expected) in [
            ("no GPU left", "no GPU left"),
            ("größer als 5 µs, 日本", "größer als 5 µs, 日本"),
            ("boom\nE1130 forged line", "boom E1130 forged line"),
            ("a\r\nb\tc\u{b}d\u{c}e", "a  b c d e"),
            ("\u{1b}[2Jgone", "\u{fffd}[2Jgone"),
            ("\0\u{7}\u{8}\u{7f}", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            // C1: the one-character forms of ESC sequences, and NEL.
            ("\u{9b}31m\u{9d}0;title\u{85}next", "\u{fffd}31m\u{fffd}0;title next"),
            ("line\u{2028}paragraph\u{2029}end", "line paragraph end"),
            ("\u{202e}txet\u{2066}", "\u{fffd}txet\u{fffd}"),
            ("", ""),
        ] {
            assert_eq!(harmless(text), expected, "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let fits = "x".repeat(LONGEST_TEXT);
        assert_eq!(harmless(&fits), fits);
        // What stands for a control character is longer than it.
        for long in ["é".repeat(LONGEST_TEXT), "\u{1}".repeat(LONGEST_TEXT)] {
            let cut = harmless(&long);
            assert!(cut.len() <= LONGEST_TEXT + 4 && cut.ends_with(" ..."), "{}", cut.len());
        }
        assert!(harmless(&"é".repeat(LONGEST_TEXT)).ends_with("é ..."));
    }
}
