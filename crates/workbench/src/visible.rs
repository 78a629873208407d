//! Text that a terminal shows and does not obey.

use std::borrow::Cow;

/// `text` with every character that a terminal would obey in the place of showing it: as `\x1b`, or `\u{202e}`. Names and quoted lines
/// come from files, which may be a stranger's.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => shown.push(c),
            c if is_obeyed(c) && u32::from(c) < 0x100 => shown += &format!("\\x{:02x}", u32::from(c)),
            c if is_obeyed(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown.into()
}

/// Controls of ISO 6429 but the ends of lines and tabs; what turns the order of text (UAX 9 §2) or breaks lines (UAX 14).
fn is_obeyed(c: char) -> bool {
    const TURNING: [char; 3] = ['\u{61c}', '\u{200e}', '\u{200f}'];
    match c {
        '\n' | '\t' => false,
        '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control() || TURNING.contains(&c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_and_all_else_stays() {
        let hostile = "a\x1b[2Jb\u{9b}1m\u{202e}gnp\u{2066}\u{200f}\u{7}\rc\x7f";
        assert_eq!(visible(hostile), r"a\x1b[2Jb\x9b1m\u{202e}gnp\u{2066}\u{200f}\x07\x0dc\x7f");
        let plain = "│ 5.9 ± 0.2\tµs\r\nλ 日本 👩‍👩‍👧\n";
        assert_eq!(visible(plain), plain);
    }
}
