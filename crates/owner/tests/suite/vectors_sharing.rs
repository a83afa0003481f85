//! Keys that were shared open for good: a person's pair, its public half and a file of shared keys under `vectors/`.
//!
//! `CIPHERVEC_WRITE_VECTORS=1 cargo test -p ciphervec --test suite vectors_sharing::` writes them where they are missing.

use ciphervec_owner::Keys;
use ciphervec_owner::sharing::{Identity, Recipient, SharedKeys};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

type Outcome = Result<(), Box<dyn Error>>;

const MASTER: [u8; 32] = *b"a published key protects nothing";

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/v1/sharing"))
}

fn write(folder: &Path) -> Outcome {
    fs::create_dir_all(folder)?;
    let mut people = Vec::new();
    for name in ["alice", "bob"] {
        let person = Identity::generate(name)?;
        person.save(&folder.join(format!("{name}.key")), None)?;
        people.push(person.recipient());
        fs::write(folder.join(format!("{name}.pub")), person.recipient().to_bytes())?;
    }
    let shared = SharedKeys::seal(&Keys::from_master(MASTER), &people)?;
    fs::write(folder.join("shared-keys"), shared.to_bytes())?;
    Ok(())
}

#[test]
fn version_1_of_shared_keys_opens_as_it_did() -> Outcome {
    let folder = folder();
    if std::env::var_os("CIPHERVEC_WRITE_VECTORS").is_some() && !folder.exists() {
        write(&folder)?;
    }
    let shared = SharedKeys::from_bytes(&fs::read(folder.join("shared-keys"))?)?;
    let keys = Keys::from_master(MASTER);
    assert_eq!(shared.key_id(), keys.key_id());
    for name in ["alice", "bob"] {
        let person = Identity::load(&folder.join(format!("{name}.key")), None)?;
        // Nothing in the public half is drawn.
        let public = fs::read(folder.join(format!("{name}.pub")))?;
        assert_eq!(person.recipient().to_bytes(), public);
        assert_eq!(Recipient::from_bytes(&public)?.name(), name);
        assert_eq!(shared.open(&person)?.recovery_phrase(), keys.recovery_phrase());
    }
    let names: Vec<_> = shared.recipients().map(|(_, name)| name.to_owned()).collect();
    assert_eq!(names, ["alice", "bob"]);
    Ok(())
}
