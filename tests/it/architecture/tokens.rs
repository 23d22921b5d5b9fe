//! Rust source text as a list of tokens: identifiers and punctuation, without comments and
//! literals.

/// One identifier or punctuation character; `::` is one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    /// The line, counted from 1.
    pub line: usize,
}

/// Splits Rust code into tokens. Skips items under `#[cfg(test)]`.
pub fn tokens(code: &str) -> Vec<Token> {
    without_tests(split(code))
}

fn split(code: &str) -> Vec<Token> {
    let chars: Vec<char> = code.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let starts = |i: usize, text: &str| text.chars().enumerate().all(|(n, c)| at(i + n) == c);
    let (mut tokens, mut line, mut i) = (Vec::new(), 1, 0);
    while i < chars.len() {
        let from = i;
        if starts(i, "//") {
            while i < chars.len() && at(i) != '\n' {
                i += 1;
            }
        } else if starts(i, "/*") {
            let mut depth = 0;
            loop {
                if starts(i, "/*") {
                    (depth, i) = (depth + 1, i + 2);
                } else if starts(i, "*/") {
                    (depth, i) = (depth - 1, i + 2);
                } else {
                    i += 1;
                }
                if depth == 0 || i >= chars.len() {
                    break;
                }
            }
        } else if let Some(hashes) = raw_string(&chars, i) {
            let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            while at(i) != '"' {
                i += 1;
            }
            i += 1;
            while i < chars.len() && !starts(i, &end) {
                i += 1;
            }
            i += end.len();
        } else if at(i) == '"' {
            i = after_quote(&chars, i + 1, '"');
        } else if at(i) == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'') {
            i = after_quote(&chars, i + 1, '\'');
        } else if at(i).is_alphanumeric() || at(i) == '_' {
            while at(i).is_alphanumeric() || at(i) == '_' {
                i += 1;
            }
            tokens.push(Token { text: chars[from..i].iter().collect(), line });
        } else {
            let length = if starts(i, "::") { 2 } else { 1 };
            i += length;
            if !chars[from].is_whitespace() {
                tokens.push(Token { text: chars[from..i].iter().collect(), line });
            }
        }
        line += chars[from..i.min(chars.len())].iter().filter(|&&c| c == '\n').count();
    }
    tokens
}

/// The number of `#` of a raw string literal that begins at `i`; `None` if none does.
fn raw_string(chars: &[char], mut i: usize) -> Option<usize> {
    let before = i.checked_sub(1).map(|i| chars[i]);
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    if matches!(chars.get(i), Some('b' | 'c')) {
        i += 1;
    }
    if chars.get(i) != Some(&'r') {
        return None;
    }
    let hashes = chars[i + 1..].iter().take_while(|&&c| c == '#').count();
    (chars.get(i + 1 + hashes) == Some(&'"')).then_some(hashes)
}

/// The index after the closing quote of a literal whose text begins at `i`.
fn after_quote(chars: &[char], mut i: usize, quote: char) -> usize {
    while i < chars.len() && chars[i] != quote {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

fn is(tokens: &[Token], at: usize, texts: &[&str]) -> bool {
    texts.iter().enumerate().all(|(n, text)| tokens.get(at + n).is_some_and(|token| token.text == *text))
}

/// Removes every item with a `#[cfg(…)]` that names `test` without `not`.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let (mut kept, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        if is(&tokens, i, &["#", "[", "cfg", "("]) {
            let end = closing(&tokens, i + 1);
            let inside = &tokens[i..end];
            let has = |word: &str| inside.iter().any(|token| token.text == word);
            if has("test") && !has("not") {
                i = end_of_item(&tokens, end);
                continue;
            }
        }
        kept.push(tokens[i].clone());
        i += 1;
    }
    kept
}

/// The index after the bracket that closes the one at `open`.
fn closing(tokens: &[Token], open: usize) -> usize {
    let (mut depth, mut i) = (0, open);
    while i < tokens.len() {
        match tokens[i].text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        i += 1;
        if depth == 0 {
            break;
        }
    }
    i
}

/// The index after an item: after its semicolon, comma or closing brace.
fn end_of_item(tokens: &[Token], mut i: usize) -> usize {
    while i < tokens.len() {
        match tokens[i].text.as_str() {
            ";" | "," => return i + 1,
            "{" => return closing(tokens, i),
            "(" | "[" => i = closing(tokens, i),
            // The enclosing block ends, and with it the item.
            "}" | ")" => return i,
            _ => i += 1,
        }
    }
    i
}
