//! Key files that a passkey opens: under its own output, bound to credential, domain and salt.

use ciphervec_owner::Keys;
use ciphervec_owner::protect::keyfile::{self, KeyfileError};
use ciphervec_owner::protect::passkey::{MAX_CREDENTIAL, Passkey, Question};
use ciphervec_owner::protect::wrapped::{FileKey, WrappedFile};
use std::error::Error;

type Outcome = Result<(), Box<dyn Error>>;

const OUTPUT: [u8; 32] = *b"what the PRF makes of that salt.";

fn question() -> Question {
    let passkey = Passkey::new("notes.example.org", &[0xA5; 20]).unwrap();
    Question { passkey, salt: [7; 32] }
}

#[test]
fn a_key_comes_back_with_what_the_authenticator_gives_and_with_nothing_else() -> Outcome {
    let keys = Keys::generate()?;
    let bytes = keys.to_passkey_bytes(&question(), &OUTPUT)?;
    assert_eq!(Question::of(&bytes)?, Some(question()));
    assert!(Keys::from_passkey_bytes(&bytes, &OUTPUT)?.same(&keys));
    let file = WrappedFile::parse(&bytes)?;
    assert_eq!(file.uri(), format!("passkey:notes.example.org/{}", "a5".repeat(20)));
    for bit in 0..256 {
        let mut other = OUTPUT;
        other[bit / 8] ^= 1 << (bit % 8);
        let refused = Keys::from_passkey_bytes(&bytes, &other).unwrap_err().to_string();
        assert!(refused.contains(&keys.key_id().to_string()), "{refused}");
    }
    assert!(!bytes.windows(8).any(|window| window == &OUTPUT[..8]));
    assert_ne!(keys.to_passkey_bytes(&question(), &OUTPUT)?, bytes, "the file key is fresh");
    // Nothing but a passkey opens it.
    assert!(matches!(keyfile::label(&bytes), Err(KeyfileError::Wrapped { .. })));
    Ok(())
}

#[test]
fn a_file_for_another_salt_or_credential_does_not_open() -> Outcome {
    let keys = Keys::generate()?;
    let bytes = keys.to_passkey_bytes(&question(), &OUTPUT)?;
    let file = WrappedFile::parse(&bytes)?;
    // Somebody without the output writes a file of his own around the sealed file key.
    let stranger = Keys::generate()?;
    let mut wrapped = file.wrapped().to_vec();
    wrapped[0] ^= 1;
    let (drawn, uri) = (FileKey::generate()?, file.uri());
    let other = uri.replace("notes", "evil");
    for (uri, wrapped) in [(uri, &wrapped[..]), (other.as_str(), file.wrapped())] {
        let made = stranger.wrapped(uri, &drawn, wrapped)?.to_bytes();
        assert!(Question::of(&made)?.is_some());
        assert!(Keys::from_passkey_bytes(&made, &OUTPUT).is_err());
    }
    Ok(())
}

#[test]
fn names_of_passkeys_are_checked() -> Outcome {
    for (rp, credential) in [
        ("", vec![1]),
        ("a".repeat(254).as_str(), vec![1]),
        ("Notes.example.org", vec![1]),
        ("notes.example.org/x", vec![1]),
        ("notes example", vec![1]),
        ("notes.example.org", vec![]),
        ("notes.example.org", vec![1; MAX_CREDENTIAL + 1]),
    ] {
        assert!(Passkey::new(rp, &credential).is_err(), "{rp} {}", credential.len());
    }
    assert!(Passkey::new("localhost", &[1; MAX_CREDENTIAL]).is_ok());
    let (keys, drawn) = (Keys::generate()?, FileKey::generate()?);
    let of = |uri: &str, wrapped: &[u8]| {
        Question::of(&keys.wrapped(uri, &drawn, wrapped).unwrap().to_bytes())
    };
    for uri in [
        "passkey:",
        "passkey:a",
        "passkey:a/",
        "passkey:a/0",
        "passkey:a/0G",
        "passkey:a/0A",
        "passkey:A/0a",
    ] {
        assert!(of(uri, &[0; 104]).is_err(), "{uri}");
    }
    assert!(of("passkey:a/0a", &[0; 104])?.is_some());
    assert!(of("passkey:a/0a", &[0; 103]).is_err() && of("passkey:a/0a", &[0; 105]).is_err());
    assert_eq!(of("awskms://alias/ciphervec", &[1])?, None);
    assert_eq!(Question::of(&keys.to_file_bytes(None)?)?, None);
    assert!(Question::of(b"no key file").is_err());
    Ok(())
}
