//! Files with places for tables, each between two marks.

use anabranch_workbench::failure::Failure;
use anabranch_workbench::input::{TEXT, read_within, why};
use anabranch_workbench::output::write;
use std::path::Path;

/// A file whose text between `<!-- NAME -->` and `<!-- /NAME -->` is written by a command.
#[derive(Debug)]
pub struct Marked<'a> {
    file: &'a Path,
    text: String,
    /// The names that it has places for; at least one.
    names: Vec<&'static str>,
}

impl<'a> Marked<'a> {
    /// Reads `file`, which has places for some of `names`: to be done before the runs, so that a file without any is
    /// reported at once.
    pub fn read(file: &'a Path, names: &[&'static str]) -> Result<Self, Failure> {
        let unusable = |message, help| Err(Failure::unusable("anabranch::cli::unreadable", message, help));
        let text = match read_within(TEXT, 0, file) {
            Ok(text) => text,
            Err(error) => return unusable(format!("cannot read {}: {}", file.display(), why(&error)), None),
        };
        let names: Vec<&str> = match names.iter().copied().filter(|name| text.contains(&open(name))).collect::<Vec<_>>()
        {
            none if none.is_empty() => {
                let forms =
                    names.iter().map(|name| format!("a line `{}` and a later line `{}`", open(name), close(name)));
                let help = format!("it needs {}", forms.collect::<Vec<_>>().join(", or "));
                return unusable(format!("{} has no place for the table", file.display()), Some(help));
            }
            some => some,
        };
        if let Some(name) = names.iter().find(|name| places(&text, name).1.contains(&open(name))) {
            let message = format!("{}: after `{}` there is no `{}`", file.display(), open(name), close(name));
            return unusable(message, Some("the table goes between the two".into()));
        }
        Ok(Self { file, text, names })
    }

    /// Whether it has a place of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Where the file lies.
    pub fn folder(&self) -> &Path {
        self.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// Puts what `table` makes of each name between its marks.
    pub fn write(&self, table: impl Fn(&str) -> String) -> Result<(), Failure> {
        let fill = |text: String, name: &&str| {
            let (befores, rest) = places(&text, name);
            let filled = |before: &&str| format!("{before}{}\n{}{}", open(name), table(name), close(name));
            befores.iter().map(filled).collect::<String>() + rest
        };
        write(self.file, self.names.iter().fold(self.text.clone(), fill))
    }
}

fn open(name: &str) -> String {
    format!("<!-- {name} -->")
}

fn close(name: &str) -> String {
    format!("<!-- /{name} -->")
}

/// The text before each place of this name, and the text after the last.
fn places<'t>(text: &'t str, name: &str) -> (Vec<&'t str>, &'t str) {
    let (mut befores, mut rest) = (Vec::new(), text);
    while let Some((before, inside)) = rest.split_once(&open(name))
        && let Some((_, after)) = inside.split_once(&close(name))
    {
        befores.push(before);
        rest = after;
    }
    (befores, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NAMES: [&str; 2] = ["sum", "all"];

    fn filled(text: &str) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let marked = Marked::read(file.path(), &NAMES).map_err(|failure| failure.render(false))?;
        marked.write(|name| format!("new {name}\n")).unwrap();
        Ok(fs::read_to_string(file.path()).unwrap())
    }

    #[test]
    fn every_place_is_filled_and_nothing_else_changes() {
        let text = "a\n<!-- all -->\nold\n<!-- /all -->\nb <!-- sum --><!-- /sum -->\n<!-- all --><!-- /all -->c";
        let expected = "a\n<!-- all -->\nnew all\n<!-- /all -->\nb <!-- sum -->\nnew sum\n<!-- /sum -->\n\
                        <!-- all -->\nnew all\n<!-- /all -->c";
        assert_eq!(filled(text).unwrap(), expected);
    }

    #[test]
    fn a_file_without_a_place_is_told_every_form() {
        let text = filled("nothing").unwrap_err();
        assert!(text.contains("has no place") && NAMES.iter().all(|name| text.contains(&close(name))), "{text}");
        let text = filled("<!-- sum --><!-- /sum --><!-- all -->").unwrap_err();
        assert!(text.contains("there is no `<!-- /all -->`"), "{text}");
    }
}
