//! `anabranch key`

use super::links::{CODE, failed, read_key};
use crate::args::KeyAction;
use anabranch_link::secrets;
use anabranch_workbench::failure::Failure;

/// Makes a key, or shows what others need of one.
pub fn key(action: &KeyAction) -> Result<String, Failure> {
    match action {
        KeyAction::New { file } => {
            let key = secrets::new_key();
            secrets::write_key(file, &key).map_err(failed)?;
            Ok(format!("{}\n", key.key.public()))
        }
        KeyAction::Show { file, authorize } => {
            let key = read_key(file)?;
            match authorize {
                None => Ok(format!("{}\n", key.key.public())),
                Some(name) => match key.authorization(name) {
                    Ok(line) => Ok(line.to_string()),
                    Err(mistake) => Err(Failure::unusable(CODE, mistake.what, None)),
                },
            }
        }
    }
}
