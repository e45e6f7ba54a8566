//! Words of a label selector in text form.

/// One word. Whitespace only separates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A key, a value, `in` or `notin`.
    Word(String),
    /// `=`, `==`, `!=`, `>`, `<`.
    Operator(&'static str),
    Not,
    Open,
    Close,
    Comma,
    End,
}

impl Token {
    /// The word as error messages show it.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Operator(operator) => operator,
            Self::Not => "!",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::End => "",
        }
    }
}

/// Reads words with one word of look-ahead.
pub(super) struct Lexer<'a> {
    rest: &'a str,
    next: Option<Token>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, next: None }
    }

    pub(super) fn peek(&mut self) -> &Token {
        if self.next.is_none() {
            self.next = Some(self.read());
        }
        self.next.as_ref().unwrap_or(&Token::End)
    }

    pub(super) fn take(&mut self) -> Token {
        match self.next.take() {
            Some(token) => token,
            None => self.read(),
        }
    }

    fn read(&mut self) -> Token {
        const SYMBOLS: &[(&str, Token)] = &[
            ("==", Token::Operator("==")),
            ("!=", Token::Operator("!=")),
            ("=", Token::Operator("=")),
            (">", Token::Operator(">")),
            ("<", Token::Operator("<")),
            ("!", Token::Not),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
        ];
        self.rest = self.rest.trim_start_matches(is_space);
        for (symbol, token) in SYMBOLS {
            if let Some(rest) = self.rest.strip_prefix(symbol) {
                self.rest = rest;
                return token.clone();
            }
        }
        let end = self.rest.find(ends_word).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.is_empty() { Token::End } else { Token::Word(word.to_owned()) }
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn ends_word(c: char) -> bool {
    is_space(c) || matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}
