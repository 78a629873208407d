//! Changes of the engine that scripts must notice: `tests/conformance/mutations.toml`.

use crate::script::{EngineWord, Script};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// The file of all mutations.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutations {
    /// The mutations.
    #[serde(default)]
    pub mutation: Vec<Mutation>,
}

/// One change, and the scripts that notice it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    /// The file, from the workspace's root.
    pub file: String,
    /// Text that the file contains once.
    pub find: String,
    /// Replacement of the text.
    pub replace: String,
    /// Scripts that must fail with the replacement.
    pub scripts: Vec<String>,
}

impl Mutations {
    /// Reads the mutations of the suite below `root`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(root: &Path) -> Result<Self, String> {
        let file = root.join("mutations.toml");
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        toml::from_str(&text).map_err(|error| format!("mutations.toml: {error}"))
    }

    /// The faults of the list, for `suite` and the workspace `workspace`. A clause that the engine leaves out needs no
    /// mutation, because no line implements it.
    pub fn faults(&self, workspace: &Path, suite: &[Script]) -> Vec<String> {
        let mut faults = Vec::new();
        let left_out = |script: &&Script| matches!(script.engine, EngineWord::LeavesOut(_));
        let files: Vec<&String> = suite.iter().filter(|script| !left_out(script)).map(|script| &script.file).collect();
        for Mutation { file, find, replace, scripts } in &self.mutation {
            let found = fs::read_to_string(workspace.join(file)).map_or(0, |text| text.matches(find.as_str()).count());
            if found != 1 {
                faults.push(format!("{file}: `{find}` stands there {found} times, not once"));
            }
            if find == replace || scripts.is_empty() {
                faults.push(format!("{file}: `{find}` is not changed, or no script is named"));
            }
            let unknown = scripts.iter().filter(|script| !files.contains(script));
            faults.extend(
                unknown.map(|script| format!("{file}: `{find}` names {script}, which does not exist or is left out")),
            );
        }
        let named = |script: &String| self.mutation.iter().any(|mutation| mutation.scripts.contains(script));
        for script in files.iter().filter(|script| !named(script)) {
            faults.push(format!("{script} is named by no mutation"));
        }
        faults
    }
}
